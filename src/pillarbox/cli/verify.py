"""`pillarbox verify`: does everything fit together?"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from pillarbox.cli.answers import Json, Refused, counted, perform, say, show_json, show_table
from pillarbox.cli.connect import Connected, Data, DatabaseUrl
from pillarbox.emails.integrity import blob_references
from pillarbox.emails.integrity.blob_references import BlobReferences
from pillarbox.emails.integrity.reconcile import Gap, ReconcileResult, reconcile
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore

GAPS = 1
NOT_VERIFIED = 2
MOST_TEAMS = 20

BlobUrl = Annotated[
    str | None,
    typer.Option(
        "--blob-url", metavar="URL", help="Blob store of the server [PILLARBOX_BLOB_URL].", show_default=False
    ),
]
Collect = Annotated[
    bool | None,
    typer.Option(
        "--collect/--no-collect",
        help="Delete blobs that no row names and that are older than a day, or keep them "
        "[default: delete them where the store is clearly this installation's].",
        show_default=False,
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Gaps listed of each kind.")]


def command(
    json: Json = False,
    limit: Limit = 100,
    collect: Collect = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    blob_url: BlobUrl = None,
) -> None:
    """Reconcile emails, recipients, work, history, metrics, webhooks, kept answers and blobs; name every gap.

    May run beside a live server. Status 0: no gap; 1: gaps; 2: it could not be verified.
    """
    perform(
        lambda reach: verify(reach, blob_url, limit, collect, json=json),
        data=data,
        database_url=database_url,
        failed=NOT_VERIFIED,
    )


async def verify(
    reach: Connected, blob_url: str | None, limit: int, collect: bool | None, *, json: bool
) -> int:
    settings = reach.settings.replacing(blob_url=blob_url) if blob_url else reach.settings
    started = time.monotonic()
    findings = await reconcile(reach.pool, limit, invariants())
    blobs = BlobStore.open(settings.blobs)
    try:
        census = await blob_references.take(reach.pool, blobs, SystemClock().now(), limit, collect=collect)
    except BlobFailed as trouble:
        raise Refused(f"The blob store cannot be read: {trouble}.") from None
    finally:
        await blobs.close()
    gaps = [*findings.gaps, *census.gaps]
    if json:
        show_json(document(findings, census, gaps))
    else:
        show(findings, census, gaps, time.monotonic() - started)
    return GAPS if gaps else 0


def invariants() -> list[Invariant]:
    """What must hold, of all slices."""
    from pillarbox.app import SLICES

    return [invariant for one in SLICES for invariant in one.invariants]


def show(findings: ReconcileResult, census: BlobReferences, gaps: list[Gap], seconds: float) -> None:
    if findings.accounts:
        show_accounts(findings)
        say()
    for gap in gaps:
        say(f"GAP {gap.name}: {gap.sentence}{place(gap)}")
    for name in sorted(more(findings, census)):
        say(f"GAP {name}: there are more of this kind; --limit lists them.")
    say(blobs_in_words(census))
    say(
        f"{counted(len(gaps), 'gap') if gaps else 'No gaps'} in {counted(findings.emails, 'email')} with "
        f"{counted(findings.recipients, 'recipient')} of {counted(findings.teams, 'team')} "
        f"({seconds:.1f} s)."
    )


def show_accounts(findings: ReconcileResult) -> None:
    """Where the recipients of each team are; with many teams, the first ones and all that do not add up."""
    shown = [
        account
        for index, account in enumerate(findings.accounts)
        if index < MOST_TEAMS or account.accepted != account.known
    ]
    show_table(
        ("Team", "Accepted", "Delivered", "Bounced", "Failed", "Suppressed", "Canceled", "Pending"),
        [
            (
                account.team,
                account.accepted,
                account.delivered,
                account.bounced,
                account.failed,
                account.suppressed,
                account.canceled,
                account.pending,
            )
            for account in shown
        ],
    )
    if len(shown) < findings.teams:
        say(f"… and {counted(findings.teams - len(shown), 'more team')}.")


def blobs_in_words(census: BlobReferences) -> str:
    words = f"{counted(census.named, 'blob')} where the rows say"
    if census.unnamed:
        words += (
            f"; {census.unnamed:,} older than a day that no row names, {census.collected:,} of them deleted"
        )
    if census.unnamed and census.withheld:
        words += f" ({census.withheld})"
    return words + "."


def place(gap: Gap) -> str:
    """Which email and team, behind a sentence."""
    named = [
        f"{word} {gap.ids[key]}"
        for word, key in (("email", "email_id"), ("team", "team_id"))
        if gap.ids.get(key)
    ]
    return f" [{', '.join(named)}]" if named else ""


def more(findings: ReconcileResult, census: BlobReferences) -> set[str]:
    """The kinds of gaps of which not all are listed."""
    return findings.more | ({"blobs"} if census.more else set())


def document(findings: ReconcileResult, census: BlobReferences, gaps: list[Gap]) -> dict[str, object]:
    return {
        "object": "verification",
        "ok": not gaps,
        "gaps": [{"name": gap.name, "sentence": gap.sentence, "ids": dict(gap.ids)} for gap in gaps],
        "more": sorted(more(findings, census)),
        "teams": findings.teams,
        "emails": findings.emails,
        "recipients": findings.recipients,
        "accounts": [account._asdict() for account in findings.accounts],
        "blobs": {
            "named": census.named,
            "unnamed": census.unnamed,
            "collected": census.collected,
            "withheld": census.withheld,
        },
    }
