"""`pillarbox broadcasts preview`: the message that a contact would get."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import msgspec
import typer

from pillarbox.broadcasts import store
from pillarbox.broadcasts.commands.broadcasts import Id, group, of_team
from pillarbox.broadcasts.preview import wire
from pillarbox.broadcasts.preview.composing import Previews
from pillarbox.domains.senders import Senders
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.terminal.answers import CommandRefused, Json, as_id, perform, say, show_json
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.teams.commands.choosing import TeamOption

__all__ = ["group"]

Contact = Annotated[
    str, typer.Option("--contact", metavar="ADDRESS", help="For whom it is composed.", show_default=False)
]


@group.command("preview")
def preview(
    broadcast: Id,
    contact: Contact,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a broadcast as a contact would get it now: the message with its signature, byte by byte.

    Nothing is sent or counted, and its links to unsubscribe are valid for nobody.
    """
    perform(
        lambda connected: shown(connected, team, broadcast, contact, json=json),
        data=data,
        database_url=database_url,
    )


async def shown(
    connected: CommandDatabase, team: str | None, broadcast: str, contact: str, *, json: bool
) -> int:
    broadcast_id = as_id(broadcast, "a broadcast")
    db, owner = await of_team(connected, team, broadcast_id)
    try:
        address = email_address(contact).address
    except NotAnAddress as wrong:
        raise CommandRefused(f"{contact!r} is no address. {wrong.reason}") from None
    found = await store.found(db, broadcast_id)
    with ThreadPoolExecutor(1) as threads:
        previews = _previews(connected, threads)
        made = await previews.compose(db, owner.number, found.id, found.content, address)
    if json:
        show_json(msgspec.to_builtins(wire.shown(found.id, found.content.sender, made, None)))
    else:
        _print(made.message)
    return 0


def _print(message: bytes) -> None:
    """Print the message as it is; on a terminal without characters that control it."""
    if not sys.stdout.isatty():
        typer.echo(message, nl=False)
        return
    for line in wire.message_text(message).splitlines():
        say(line)


def _previews(connected: CommandDatabase, threads: ThreadPoolExecutor) -> Previews:
    clock, ring = SystemClock(), connected.key_ring()
    return Previews(
        ids=Ids(clock),
        senders=Senders(connected.pool, clock),
        keys=LinkKeys(connected.pool, clock, ring),
        public_url=connected.settings.public_url,
        ring=ring,
        threads=threads,
    )
