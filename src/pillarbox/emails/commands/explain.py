"""`pillarbox suppressions explain`: why an address is not written to, from the mail that caused it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
import typer

from pillarbox.delivery.commands.words import reason_in_words
from pillarbox.emails import overview
from pillarbox.emails.commands.emails import detail_of, precise
from pillarbox.emails.commands.emails_list import texts
from pillarbox.emails.overview import EmailOverview
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import Json, Refused, instant, perform, say, show_json
from pillarbox.kernel.terminal.connect import Connected, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.suppressions import queries
from pillarbox.suppressions.queries import Entry
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams
from pillarbox.teams.queries import Team
from pillarbox.timeline import history
from pillarbox.timeline.history import HistoryEvent

group = typer.Typer()

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="The address, without a name.")]

SHOWN_BY: Final = {"bounce": "bounced", "complaint": "complained"}
"""The kind of event that shows an origin."""

CAUSES: Final = {
    "bounce": "a bounce: a mail server said that there is no such address.",
    "complaint": "a complaint: the recipient reported a mail.",
    "manual": "put there by hand, over the API or by a command.",
}
MAIL_GONE: Final = "removed since: emails are kept for a limited time."
NO_MAIL: Final = "none that is known: the entry was imported."


@dataclass(frozen=True, slots=True)
class Explanation:
    """An entry with what caused it, as far as it is still there."""

    team: Team
    entry: Entry
    event: HistoryEvent | None
    email: EmailOverview | None


@group.command("explain")
def explain(
    address: Address,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show why an address is suppressed: the event, what the other side said, and the mail that caused it."""
    perform(lambda connected: show(connected, address, team, json=json), data=data, database_url=database_url)


async def show(connected: Connected, text: str, team: str | None, *, json: bool) -> int:
    try:
        address = email_address(text)
    except NotAnAddress as wrong:
        raise Refused(f"{text!r} is not an address: {wrong.reason}") from None
    teams = await chosen_teams(connected, team)
    found = [one for owner in teams if (one := await explained(connected, owner, address)) is not None]
    if json:
        show_json(
            {
                "object": "list",
                "email": address.shown,
                "suppressed": bool(found),
                "data": [shape(one) for one in found],
            }
        )
        return 0
    if not found:
        where = (
            f"the suppression list of {teams[0].name}" if len(teams) == 1 else "any team's suppression list"
        )
        say(f"{address.shown} is not suppressed: it is not on {where}.")
    for number, one in enumerate(found):
        if number:
            say()
        tell(one)
    return 0


async def explained(connected: Connected, owner: Team, address: EmailAddress) -> Explanation | None:
    """Why this team does not write to the address; None where it does."""
    db = TeamDb(connected.pool, owner.id)
    entry = await queries.by_address(db, address.address)
    if entry is None:
        return None
    if entry.source_id is None:
        return Explanation(owner, entry, None, None)
    event = await history.last_of(db, entry.source_id, entry.address, SHOWN_BY[entry.origin])
    return Explanation(owner, entry, event, await overview.get(db, entry.source_id))


def tell(one: Explanation) -> None:
    entry = one.entry
    say(f"{entry.shown} is on the suppression list of {one.team.name}.")
    say()
    facts: list[tuple[str, object]] = [
        ("Entry", entry.id),
        ("Since", instant(entry.created_at)),
        ("Cause", CAUSES[entry.origin]),
    ]
    if entry.origin != "manual":
        facts += event_facts(one) + mail_facts(one)
    for name, value in facts:
        if value:
            say(f"{name + ':':<13} {value}")
    say()
    removal = f"pillarbox suppressions remove {shlex.quote(entry.address)} --team {one.team.id}"
    say(f"Mail of this team to the address is skipped. `{removal}` lets later mail out.")


def event_facts(one: Explanation) -> list[tuple[str, object]]:
    if one.event is None:
        return []
    detail = detail_of(one.event)
    kind = f" ({detail.bounce.type}, {detail.bounce.sub_type})" if detail.bounce else ""
    return [
        ("Event", f"{one.event.kind}{kind} at {precise(one.event.at)}"),
        ("Said by", detail.host),
        ("Answer" if one.entry.origin == "bounce" else "Report", detail.reply),
        ("Reason", reason_in_words(detail.reason)),
    ]


def mail_facts(one: Explanation) -> list[tuple[str, object]]:
    if one.entry.source_id is None:
        return [("Mail", NO_MAIL)]
    if one.email is None:
        return [("Mail", f"{one.entry.source_id}, {MAIL_GONE}")]
    return [
        ("Mail", one.email.id),
        ("From", one.email.sender),
        ("To", one.event.recipient if one.event else ", ".join(texts(one.email.to_list))),
        ("Subject", one.email.subject),
        ("Accepted", instant(one.email.created_at)),
        ("Message-ID", one.email.message_id),
    ]


def shape(one: Explanation) -> dict[str, Any]:
    entry, email, event = one.entry, one.email, one.event
    return {
        "team_id": one.team.id,
        "team": one.team.name,
        "id": entry.id,
        "email": entry.shown,
        "origin": entry.origin,
        "source_id": entry.source_id,
        "created_at": entry.created_at,
        "event": event
        and {
            "event": event.kind,
            "created_at": event.at,
            "recipient": event.recipient,
            "detail": {} if event.detail is None else msgspec.json.decode(event.detail),
        },
        "mail": email
        and {
            "id": email.id,
            "from": email.sender,
            "to": texts(email.to_list),
            "subject": email.subject,
            "message_id": email.message_id,
            "created_at": email.created_at,
        },
    }
