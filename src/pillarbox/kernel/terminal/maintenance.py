"""`pillarbox maintenance`: refuse new requests and mail while the queue is delivered, and accept them
again."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from pillarbox.kernel.http import maintenance
from pillarbox.kernel.terminal.answers import perform, say
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl

group = typer.Typer(no_args_is_help=True, help="Put API and SMTP clients off, and let them in again.")

RetryAfter = Annotated[
    int,
    typer.Option(
        metavar="SECONDS",
        min=1,
        max=maintenance.LONGEST_RETRY,
        help="After how long clients are told to come again.",
    ),
]


@group.command("on")
def on(
    retry_after: RetryAfter = maintenance.RETRY_AFTER, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Answer API requests with 503 and SMTP with 451; the queue goes on. Ends when all processes know."""
    perform(lambda connected: begin(connected, retry_after), data=data, database_url=database_url)


@group.command("off")
def off(data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Let everybody in again. Ends when all processes know."""
    perform(end, data=data, database_url=database_url)


@group.command("status")
def status(data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Say whether maintenance is on; the exit status is 1 when it is."""
    perform(show_state, data=data, database_url=database_url)


async def begin(connected: CommandDatabase, retry_after: int) -> int:
    await maintenance.begin(connected.pool, retry_after)
    await asyncio.sleep(maintenance.KNOWN_SECONDS)
    say(f"Maintenance is on; clients are told to come again after {retry_after} s.")
    return 0


async def end(connected: CommandDatabase) -> int:
    await maintenance.end(connected.pool)
    await asyncio.sleep(maintenance.KNOWN_SECONDS)
    say("Maintenance is off.")
    return 0


async def show_state(connected: CommandDatabase) -> int:
    retry_after = await maintenance.current(connected.pool)
    say("Maintenance is off." if retry_after is None else f"Maintenance is on ({retry_after} s).")
    return int(retry_after is not None)
