"""The leases of a process on one table of work, and those of processes that are gone (architecture 2.5).

- A process claims rows, and renews what takes longer than a lease. It may trust a lease until `deadline`, on
  a clock that never jumps; then another process may have the row.
- What it gives back is free at once: being stopped is no death.
- A holder is dead that was a process of this host, by the table `processes`, and is none any more: what it
  had is free at once. Of others nothing is known but their leases: `lease_watch` says when these have really
  run out (DUR-09). The same goes for one that is not in the table: a clock that is a day ahead may remove the
  rows of processes that live.
- What becomes of work that ended its processes says `lone_attempts` (DUR-13).
- Whoever stood still and comes back finds another owner or attempt in its row: outcomes name both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.process import queries as process_queries
from pillarbox.kernel.process.process_table import boot_id, record_process, started
from pillarbox.kernel.work.lease_table import MOST_FREED, LeaseTable, forget_process
from pillarbox.kernel.work.lease_watch import HeldLeases, LeaseWatch, LostLeases

RECOVER_EVERY: Final = 5.0
RECORD_EVERY: Final = 3600.0
"""Much less than `collectors.DEAD_AFTER`."""

FAR: Final = datetime(9999, 1, 1, tzinfo=UTC)

Key = tuple[Any, ...]
"""The values of the key columns of a row."""


class LeaseHolder(NamedTuple):
    """A process that holds rows, from the `first` lease that ends to the `last`; without a `pid` it is not in
    the register."""

    owner: UUID
    first: datetime
    last: datetime
    host: str | None
    pid: int | None
    pid_start: int | None

    def is_dead(self) -> bool:
        """Return whether it is gone for certain."""
        return self.pid is not None and self.host == boot_id() and started(self.pid) != self.pid_start


class Leases:
    """`loss_values` gives the values of the table's `on_loss` at an instant; `margin` is how many seconds
    before its end a holder begins nothing under a lease any more."""

    def __init__(
        self,
        table: LeaseTable,
        pool: asyncpg.Pool,
        clock: Clock,
        owner: UUID,
        *,
        margin: float = 0.0,
        loss_values: Callable[[datetime], Sequence[Any]] = lambda now: (),
    ) -> None:
        self._table = table
        self._pool = pool
        self._clock = clock
        self._owner = owner
        self._margin = margin
        self._loss_values = loss_values
        self._watch = LeaseWatch(table.lease.total_seconds(), table.renewed_every)
        self._recorded = self._recovered = float("-inf")

    def deadline(self) -> float:
        """Boot time until which a lease that is taken now may be trusted."""
        return self._clock.boottime() + self._table.lease.total_seconds() - self._margin

    async def renew(self, keys: Collection[Key]) -> set[Key]:
        """Let these last for another lease; returns those that were renewed."""
        if not keys:
            return set()
        until = self._clock.now() + self._table.lease
        rows = await self._pool.fetch(
            self._table.renew, *_columns(keys), self._owner, until, until + self._table.lease / 2
        )
        return {tuple(row) for row in rows}

    async def give_back(
        self, attempts: Mapping[Key, int], instant: datetime | None = None, source: Source | None = None
    ) -> None:
        """Free what this process has claimed by these attempts, in the transaction of `source` where it is
        given; `instant` is the `$at` of the table."""
        if attempts:
            keys = sorted(attempts)
            values = [instant] if "$at" in self._table.on_return else []
            await (source or self._pool).execute(
                self._table.give_back, *_columns(keys), [attempts[key] for key in keys], self._owner, *values
            )

    async def record(self, roles: str, every: float = RECORD_EVERY) -> None:
        """Write down that this process is there, unless it was done in the last `every` seconds. Before its
        first claim, and again and again."""
        boottime = self._clock.boottime()
        if boottime >= self._recorded + every:
            await record_process(self._pool, self._owner, roles, self._clock.now())
            self._recorded = boottime

    async def recover(self, every: float = 0.0) -> list[asyncpg.Record]:
        """Free what others had that are gone, unless it was done in the last `every` seconds; returns the
        rows."""
        boottime = self._clock.boottime()
        if boottime < self._recovered + every:
            return []
        self._recovered = boottime
        with self._watch.restarting():
            return await self._free_lost(boottime)

    async def _free_lost(self, boottime: float) -> list[asyncpg.Record]:
        now = self._clock.now()
        holders = [LeaseHolder(*row) for row in await self._pool.fetch(self._table.holders)]
        lost = self._watch.lost([HeldLeases(*holder[:3]) for holder in holders], now, boottime)
        lost += [LostLeases(h.owner, FAR) for h in holders if h.owner != self._owner and h.is_dead()]
        freed: list[asyncpg.Record] = []
        for leases in lost:
            freed += await self._pool.fetch(self._table.free, *leases, MOST_FREED, *self._loss_values(now))
        return freed


def _columns(keys: Collection[Key]) -> list[tuple[Any, ...]]:
    """Return the keys, column by column, in order: two processes never wait for each other crosswise."""
    return list(zip(*sorted(keys), strict=True))


async def dead_processes(source: Source) -> list[UUID]:
    """Return the processes of this host that are in the register and gone."""
    registered = await process_queries.registered_at(source, boot_id())
    return [process.id for process in registered if started(process.pid) != process.pid_start]


async def forget(source: Source, process: UUID) -> None:
    """Take a process out of the register that ends or is dead, unless it still holds work of some kind: where
    it does, its row says that it is gone."""
    await source.execute(forget_process(), process)
