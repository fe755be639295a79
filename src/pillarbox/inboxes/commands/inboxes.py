"""`pillarbox inboxes list|create|show`: which inboxes a team has."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec
import typer

from pillarbox.inboxes import paths
from pillarbox.inboxes.inbox import queries, wire
from pillarbox.inboxes.inbox.changes import Inboxes
from pillarbox.inboxes.inbox.queries import InboxRow
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.settings.kinds import ProcessRole
from pillarbox.kernel.slices import Container, Externals, Pools
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    instant,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.program import running_program
from pillarbox.kernel.wire.paging import every_row
from pillarbox.teams.commands.choosing import TeamOption, one_team
from pillarbox.teams.team import Team

group = typer.Typer(no_args_is_help=True, help="List and create inboxes, read their threads and answer them.")

InboxName = Annotated[str, typer.Argument(metavar="INBOX", help="The inbox's address, or its id.")]
Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="Its address, on a domain of the team.")]
Name = Annotated[
    str | None, typer.Option("--name", metavar="TEXT", help="What the team calls it (default: the address).")
]
FromName = Annotated[
    str | None, typer.Option("--from-name", metavar="TEXT", help="The name that recipients see.")
]
Forwarding = Annotated[
    bool, typer.Option("--forwarding", help="Give it an address that other mailboxes can forward to.")
]


@group.command("list")
def show_all(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List the inboxes of a team, the newest first."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


@group.command("create")
def create(
    address: Address,
    name: Name = None,
    from_name: FromName = None,
    forwarding: Forwarding = False,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Create an inbox: mail to its address is sorted into threads from then on."""
    wanted = wire.NewInbox(email_address=address, name=name, from_name=from_name, forwarding=forwarding)
    perform(
        lambda connected: created(connected, team, wanted, json=json), data=data, database_url=database_url
    )


@group.command("show")
def show_one(
    inbox: InboxName,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show an inbox and how much is unread in it."""
    perform(lambda connected: shown(connected, team, inbox, json=json), data=data, database_url=database_url)


class OfTeam(NamedTuple):
    """An inbox that the operator means, and whose it is."""

    owner: Team
    db: TeamDb
    inbox_id: UUID


async def of_team(connected: CommandDatabase, team: str | None, inbox: str) -> OfTeam:
    """Return the inbox of that address or id."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    return OfTeam(owner, db, await paths.find(db, inbox))


@asynccontextmanager
async def parts(connected: CommandDatabase) -> AsyncIterator[Container]:
    """Yield the container of a server's parts; none of them runs by itself."""
    connected.key_ring()
    settings = replace(connected.settings, roles=(ProcessRole.API,))
    memory = shared_memory.create()
    try:
        runtime = Runtime(
            process_id=Ids(SystemClock()).new(), index=0, count=1, shared_memory=memory, capture_token=""
        )
        pools = Pools(connected.pool, connected.pool)
        yield Container(running_program().slices(), settings, runtime, pools, Externals.real(settings))
    finally:
        os.close(memory)


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    found: list[InboxRow] = await every_row(partial(queries.page, db))
    if json:
        show_json({"object": "list", "data": [_plain(wire.item(one)) for one in found]})
    elif found:
        show_table(
            ("Id", "Address", "Name", "Unread", "Drafts", "Last activity", "Created"),
            [
                (
                    one.id,
                    one.email_address,
                    one.name,
                    one.unread,
                    one.drafts,
                    one.last_received,
                    one.created_at,
                )
                for one in found
            ],
        )
    else:
        say(f"The team {owner.name!r} has no inboxes.")
    return 0


async def created(
    connected: CommandDatabase, team: str | None, new_inbox: wire.NewInbox, *, json: bool
) -> int:
    """Make it, as a request would."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    async with parts(connected) as kit, db.transaction() as inside:
        inbox_id = await kit.need(Inboxes).create(inside, new_inbox)
    found = await _get(db, inbox_id)
    if json:
        show_json(_plain(wire.full(found)))
    else:
        say(f"{found.email_address} is an inbox of the team {owner.name}: {found.id}")
        if found.receiving_address is not None:
            say(f"Forward mail to {found.receiving_address}")
    return 0


async def shown(connected: CommandDatabase, team: str | None, inbox: str, *, json: bool) -> int:
    """Print what there is to say of it."""
    wanted = await of_team(connected, team, inbox)
    found = await _get(wanted.db, wanted.inbox_id)
    if json:
        show_json(_plain(wire.full(found)))
        return 0
    facts: list[tuple[str, Any]] = [
        ("Inbox", found.id),
        ("Team", wanted.owner.name),
        ("Address", found.email_address),
        ("Name", found.name),
        ("Sends as", found.from_name),
        ("Forward to", found.receiving_address),
        ("Unread", found.unread),
        ("Drafts", found.drafts),
        ("Last activity", instant(found.last_received) if found.last_received else None),
        ("Created", instant(found.created_at)),
    ]
    for name, value in facts:
        if value is not None:
            say(f"{name + ':':<15} {value}")
    return 0


async def _get(db: TeamDb, inbox_id: UUID) -> InboxRow:
    found = await queries.get(db, inbox_id)
    if found is None:
        raise CommandRefused("The inbox is gone.")
    return found


def _plain(value: msgspec.Struct) -> Any:
    return msgspec.to_builtins(value)
