"""`pillarbox verify`: does everything fit together?"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from pillarbox.doctor.examination_runs import ExaminationKind, keep_result
from pillarbox.doctor.verification import Verification, VerifiedInstallation, document, more, verified
from pillarbox.emails.integrity.blob_references import BlobReferences
from pillarbox.emails.integrity.reconcile import Gap, ReconcileResult
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.security.ring_check import OtherKeyRing
from pillarbox.kernel.storage.blobs import BlobFailed, BlobsUnreachable
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    counted,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.keyring import columns, ring_of
from pillarbox.kernel.terminal.program import running_program

GAPS = 1
NOT_VERIFIED = 2
MOST_TEAMS = 20
CREDENTIALS = "A command takes AWS_ENDPOINT_URL and credentials from its own environment."

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
        "(default: delete them where the store is clearly this installation's).",
        show_default=False,
    ),
]
Adopt = Annotated[
    bool,
    typer.Option(
        "--adopt-blob-store", help="Make this blob store the one of this database, whatever its id is."
    ),
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep the result: the dashboard shows it as that of the last run.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Gaps listed of each kind.")]


def command(
    json: Json = False,
    limit: Limit = 100,
    collect: Collect = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    blob_url: BlobUrl = None,
    adopt_blob_store: Adopt = False,
    keep: Keep = False,
) -> None:
    """Reconcile emails, recipients, work, history, metrics, webhooks, kept answers, secrets and blobs; name
    every gap.

    May run beside a live server. Status 0: no gap; 1: gaps; 2: it could not be verified.
    """
    perform(
        lambda connected: verify(
            connected, blob_url, limit, collect, json=json, adopts=adopt_blob_store, keeps=keep
        ),
        data=data,
        database_url=database_url,
        failed=NOT_VERIFIED,
        with_any_ring=True,
    )


async def verify(
    connected: CommandDatabase,
    blob_url: str | None,
    limit: int,
    collect: bool | None,
    *,
    json: bool,
    adopts: bool = False,
    keeps: bool = False,
) -> int:
    settings = connected.settings.replacing(blob_url=blob_url) if blob_url else connected.settings
    started = time.monotonic()
    trouble = connected.ring_trouble
    installation = VerifiedInstallation(
        settings=settings,
        pool=connected.pool,
        invariants=invariants(),
        sealed=columns(),
        ring=ring_of(connected),
        ring_trouble=str(trouble) if isinstance(trouble, OtherKeyRing) else None,
    )
    try:
        found = await verified(installation, limit, collect=collect, adopts=adopts)
    except BlobFailed as failure:
        raise CommandRefused(unreadable(failure)) from None
    if keeps:
        ids = Ids(SystemClock())
        result = (not found.gaps, document(found))
        await keep_result(connected.pool, ExaminationKind.VERIFY, ids.new(), ids.now(), result)
    if json:
        show_json(document(found))
    else:
        show(found, time.monotonic() - started)
    return GAPS if found.gaps else 0


def unreadable(trouble: BlobFailed) -> str:
    """Return why blobs cannot be compared, in a sentence."""
    if isinstance(trouble, BlobsUnreachable):
        return f"The blob store cannot be reached: {trouble}. {CREDENTIALS}"
    return f"The blob store cannot be read: {trouble}."


def invariants() -> list[Invariant]:
    """Return the invariants of all slices."""
    return [invariant for one in running_program().slices() for invariant in one.invariants]


def show(verification: Verification, seconds: float) -> None:
    result, blob_result, gaps = verification
    if result.accounts:
        show_accounts(result)
        say()
    for gap in gaps:
        say(f"GAP {gap.name}: {gap.sentence}{place(gap)}")
    for name in sorted(more(verification)):
        say(f"GAP {name}: there are more of this kind; --limit lists them.")
    say(blobs_in_words(blob_result))
    say(
        f"{counted(len(gaps), 'gap') if gaps else 'No gaps'} in {counted(result.emails, 'email')} with "
        f"{counted(result.recipients, 'recipient')} of {counted(result.teams, 'team')} "
        f"({seconds:.1f} s)."
    )


def show_accounts(result: ReconcileResult) -> None:
    """Print the state of each team's recipients; of many teams the first, and all that do not add up."""
    shown = [
        account
        for index, account in enumerate(result.accounts)
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
    if len(shown) < result.teams:
        say(f"… and {counted(result.teams - len(shown), 'more team')}.")


def blobs_in_words(blob_result: BlobReferences) -> str:
    words = f"{counted(blob_result.named, 'blob')} where the rows say"
    if blob_result.unnamed:
        words += f"; {blob_result.unnamed:,} older than a day that no row names, "
        words += f"{blob_result.collected:,} of them deleted"
    if blob_result.unnamed and blob_result.withheld:
        words += f" ({blob_result.withheld})"
    return words + "."


def place(gap: Gap) -> str:
    """Return the email and team of a gap, to be put behind its sentence."""
    named = [
        f"{word} {gap.ids[key]}"
        for word, key in (("email", "email_id"), ("team", "team_id"))
        if gap.ids.get(key)
    ]
    return f" [{', '.join(named)}]" if named else ""
