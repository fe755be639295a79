"""One poll for all queues of a host: one statement a second (docs/decisions/0172).

Each loop that works on rows hands in a question, which PostgreSQL answers with true or false from an index.
The questions are asked together, by the process whose turn comes first. It shows the answers to the others in
the memory that they share, and these read them at their own turns. Answers that are older than `FRESH` are
asked for again, so no process depends on another one.

A loop is woken where its question is answered with true, and in any case where the database does not answer:
so the loop itself meets the trouble, and says so. Beside that it looks by itself every `SELDOM` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.security.rate_limit import Windows, key_for

POLL_EVERY: Final = 1.0
FRESH: Final = 0.9
"""Seconds for which answers are shown to other processes: less than `POLL_EVERY`, or one finds its own."""

MOST_QUESTIONS: Final = 31
SHOWN: Final = 1 << MOST_QUESTIONS
"""A bit of what is shown, beside one for each question."""

SELDOM: Final = 60.0
"""Seconds between two looks of a loop that the poll wakes."""

TIMEOUT: Final = 5.0


class QueueQuestion(NamedTuple):
    """Whether a loop has something to do: `sql` is one SELECT of a boolean, in which `$1` is the time of now.
    `wake` tells the loop, also while `keeps` says that it holds something that it has read: what it holds may
    be newer than the answer, and over before the next one."""

    sql: str
    wake: Callable[[], None]
    keeps: Callable[[], bool]


class QueuePoll:
    """Asks the questions of this process together, or reads what another process of the host has asked."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, windows: Windows) -> None:
        self._pool = pool
        self._clock = clock
        self._windows = windows
        self._key = b""
        self._questions: list[QueueQuestion] = []
        self._sql = ""

    def add(self, sql: str, wake: Callable[[], None], *, keeps: Callable[[], bool] = lambda: False) -> None:
        """Ask this question from the next poll on."""
        if len(self._questions) == MOST_QUESTIONS:
            raise ValueError(f"a poll has room for {MOST_QUESTIONS} questions")
        self._questions.append(QueueQuestion(sql, wake, keeps))
        answers = ", ".join(f"coalesce(({question.sql}), false)" for question in self._questions)
        # The parameter has a type and a place, also where no question needs it.
        self._sql = f"SELECT ARRAY[{answers}] WHERE $1::timestamptz IS NOT NULL"
        # Processes with other questions have other answers.
        self._key = key_for(self._sql)

    async def look(self) -> None:
        """Find out, and wake the loops that have something to do."""
        if not self._questions:
            return
        busy = [True] * len(self._questions)
        try:
            busy = self._shown() or await self._ask()
        finally:
            for question, is_busy in zip(self._questions, busy, strict=True):
                if is_busy or question.keeps():
                    question.wake()

    def _shown(self) -> list[bool] | None:
        shown = self._windows.shown(self._key)
        if not shown:
            return None
        return [bool(shown >> place & 1) for place in range(len(self._questions))]

    async def _ask(self) -> list[bool]:
        # Dated before the database looks: a reader takes nothing for newer than it is.
        began = self._clock.boottime()
        answers: list[bool] = await self._pool.fetchval(self._sql, self._clock.now(), timeout=TIMEOUT)
        bits = sum(answer << place for place, answer in enumerate(answers))
        self._windows.show(self._key, SHOWN | bits, FRESH - (self._clock.boottime() - began))
        return answers

    async def run(self) -> None:
        """Look once a second; loops add their questions before."""
        failures, time = LoopFailures("queues.poll"), asyncio.get_running_loop().time
        while self._questions:
            began = time()
            await failures.attempt(self.look())
            await asyncio.sleep(max(began + POLL_EVERY - time(), failures.pause))


async def woken(news: asyncio.Event, seconds: float) -> None:
    """Return when there is news, or after so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
    news.clear()
