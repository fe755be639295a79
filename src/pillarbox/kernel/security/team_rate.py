"""The limit of a team's requests in a second (conventions section 7, docs/decisions/0054).

A node is one running server: the processes that share memory. Where it is the only one that takes requests
of this database, it counts by itself, and exactly. Where there are several, each takes portions of the
limit from the database. Both count in the same windows (`rate_portions`), so none begins anew when nodes
come or go, nor while the processes of a node know different numbers of them. Questions of all teams of a
process go in one statement, at most one at a time; no request waits for one longer than `PATIENCE`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import Counter
from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.kernel.postgres.time_limit import unlimited
from pillarbox.kernel.process.process_table import boot_id
from pillarbox.kernel.security import rate_queries
from pillarbox.kernel.security.rate_limit import Windows, WindowState, key_for
from pillarbox.kernel.security.rate_portions import (
    ASK_SECONDS,
    PATIENCE,
    Offer,
    Portions,
    QuotaGrant,
    QuotaRequest,
)
from pillarbox.kernel.work.queue_poll import woken

log = get("rate_limit")

LOOK_SECONDS: Final = 1.0
SHOW_EVERY: Final = 4.0
"""Seconds after which a node that is alone says again that it lives: not half of `rate_queries.LIVES`."""

SHOWN_SECONDS: Final = 60.0
PAUSE: Final = 0.004
"""Seconds from one statement of a process to the next, at least."""

GATHER: Final = 0.05
"""For so long questions wait for others of their process, unless a request waits for the answer."""

STEP: Final = 0.001
MOST_QUESTIONS: Final = 1000

NODES_KEY: Final = key_for("rate limit nodes")

QUESTIONS = Counter(
    "pillarbox_rate_limit_questions",
    "Portions of rate limits that were asked for, by outcome: granted, spent, no_answer.",
    ("outcome",),
    known=[("granted",), ("spent",), ("no_answer",)],
)


class TeamRate:
    """Counts the requests of teams. `is_first`: this process says for its node that it lives."""

    def __init__(
        self, windows: Windows, fd: int, pool: asyncpg.Pool, clock: Clock, *, is_first: bool = True
    ) -> None:
        self._windows = windows
        self._portions = Portions(fd, clock)
        self._pool = pool
        self._clock = clock
        self._is_first = is_first
        self._node = node_id(fd)
        self._due: dict[bytes, int] = {}
        self._asks: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._others = asyncio.Event()
        self._failures = LoopFailures("rate_limit.ask")
        self.nodes = 1

    async def take(self, team_id: UUID, limit: int) -> WindowState:
        """Count one request of the team, or refuse it without counting; 0 is no limit and is not asked."""
        offer = self._offer(team_id.bytes, limit)
        if offer.may_wait:
            until = self._clock.boottime() + PATIENCE
            while offer.may_wait and self._clock.boottime() < until:
                await self._clock.sleep(STEP)
                offer = self._offer(team_id.bytes, limit, again=True)
        return offer.taken

    def take_now(self, team_id: UUID, limit: int) -> WindowState:
        """Count one request of the team or refuse it, without waiting for a portion that is on its way."""
        return self._offer(team_id.bytes, limit).taken

    async def look(self) -> None:
        """Say that this node lives, and find out how many there are; without a database it is as before."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                nodes = await rate_queries.show_node(self._pool, self._node)
        except TROUBLE:
            return
        self._windows.show(NODES_KEY, nodes, SHOWN_SECONDS)
        self._set(nodes)

    def look_again(self) -> None:
        """Have other nodes looked for again: there are some, or were at the last look."""
        self._others.set()

    async def run(self) -> None:
        """Look once a second where there are other nodes; the other processes of the node read what the first
        one has found."""
        failures = LoopFailures("rate_limit.show_node")
        while True:
            if self._is_first:
                await woken(self._others, max(SHOW_EVERY, failures.pause))
                await failures.attempt(self.look())
            else:
                await self._clock.sleep(LOOK_SECONDS)
                self._set(self._windows.shown(NODES_KEY) or self.nodes)

    async def leave(self) -> None:
        """Note that the node ends; the others share its part from their next look on."""
        if self._asks is not None:
            self._asks.cancel()
            await asyncio.gather(self._asks, return_exceptions=True)
        if not self._is_first:
            return
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await rate_queries.remove_node(self._pool, self._node)
        except TROUBLE as trouble:
            log.info("rate_limit.not_left", trouble=repr(trouble)[:200])

    def _set(self, nodes: int) -> None:
        if nodes != self.nodes:
            log.info("rate_limit.nodes", nodes=nodes)
        self.nodes = nodes

    def _offer(self, key: bytes, limit: int, *, again: bool = False) -> Offer:
        offer = self._portions.take(key, limit, self.nodes, again=again)
        if offer.must_ask:
            self._due[key] = limit
            if offer.may_wait:
                self._hurry.set()
            if self._asks is None or self._asks.done():
                self._asks = asyncio.create_task(self._ask_all(), context=unlimited())
        return offer

    async def _ask_all(self) -> None:
        while self._due:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GATHER):
                    await self._hurry.wait()
            self._hurry.clear()
            due = list(self._due.items())[:MOST_QUESTIONS]
            for key, _ in due:
                del self._due[key]
            found = [self._portions.question(key, limit, self.nodes) for key, limit in due]
            if questions := [question for question in found if question is not None]:
                await self._ask(questions)
            await asyncio.sleep(max(PAUSE, self._failures.pause))

    async def _ask(self, questions: Sequence[QuotaRequest]) -> None:
        sent = self._clock.boottime()
        try:
            async with asyncio.timeout(ASK_SECONDS):
                answers = await rate_queries.take_portions(self._pool, questions, self.nodes)
        except TROUBLE as trouble:
            QUESTIONS.add(len(questions), ("no_answer",))
            self._failures.failed(trouble, teams=len(questions))
            return
        self._failures.succeeded()
        for question in questions:
            answer: QuotaGrant = answers[question.key]
            QUESTIONS.add(1, ("granted" if answer.granted or not question.wanted else "spent",))
            self._portions.apply(question, answer, sent)


def node_id(fd: int) -> str:
    """Return an id of the processes that share this memory; different for every other server, on
    any machine."""
    memory = os.fstat(fd)
    return f"{boot_id()}/{memory.st_dev}:{memory.st_ino}"
