"""Writing the log of requests (contract decision 34).

Rows of writes are written where the write is. Rows of requests that wrote nothing are committed together, by
whoever comes while the commit before is running. Rows of reads wait in memory for a moment; when too many
wait, new ones are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import Counter
from pillarbox.kernel.observability.request_log import RequestRecord, ResponseRecord
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.security.authentication import Caller
from pillarbox.logs import entries, queries
from pillarbox.logs.entries import row_of, without_large_body
from pillarbox.logs.policy import LogPolicy

log = get("logs")

FLUSH_SECONDS: Final = 0.25
MOST_WAITING: Final = 4 * 1024 * 1024
"""Octets of answers that wait to be written."""
OVERHEAD: Final = 1024
AT_ONCE: Final = 500

DROPPED = Counter(
    "pillarbox_logs_dropped_total", "Log rows that were given up because there was too much to do."
)


class RequestLog:
    """The request log over table `logs`."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, policy: LogPolicy) -> None:
        self._pool = pool
        self._clock = clock
        self._policy = policy
        self._later: list[ResponseRecord] = []
        self._weight = 0
        self._failures = LoopFailures("logs.write")
        self._alone: GroupCommit[ResponseRecord, None] = GroupCommit(
            self._commit, kind="log", flushers=1, weigh=_weight_of, most_waiting=8 * MOST_WAITING
        )

    def keeps(self, caller: Caller) -> bool:
        days = caller.log_days
        return (self._policy.days if days is None else days) > 0

    def measure(self, asked: RequestRecord) -> None:
        entries.measure(asked)

    def rows(self, answered: Sequence[ResponseRecord]) -> Statement:
        return queries.insert([row_of(found) for found in answered])

    async def keep(self, conn: Source, answered: Sequence[ResponseRecord]) -> None:
        sql, args = self.rows(answered)
        await conn.execute(sql, *args)

    async def keep_alone(self, answered: ResponseRecord) -> None:
        try:
            await self._alone.submit(answered)
        except Exception as trouble:
            # The answer is what it is, whether or not it can be written down.
            self._give_up(1, trouble)

    def keep_later(self, answered: ResponseRecord) -> None:
        answered = without_large_body(answered)
        weight = _weight_of(answered)
        if self._weight + weight > MOST_WAITING:
            DROPPED.add()
            return
        self._weight += weight
        self._later.append(answered)

    async def run(self) -> None:
        """Write what waits, four times a second, and once more when cancelled."""
        try:
            while True:
                await self._clock.sleep(max(FLUSH_SECONDS, self._failures.pause))
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Write what waits; what cannot be written is dropped."""
        waiting, self._later = self._later, []
        for at in range(0, len(waiting), AT_ONCE):
            some = waiting[at : at + AT_ONCE]
            try:
                await self._commit(some)
                self._failures.succeeded()
            except Exception as trouble:
                self._give_up(len(some), trouble)
            finally:
                self._weight -= sum([_weight_of(found) for found in some])

    async def drain(self) -> None:
        """Return when no row is being committed."""
        await self._alone.drain()

    async def _commit(self, answered: Sequence[ResponseRecord]) -> Sequence[None]:
        await self.keep(self._pool, answered)
        return [None] * len(answered)

    def _give_up(self, rows: int, trouble: Exception) -> None:
        DROPPED.add(rows)
        self._failures.failed(trouble, rows=rows)


def _weight_of(answered: ResponseRecord) -> int:
    return OVERHEAD + answered.asked.size + len(answered.body or b"")
