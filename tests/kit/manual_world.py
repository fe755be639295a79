"""Two kinds of world whose time and work the test moves by hand.

`manual_world` has a manual clock, and nothing runs by itself: the test calls `turn()` for the delivery engine
and `run_jobs()` for the background jobs. `relayed_world` hands its mail to an SMTP server inside the test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any

from kit.clock import ManualClock
from kit.smtp_sink import Message, Sink
from kit.world import World, world
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.work.jobs import Jobs


@asynccontextmanager
async def manual_world(
    database_url: str, folder: Path, clock: ManualClock | None = None, **settings: Any
) -> AsyncIterator[World]:
    """Yield a Pillarbox whose time and work the test moves by hand."""
    made = clock or ManualClock()
    async with world(database_url, folder, clock=made, started=False, **settings) as pillarbox:
        yield pillarbox
        await pillarbox.app.need(Outbound).close()


@asynccontextmanager
async def relayed_world(
    database_url: str, folder: Path, **settings: Any
) -> AsyncIterator[tuple[World, Sink]]:
    """Yield a Pillarbox with a smarthost that accepts everything, driven by hand."""
    async with Sink() as sink:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        async with manual_world(database_url, folder, route=route, **settings) as pillarbox:
            yield pillarbox, sink


def clock_of(pillarbox: World) -> ManualClock:
    """Return the manual clock of this world."""
    assert isinstance(pillarbox.clock, ManualClock)
    return pillarbox.clock


async def run_jobs(pillarbox: World) -> int:
    """Run the background jobs that are due; returns how many there were. Time moves by a millisecond."""
    clock_of(pillarbox).advance(0.001)
    started = await pillarbox.app.need(Jobs).look()
    await pillarbox.app.need(Jobs).idle()
    return started


def parsed(message: Message) -> EmailMessage:
    """Return what arrived, as the standard library reads it."""
    return BytesParser(policy=default).parsebytes(message.content)
