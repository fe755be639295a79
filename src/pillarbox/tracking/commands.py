"""`pillarbox tracking`: what a link of a tracked mail says, and which programs count as machines."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.tracking_tokens import TrackedLink, TrackedRecipient, read_link, read_open
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.tracking.machines import Machines, described
from pillarbox.tracking.settings import TRACKING_MACHINES

group = typer.Typer(
    no_args_is_help=True, help="Look into tracked links, and at the machines that follow them."
)

Link = Annotated[
    str, typer.Argument(metavar="LINK", help="A link or picture of a tracked mail, or its token.")
]


@group.command("machines")
def machines(json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """List the programs whose opens and clicks are marked, those of `tracking_machines` first."""
    perform(lambda connected: listed(connected, json=json), data=data, database_url=database_url)


@group.command("show")
def show(link: Link, json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Show whose link it is, in which email it stands, and where it leads."""
    perform(lambda connected: read(connected, link, json=json), data=data, database_url=database_url)


async def listed(connected: CommandDatabase, *, json: bool) -> int:
    """Print the table."""
    rows = described(Machines(connected.settings[TRACKING_MACHINES]).rows)
    if json:
        names = ("name", "kind", "known_by")
        show_json({"object": "list", "data": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        show_table(("Name", "Kind", "Known by"), rows)
    return 0


async def read(connected: CommandDatabase, link: str, *, json: bool) -> int:
    """Print what the token of the link says."""
    keys = LinkKeys(connected.pool, SystemClock(), connected.key_ring())
    text = link.partition("?")[0].partition("#")[0].rpartition("/")[2].removesuffix(".gif")
    clicked = await read_link(text, keys)
    who = clicked.recipient if clicked is not None else await read_open(text, keys)
    if who is None:
        raise CommandRefused("This is no link or picture of a tracked mail of this installation.")
    shape = _shape(who, clicked)
    if json:
        show_json(shape)
    else:
        show_table(("What", "Value"), [(name.replace("_", " ").capitalize(), shape[name]) for name in shape])
    return 0


def _shape(who: TrackedRecipient, clicked: TrackedLink | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "team_id": who.team_id,
        "email_id": who.email_id,
        "recipient": who.position + 1,
    }
    if clicked is not None:
        found |= {"link": clicked.number + 1, "url": clicked.url}
    return found
