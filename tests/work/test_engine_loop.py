"""What the engines of all tables of work have in common (`kernel.work.engine_loop`)."""

from __future__ import annotations

import asyncio

from kit.clock import ManualClock
from pillarbox.kernel.work.engine_loop import EngineLoop

LONG = 60.0


class Looks:
    """Looks for work that wait until they are let go on."""

    def __init__(self, loop: EngineLoop) -> None:
        self.news = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.may_end = asyncio.Semaphore(0)
        loop.look("look", self.look, lambda: LONG, self.news)

    async def look(self) -> None:
        self.begun.release()
        await self.may_end.acquire()


async def test_news_during_a_look_bring_about_another_one() -> None:
    loop = EngineLoop("jobs", ManualClock())
    looks = Looks(loop)
    await looks.begun.acquire()
    looks.news.set()
    looks.may_end.release()
    await asyncio.wait_for(looks.begun.acquire(), 10)
    await loop.stop_looking()
    assert not loop.is_running


async def test_what_has_a_rhythm_goes_on_until_the_last_attempt_has_ended() -> None:
    """Leases are renewed while a stop waits for attempts."""
    clock = ManualClock()
    loop, may_end, renewed = EngineLoop("jobs", clock), asyncio.Event(), asyncio.Semaphore(0)

    async def attempt() -> None:
        await may_end.wait()

    async def renew() -> None:
        renewed.release()
        raise OSError("the database is away")

    loop.repeat("renew", renew, 5.0)
    loop.begin(attempt())
    await loop.stop_looking()
    waiting = asyncio.create_task(loop.wait(LONG))
    for _ in range(2):
        await clock.slept(5.0)
        clock.advance(5.0)
        await asyncio.wait_for(renewed.acquire(), 10)
    assert not waiting.done()
    may_end.set()
    await asyncio.wait_for(waiting, 10)
    await loop.end()


async def test_an_attempt_that_does_not_end_in_time_is_cut_off() -> None:
    loop, is_cut_off = EngineLoop("jobs", ManualClock()), asyncio.Event()

    async def attempt() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            is_cut_off.set()

    task = loop.begin(attempt())
    await loop.wait(0.01)
    assert not task.done()
    await loop.end()
    assert is_cut_off.is_set()
    await loop.idle()
