"""`pillarbox suppressions explain`: why an address is not written to, from the mail that caused it."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import typer

from pillarbox.delivery.commands.words import reason_in_words
from pillarbox.emails.commands.emails import precise
from pillarbox.emails.commands.emails_list import texts
from pillarbox.emails.search.suppression_causes import SuppressionExplanation, explanation_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, instant, perform, say, show_json
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.suppressions import changes as suppressions
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams
from pillarbox.teams.team import Team

group = typer.Typer()

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="The address, without a name.")]

CAUSES: Final = {
    "bounce": "a bounce: a mail server said that there is no such address.",
    "complaint": "a complaint: the recipient reported a mail.",
    "manual": "put there by hand, over the API or by a command.",
}
MAIL_GONE: Final = "removed since: emails are kept for a limited time."
NO_MAIL: Final = "none that is known: the entry was imported."


class Explanation(NamedTuple):
    """Why a team does not write to an address."""

    team: Team
    cause: SuppressionExplanation


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


async def show(connected: CommandDatabase, text: str, team: str | None, *, json: bool) -> int:
    try:
        address = email_address(text)
    except NotAnAddress as wrong:
        raise CommandRefused(f"{text!r} is not an address: {wrong.reason}") from None
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


async def explained(connected: CommandDatabase, owner: Team, address: EmailAddress) -> Explanation | None:
    """Return why this team does not write to the address; None where it does."""
    db = TeamDb(connected.pool, owner.id)
    entry = await suppressions.find(db, address.address)
    return None if entry is None else Explanation(owner, await explanation_of(db, entry))


def tell(explanation: Explanation) -> None:
    entry = explanation.cause.entry
    say(f"{entry.shown} is on the suppression list of {explanation.team.name}.")
    say()
    facts: list[tuple[str, object]] = [
        ("Entry", entry.id),
        ("Since", instant(entry.created_at)),
        ("Cause", CAUSES[entry.origin]),
    ]
    if entry.origin != "manual":
        facts += event_facts(explanation.cause) + mail_facts(explanation.cause)
    for name, value in facts:
        if value:
            say(f"{name + ':':<13} {value}")
    say()
    removal = f"pillarbox suppressions remove {shlex.quote(entry.address)} --team {explanation.team.id}"
    say(f"Mail of this team to the address is skipped. `{removal}` lets later mail out.")


def event_facts(explanation: SuppressionExplanation) -> list[tuple[str, object]]:
    if explanation.event is None:
        return []
    detail = explanation.detail
    kind = f" ({detail.bounce.type}, {detail.bounce.sub_type})" if detail.bounce else ""
    return [
        ("Event", f"{explanation.event.kind}{kind} at {precise(explanation.event.at)}"),
        ("Said by", detail.host),
        ("Answer" if explanation.entry.origin == "bounce" else "Report", detail.reply),
        ("Reason", reason_in_words(detail.reason)),
    ]


def mail_facts(explanation: SuppressionExplanation) -> list[tuple[str, object]]:
    if explanation.entry.source_id is None:
        return [("Mail", NO_MAIL)]
    if explanation.email is None:
        return [("Mail", f"{explanation.entry.source_id}, {MAIL_GONE}")]
    return [
        ("Mail", explanation.email.id),
        ("From", explanation.email.sender),
        (
            "To",
            explanation.event.recipient if explanation.event else ", ".join(texts(explanation.email.to_list)),
        ),
        ("Subject", explanation.email.subject),
        ("Accepted", instant(explanation.email.created_at)),
        ("Message-ID", explanation.email.message_id),
    ]


def shape(explanation: Explanation) -> dict[str, Any]:
    cause = explanation.cause
    entry, email, event = cause.entry, cause.email, cause.event
    return {
        "team_id": explanation.team.id,
        "team": explanation.team.name,
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
