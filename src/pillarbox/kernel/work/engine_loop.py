"""The common part of engines, for all tables of work: their loops, their attempts, and how they stop.

An engine claims rows, hands each to an attempt, and writes the outcome. Around that:

- It looks for work when it is woken, and by itself after a pause. A look that fails is made again, later each
  time (`LoopFailures`). News that come during a look bring about another one.
- Repeated work, such as renewing leases, goes on whatever fails, until the last attempt ends.
- A stop ends the looks (`stop_looking`), gives attempts a time to end (`wait`), and cuts off the rest
  (`end`). The engine gives back what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.work.queue_poll import woken

Work = Callable[[], Awaitable[object]]


class EngineLoop:
    """The loops and attempts of one engine. `part` is the first word of the events that it logs."""

    def __init__(self, part: str, clock: Clock) -> None:
        self._part = part
        self._clock = clock
        self._looks: list[asyncio.Task[None]] = []
        self._rhythms: list[asyncio.Task[None]] = []
        self._attempts: set[asyncio.Task[None]] = set()

    @property
    def is_running(self) -> bool:
        """Whether the engine looks for work."""
        return bool(self._looks)

    def look(self, name: str, work: Work, pause: Callable[[], float], news: asyncio.Event) -> None:
        """Do `work` from now on when there is news, and after `pause()` seconds without any."""
        self._looks.append(asyncio.create_task(self._looking(name, work, pause, news)))

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Let this run for ever, until `stop_looking`."""
        self._looks.append(asyncio.create_task(work))

    def repeat(self, name: str, work: Work, every: float) -> None:
        """Do `work` every so many seconds from now on, until `end`."""
        self._rhythms.append(asyncio.create_task(self._repeating(name, work, every)))

    def begin(self, attempt: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let this run beside the loops, until it ends or `end` cuts it off."""
        task = asyncio.create_task(attempt)
        self._attempts.add(task)
        task.add_done_callback(self._attempts.discard)
        return task

    async def idle(self) -> None:
        """Return when no attempt runs."""
        while self._attempts:
            await asyncio.wait(tuple(self._attempts))

    async def stop_looking(self) -> None:
        """Look for nothing more; a look that is under way is cut off."""
        await _cut_off(self._looks)
        self._looks = []

    async def wait(self, grace: float) -> None:
        """Wait so many seconds for the attempts; leases are renewed meanwhile."""
        if self._attempts:
            await asyncio.wait(tuple(self._attempts), timeout=grace)

    async def end(self) -> None:
        """Cut off what runs."""
        await _cut_off([*self._rhythms, *self._attempts])
        self._rhythms = []

    async def _looking(self, name: str, work: Work, pause: Callable[[], float], news: asyncio.Event) -> None:
        failures = LoopFailures(f"{self._part}.{name}")
        while True:
            news.clear()
            if await failures.attempt(work()):
                await woken(news, pause())
            else:
                await asyncio.sleep(failures.pause)

    async def _repeating(self, name: str, work: Work, every: float) -> None:
        failures = LoopFailures(f"{self._part}.{name}")
        while True:
            # Leases do not wait for longer pauses: what fails is tried again at the next turn.
            await self._clock.sleep(every)
            await failures.attempt(work())


async def _cut_off(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = tuple(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
