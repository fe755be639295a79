"""`pillarbox suppressions`: the addresses that teams must not write to. `emails` adds `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, as_id, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, identifier
from pillarbox.kernel.wire.paging import Page
from pillarbox.people.audit import Act, record_command
from pillarbox.suppressions import changes, queries
from pillarbox.suppressions.addresses import listed_address
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.suppressions.commands import transfer
from pillarbox.suppressions.queries import SuppressionRow
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team
from pillarbox.teams.team import Team
from pillarbox.webhooks.publish import Publisher

group = typer.Typer(
    no_args_is_help=True, help="List, add, remove, import, export and explain suppressed addresses."
)


class OriginName(StrEnum):
    bounce = "bounce"
    complaint = "complaint"
    manual = "manual"


Addresses = Annotated[list[str], typer.Argument(metavar="ADDRESS...", help="Addresses, without names.")]
Named = Annotated[list[str], typer.Argument(metavar="ADDRESS_OR_ID...", help="Addresses, or ids of entries.")]
OriginOption = Annotated[
    OriginName | None, typer.Option("--origin", help="Only those of this origin.", show_default=False)
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="ID", help="Go on behind this entry of the list.", show_default=False),
]
File = Annotated[str, typer.Argument(metavar="FILE", help="A CSV file, or - for standard input.")]
Target = Annotated[str, typer.Argument(metavar="FILE", help="The file to write, or - for standard output.")]
Column = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="NAME", help="The column of the addresses, else `email`.", show_default=False
    ),
]
ImportedOrigin = Annotated[
    OriginName | None,
    typer.Option(
        "--origin",
        help="The origin of every address, else what the column `origin` says, else manual.",
        show_default=False,
    ),
]
Errors = Annotated[
    Path | None,
    typer.Option(
        "--errors", metavar="FILE", help="Where refused rows go, else FILE.errors.csv.", show_default=False
    ),
]


@group.command("list")
def list_all(
    team: TeamOption = None,
    origin: OriginOption = None,
    limit: Limit = 20,
    after: After = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List suppressed addresses, the newest first, of one team or of all."""
    perform(
        lambda connected: show_list(connected, team, origin, limit, after, json=json),
        data=data,
        database_url=database_url,
    )


@group.command("add")
def add(
    addresses: Addresses, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Put addresses on the list; one that is there already stays as it is."""
    perform(lambda connected: suppress(connected, addresses, team), data=data, database_url=database_url)


@group.command("remove")
def remove(
    named: Named, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Take addresses off the list, whatever put them there; later mail goes out again."""
    perform(lambda connected: take_off(connected, named, team), data=data, database_url=database_url)


@group.command("import")
def import_file(
    file: File,
    team: TeamOption = None,
    column: Column = None,
    origin: ImportedOrigin = None,
    errors: Errors = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Put the addresses of a CSV file on the list: its column `email`, or the first one of a file without
    names of columns."""
    wanted = transfer.SuppressionImport(file, column, None if origin is None else origin.value, errors)
    perform(
        lambda connected: transfer.import_file(connected, team, wanted), data=data, database_url=database_url
    )


@group.command("export")
def export_file(
    file: Target,
    team: TeamOption = None,
    origin: OriginOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the list of a team to a CSV file, the oldest entry first."""
    chosen = None if origin is None else origin.value
    perform(
        lambda connected: transfer.export_file(connected, team, file, chosen),
        data=data,
        database_url=database_url,
    )


async def show_list(
    connected: CommandDatabase,
    team: str | None,
    origin: OriginName | None,
    limit: int,
    after: str | None,
    *,
    json: bool,
) -> int:
    page = Page(limit, after=None if after is None else as_id(after, "a suppression"))
    found: list[tuple[Team, SuppressionRow]] = []
    for owner in await chosen_teams(connected, team):
        db = TeamDb(connected.pool, owner.id)
        if origin is None:
            rows = await queries.page(db, page)
        else:
            rows = await queries.page_of_origin(db, page, origin.value)
        found += [(owner, entry) for entry in rows]
    found.sort(key=lambda pair: pair[1].id, reverse=True)
    shown = found[:limit]
    if json:
        data = [shape(owner, entry) for owner, entry in shown]
        show_json({"object": "list", "has_more": len(found) > limit, "data": data})
        return 0
    show_table(
        ("Id", "Address", "Team", "Origin", "Email", "Since"),
        [
            (entry.id, entry.shown, owner.name, entry.origin, entry.source_id, entry.created_at)
            for owner, entry in shown
        ],
    )
    if len(found) > limit:
        typer.echo(f"There are more: --after {shown[-1][1].id}", err=True)
    return 0


async def suppress(connected: CommandDatabase, texts: Sequence[str], team: str | None) -> int:
    addresses = [parsed(text) for text in texts]
    owner = await one_team(connected, team)
    ids = Ids(SystemClock())
    async with TeamDb(connected.pool, owner.id).transaction() as db:
        causes = [
            SuppressionCause(
                team_id=owner.id,
                address=one.address,
                origin="manual",
                source_id=None,
                at=ids.now(),
                given=one.given,
            )
            for one in addresses
        ]
        added = {entry.address for entry in await changes.add(db.connection, causes, ids, Publisher(ids))}
    for address in dict.fromkeys(addresses):
        word = "is now" if address.address in added else "was already"
        say(f"{address.shown} {word} on the suppression list of {owner.name}.")
    return 0


async def take_off(connected: CommandDatabase, texts: Sequence[str], team: str | None) -> int:
    named = [reference(text) for text in texts]
    owner = await one_team(connected, team)
    ids = Ids(SystemClock())
    async with TeamDb(connected.pool, owner.id).transaction() as db:
        removed = await changes.remove(db, named, ids.now(), Publisher(ids))
        if removed:
            target = removed[0].shown
            await record_command(db, Act.SUPPRESSIONS_REMOVED, target, {"count": len(removed)})
    gone = {entry.id: entry for entry in removed} | {entry.address: entry for entry in removed}
    for one, text in zip(named, texts, strict=True):
        entry = gone.get(one)
        if entry is None:
            say(f"{text.strip()} was not on the suppression list of {owner.name}.")
        else:
            say(f"{entry.shown} ({entry.origin}) is off the suppression list of {owner.name}.")
    return 0


def parsed(text: str) -> EmailAddress:
    """Return the address that an argument is."""
    try:
        return listed_address(text)
    except NotAnAddress as wrong:
        raise CommandRefused(f"{text!r} is not an address: {wrong.reason}") from None


def reference(text: str) -> UUID | str:
    """Return the entry that an argument means."""
    found = identifier(text.strip())
    if found is None:
        raise CommandRefused(f"{text!r} is neither an address nor the id of a suppression.")
    return found


def shape(owner: Team, entry: SuppressionRow) -> dict[str, object]:
    return {
        "id": entry.id,
        "team_id": owner.id,
        "email": entry.shown,
        "origin": entry.origin,
        "source_id": entry.source_id,
        "created_at": entry.created_at,
    }
