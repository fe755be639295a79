"""`pillarbox demo`: a team of its own to look around in, with a month of mail of a small shop."""

from __future__ import annotations

from typing import Annotated, Final

import asyncpg
import typer

from pillarbox.demo.making import DemoTeam, NoSimulator, find_demo, is_in_use, make_demo
from pillarbox.demo.removal import remove_demo
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.observability import log
from pillarbox.kernel.terminal.answers import CommandRefused, Json, counted, perform, say, show_json
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl

Remove = Annotated[bool, typer.Option("--remove", help="Take the demo away, with all of its rows and files.")]
Yes = Annotated[bool, typer.Option("--yes", help="Add the demo to an installation that is in use as well.")]

LOOK_AT: Final = (
    ("/dashboard", "the month at a glance, and a domain that needs attention"),
    ("/dashboard/emails", "choose bounced, then open one: why it is like this"),
    ("/dashboard/metrics", "the day of the letter to an old list, which went wrong"),
    ("/dashboard/webhooks", "an afternoon without an answer, and deliveries to replay"),
    ("/dashboard/domains", "two that work, and one whose DKIM record is missing"),
)
"""Screens, and what there is to see."""

EXISTS: Final = (
    "There is a demo already. `pillarbox demo --remove` takes it away; then another one can be made. "
    "`pillarbox people reset {email}` prints a link for another password."
)
IN_USE: Final = (
    "This installation is in use: it has several teams, or mail. A demo is a team of its own beside "
    "them, and "
    "--yes adds it."
)
NO_SIMULATOR: Final = (
    "This installation has no --simulator-domains, so mail to people of a demo would leave it."
)


def command(
    remove: Remove = False,
    yes: Yes = False,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a team with a month of believable mail to look around in; --remove takes it away.

    May run beside a live server. Mail of the demo goes to the simulator, whatever the server's route is.
    """

    async def work(connected: CommandDatabase) -> int:
        return await (take_away(connected, json=json) if remove else fill(connected, is_sure=yes, json=json))

    perform(work, data=data, database_url=database_url)


async def fill(connected: CommandDatabase, *, is_sure: bool, json: bool) -> int:
    """Make the demo and say how to look at it."""
    pool, settings = connected.pool, connected.settings
    connected.key_ring()
    if (demo := await find_demo(pool)) is not None:
        raise CommandRefused(EXISTS.format(email=demo.email))
    if not is_sure and await is_in_use(pool):
        raise CommandRefused(IN_USE)
    if not json:
        say("Making a month of mail; it takes up to a minute.")
    # What happens in the month is no news of this installation.
    log.configure(settings.log, level="error")
    try:
        made = await make_demo(pool, settings, SystemClock().now())
    except NoSimulator:
        raise CommandRefused(NO_SIMULATOR) from None
    except asyncpg.UniqueViolationError as clash:
        raise CommandRefused(f"Another team has something of the demo's: {clash.table_name}.") from None
    show(made, connected.server or settings.public_url, json=json)
    return 0


def show(demo: DemoTeam, server: str, *, json: bool) -> None:
    """Print what a visitor needs."""
    if json:
        shown = {"object": "demo", "team_id": demo.id, "name": demo.name, "url": f"{server}/dashboard"}
        show_json({**shown, "email": demo.email, "password": demo.password, "token": demo.token})
        return
    say(f"team      {demo.name}, {demo.id}")
    say(f"log in    {server}/login")
    say(f"address   {demo.email}")
    say(f"password  {demo.password} (shown only now)")
    say(f"api key   {demo.token} (shown only now)")
    say()
    say("What to look at:")
    for path, what in LOOK_AT:
        say(f"  {path:<21}{what}")
    say()
    say("`pillarbox demo --remove` takes it away.")


async def take_away(connected: CommandDatabase, *, json: bool) -> int:
    """Remove the demo and say how much it was."""
    removal = await remove_demo(connected.pool, connected.settings.blobs)
    if removal is None:
        raise CommandRefused("There is no demo here; nothing was changed.")
    if json:
        show_json({"object": "demo", "deleted": True, "rows": removal.rows, "blobs": removal.blobs})
        return 0
    say(f"The demo is gone: {counted(removal.rows, 'row')} and {counted(removal.blobs, 'file')}.")
    if removal.left_blobs:
        say(
            f"{counted(removal.left_blobs, 'file')} could not be deleted; `pillarbox verify --collect` "
            f"does it."
        )
    return 0
