"""`pillarbox events`: what events a team has, which of them wait or failed, and sending one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import msgspec
import typer

from pillarbox.events import overview_queries
from pillarbox.events.overview_queries import NamedEvent
from pillarbox.events.sending import EventRefused, EventSender
from pillarbox.events.wire import NewEvent
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.teams.commands.choosing import TeamOption, one_team

group = typer.Typer(no_args_is_help=True, help="List the events of a team, and send one.")

MOST_FAILED = 20

Named = Annotated[str, typer.Argument(metavar="EVENT", help="The name of the event, or its id.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the event.")]
Email = Annotated[
    str | None,
    typer.Option("--email", metavar="ADDRESS", help="Whom it happened to, by address.", show_default=False),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact", metavar="ID", help="Whom it happened to, by the contact's id.", show_default=False
    ),
]
Payload = Annotated[str, typer.Option("--payload", metavar="JSON", help="What comes with it, an object.")]


@group.command("list")
def show_all(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List the names of events, with how many of each wait to be distributed, and how many failed."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


@group.command("show")
def show(
    named: Named,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what the payload of an event may hold, and those of it that failed last."""
    perform(lambda connected: shown(connected, team, named, json=json), data=data, database_url=database_url)


@group.command("send")
def send(
    name: Name,
    email: Email = None,
    contact: Contact = None,
    payload: Payload = "{}",
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Send an event, as `POST /events/send` does: automations that listen to it begin within seconds."""
    body = {"event": name, "email": email, "contact_id": contact}
    perform(lambda connected: sent(connected, team, body, payload), data=data, database_url=database_url)


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them by name."""
    owner = await one_team(connected, team)
    found, now = await overview_queries.names(TeamDb(connected.pool, owner.id)), SystemClock().now()
    if json:
        show_json({"object": "list", "data": [_plain(one) for one in found]})
    elif found:
        show_table(
            ("Name", "Id", "Schema", "Waiting", "Oldest", "Failed"),
            [
                (
                    *(one.name, one.id, _words(one), f"{one.waiting:,}"),
                    *(None if one.oldest is None else now - one.oldest, f"{one.failed:,}"),
                )
                for one in found
            ],
        )
    else:
        say(f"The team {owner.name!r} has no events.")
    return 0


async def shown(connected: CommandDatabase, team: str | None, named: str, *, json: bool) -> int:
    """Print one, found by its name or the id of its definition."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    wanted = named.lower() if well_formed(named) else named
    found = [one for one in await overview_queries.names(db) if wanted in (one.name, str(one.id))]
    if not found:
        raise CommandRefused(f"The team {owner.name!r} has no event {named!r}.")
    failed = await overview_queries.failed(db, found[0].name, MOST_FAILED)
    if json:
        show_json({**_plain(found[0]), "last_failed": [asdict(one) for one in failed]})
        return 0
    say(f"Name     {found[0].name}")
    say(f"Id       {found[0].id or '- (not defined)'}")
    say(f"Schema   {_words(found[0]) or '-'}")
    say(f"Waiting  {found[0].waiting:,}")
    say(f"Failed   {found[0].failed:,}")
    if failed:
        say()
        show_table(
            ("Id", "For", "Accepted", "Failed", "Tries", "Reason"),
            [(one.id, one.email, one.at, one.failed_at, one.tries, one.reason) for one in failed],
        )
    return 0


async def sent(connected: CommandDatabase, team: str | None, body: dict[str, Any], payload: str) -> int:
    """Send it; whoever distributes events finds it within a second."""
    owner = await one_team(connected, team)
    try:
        body["payload"] = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeError):
        raise CommandRefused("What is given with --payload is not JSON.") from None
    event = parse(NewEvent, body).sent()
    sending = EventSender(connected.pool, Ids(SystemClock()), lambda: None, lambda: None)
    try:
        await sending.send(owner.id, [event])
    except EventRefused as refused:
        raise refused.problem from None
    say(f"Sent {event.name} to the team {owner.name!r}.")
    return 0


def _plain(named_event: NamedEvent) -> dict[str, Any]:
    return {
        **asdict(named_event),
        "schema": None if named_event.schema is None else msgspec.json.decode(named_event.schema),
    }


def _words(named_event: NamedEvent) -> str | None:
    """Return the schema in one line."""
    if named_event.schema is None:
        return None
    fields = msgspec.json.decode(named_event.schema, type=dict[str, str])
    return ", ".join(f"{key}: {kind}" for key, kind in fields.items()) or "{}"
