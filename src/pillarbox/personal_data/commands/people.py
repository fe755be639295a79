"""`pillarbox contacts export-person` and `erase-person`: what a team holds about somebody, and its
erasure."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer

from pillarbox.contacts import store
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.personal_data import DataSubject
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.terminal.answers import CommandRefused, counted, perform, say
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.output_file import STANDARD, output_file
from pillarbox.kernel.terminal.program import running_program
from pillarbox.kernel.terminal.questions import confirm
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people.audit import Act, record_command
from pillarbox.personal_data import queries
from pillarbox.personal_data.erasing import begin
from pillarbox.personal_data.export import person_file, readers_of
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.teams.commands.choosing import TeamOption, one_team

LOOK_EVERY: Final = 0.5

group = typer.Typer()

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="The person's address.")]
Target = Annotated[str, typer.Argument(metavar="FILE", help="The file to write, or - for standard output.")]
Yes = Annotated[bool, typer.Option("--yes", help="Erase without asking.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Begin the erasure, and do not wait until it is done.")
]


@group.command("export-person")
def export_person(
    address: Address,
    file: Target = STANDARD,
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write all that a team holds about an address to a JSON file."""
    perform(lambda found: _export(found, team, address, file), data=data, database_url=database_url)


@group.command("erase-person")
def erase_person(
    address: Address,
    yes: Yes = False,
    no_wait: NoWait = False,
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Erase all that a team holds about an address. A hash stays, by which later mail to it is skipped."""
    perform(
        lambda found: _erase(found, team, address, asks=not yes, waits=not no_wait),
        data=data,
        database_url=database_url,
    )


async def _export(connected: CommandDatabase, team: str | None, text: str, path: str) -> int:
    owner, address = await one_team(connected, team), _address(text)
    db = TeamDb(connected.pool, owner.id)
    readers = readers_of(source for entry in running_program().slices() for source in entry.personal_data)
    person = DataSubject.of(address.address, address.given, await store.id_of(db, address.address))
    with output_file(path) as file:
        async for piece in person_file(db, person, readers, SystemClock().now()):
            file.write(piece.decode())
    mark = (await _erased(connected).hash_of(owner.id, address.address)).hex()
    await record_command(db, Act.PERSON_EXPORTED, mark)
    return 0


async def _erase(connected: CommandDatabase, team: str | None, text: str, *, asks: bool, waits: bool) -> int:
    owner, address = await one_team(connected, team), _address(text)
    if asks:
        confirm(f"Erase {address.shown} for good?")
    clock = SystemClock()
    hash_ = await _erased(connected).hash_of(owner.id, address.address)
    async with TeamDb(connected.pool, owner.id).transaction() as db:
        contact_id = await store.id_of(db, address.address)
        erasure_id = await begin(db, Ids(clock), hash_, address, contact_id, clock.now())
        await record_command(db, Act.PERSON_ERASED, str(erasure_id))
    say(f"The erasure {erasure_id} has begun: no mail goes to the address any more.")
    if not waits or connected.server is None:
        say("A running server carries it out.")
        return 0
    db = TeamDb(connected.pool, owner.id)
    while True:
        row = await queries.by_id(db, erasure_id)
        if row is None or row.completed_at is not None:
            break
        await asyncio.sleep(LOOK_EVERY)
    say("Done." if row is None else f"Done: {counted(row.rows, 'row')} erased.")
    return 0


def _address(text: str) -> EmailAddress:
    try:
        return email_address(text)
    except NotAnAddress as wrong:
        raise CommandRefused(f"{text!r} is not an address: {wrong.reason}") from None


def _erased(connected: CommandDatabase) -> ErasedAddresses:
    return ErasedAddresses(LinkKeys(connected.pool, SystemClock(), connected.key_ring()))
