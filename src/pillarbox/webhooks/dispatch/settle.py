"""Settling: the ends of many attempts in one transaction (architecture 2.5).

A settlement is not given up while the database is away: it waits and is tried again. One that the database
refuses again and again, for a reason nobody foresaw, is given up at last; its delivery is made once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import OUTAGES, RETRIED, transaction
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.process import faults
from pillarbox.webhooks import health
from pillarbox.webhooks.dispatch import prometheus, queries
from pillarbox.webhooks.dispatch.deliveries import AttemptVerdict, DeliverySettlement, Key
from pillarbox.webhooks.failure_clock import AttemptEnd

log = get("webhooks")

PAUSE = 0.5
MOST_REFUSALS = 10
LINGER_SECONDS = 0.01
COUNTED = frozenset({"success", "retry", "failed"})


class DeliverySettler:
    """Writes settlements; `settle` returns when one is committed."""

    def __init__(self, pool: asyncpg.Pool, ids: Ids, owner: UUID) -> None:
        self._pool = pool
        self._ids = ids
        self._owner = owner
        self._failures = LoopFailures("webhooks.settle")
        self.is_out = False
        """Nothing can be stored: what is told meanwhile might be told again."""

        self._commits: GroupCommit[DeliverySettlement, None] = GroupCommit(
            self._flush,
            kind="webhooks",
            weigh=lambda s: len(s.answer.response),
            most_waiting=1 << 40,
            flushers=1,
            linger=LINGER_SECONDS,
            shared=RETRIED,
        )

    async def settle(self, settlement: DeliverySettlement) -> None:
        """Return when the settlement is committed, however long the database is away."""
        refusals = 0
        while True:
            try:
                await faults.point("webhooks.after_answer")
                await self._commits.submit(settlement)
                self._failures.succeeded()
                self.is_out = False
                return
            except RETRIED as trouble:
                self.is_out = self.is_out or isinstance(trouble, OUTAGES)
                self._failures.failed(trouble)
            except Exception as trouble:
                refusals += 1
                if refusals == MOST_REFUSALS:
                    self.is_out = False
                    raise
                self._failures.failed(trouble, refusals=refusals)
            await asyncio.sleep(PAUSE)

    async def _flush(self, batch: Sequence[DeliverySettlement]) -> Sequence[None]:
        if all(settlement.verdict is AttemptVerdict.SUCCESS for settlement in batch):
            await faults.point("webhooks.in_settle")
            await queries.settle(self._pool, batch, self._owner, all_well=True)
        else:
            await self._with_failures(batch)
        prometheus.settled(batch)
        return [None] * len(batch)

    async def _with_failures(self, batch: Sequence[DeliverySettlement]) -> None:
        """Settle a batch and apply its results to the webhooks' health, which decides whether failures
        disable them."""
        async with transaction(self._pool) as conn:
            outcomes = await queries.settle(conn, batch, self._owner, all_well=False)
            await health.record(conn, _results(batch, outcomes), self._ids)
            await faults.point("webhooks.in_settle")


def _results(batch: Sequence[DeliverySettlement], outcomes: dict[Key, str]) -> list[AttemptEnd]:
    """Return the results that count for the failure clocks: every attempt of a delivery that was ours to
    settle."""
    return [
        AttemptEnd(
            *s.delivery.key[:3],
            s.ended_at,
            s.answer.code,
            s.answer.succeeded,
            exhausted=s.verdict is AttemptVerdict.FAILED and not s.delivery.is_replay,
            replayed=s.delivery.is_replay,
        )
        for s in batch
        if outcomes.get(s.delivery.key) in COUNTED
    ]
