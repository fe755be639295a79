"""Freeing the jobs of processes that are gone (architecture 2.5).

A dead process of this host is seen at once: the table `processes` says which process holds what. Of another
host nothing is known but its leases (`lease_watch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.process.process_table import boot_id, record_process, started
from pillarbox.kernel.work.lease_watch import HeldLeases, LeaseWatch, LostLeases
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN, PAUSES

log = get("jobs")

RECOVER_EVERY = 5.0
RECORD_EVERY = 3600.0
GIVEN_UP_GAP = timedelta(days=1)
"""Much less than `collectors.DEAD_AFTER`."""

# Across teams: who runs jobs, when the first and the last of the leases end, and its process on this host.
HOLDINGS = """
    SELECT h.owner, h.first, h.last, p.pid, p.pid_start
      FROM (SELECT owner, min(leased_until) AS first, max(leased_until) AS last
              FROM jobs
             WHERE owner IS NOT NULL
             GROUP BY owner) AS h
      LEFT JOIN processes p ON p.id = h.owner AND p.host = $1
"""

# Across teams: what the process that is gone had. It counts as a death: `tries` stays behind. What was begun
# $4 times so is given up: at once where its handler ends it, else it is tried once a day. What somebody has
# locked is left for the next time.
FREE = """
    WITH lost AS MATERIALIZED (
        SELECT team_id, id
          FROM jobs
         WHERE owner = $1 AND leased_until <= $2
           FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs j
       SET owner = NULL, leased_until = NULL,
           due_at = CASE WHEN j.begun < $4
                         THEN greatest(j.due_at, $3::timestamptz + ($5::interval[])[j.begun + 1])
                         WHEN j.kind = ANY ($6::text[]) THEN j.due_at
                         ELSE $3::timestamptz + $7::interval END
      FROM lost
     WHERE j.team_id = lost.team_id AND j.id = lost.id
    RETURNING j.id, j.kind, j.begun >= $4 AS given_up
"""

# Across teams: a dead process. Where it still has jobs, its row says that they are nobody's.
FORGET_DEAD = """
    DELETE FROM processes p
     WHERE p.id = $1 AND NOT EXISTS (SELECT FROM jobs j WHERE j.owner IS NOT NULL AND j.owner = p.id)
"""


class JobHolder(NamedTuple):
    """A process that runs jobs; `pid` where it is known to be of this host."""

    owner: UUID
    first: datetime
    last: datetime
    pid: int | None
    pid_start: int | None

    def is_dead(self) -> bool:
        return self.pid is not None and started(self.pid) != self.pid_start


class Recovery:
    """Says that this process is there, and frees what others had that are not."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        owner: UUID,
        roles: str,
        watch: LeaseWatch,
        ended_kinds: Sequence[str] = (),
    ) -> None:
        self._ended_kinds = list(ended_kinds)
        self._pool = pool
        self._clock = clock
        self._owner = owner
        self._roles = roles
        self._watch = watch
        self._recorded = float("-inf")
        self._recovered = float("-inf")

    async def recover(self, every: float = RECOVER_EVERY) -> None:
        """Look, if it was not done in the last `every` seconds. To be called before the first claim, and then
        again and again."""
        boottime = self._clock.boottime()
        if boottime < self._recovered + every:
            return
        self._recovered = boottime
        if boottime >= self._recorded + RECORD_EVERY:
            await record_process(self._pool, self._owner, self._roles, self._clock.now())
            self._recorded = boottime
        with self._watch.restarting():
            await self._free_lost(boottime)

    async def _free_lost(self, boottime: float) -> None:
        holders = [JobHolder(*row) for row in await self._pool.fetch(HOLDINGS, boot_id())]
        lost = self._watch.lost([HeldLeases(*one[:3]) for one in holders], self._clock.now(), boottime)
        lost += [LostLeases(one.owner, one.last) for one in holders if one.is_dead()]
        for one in lost:
            await self._free(one)

    async def _free(self, leases: LostLeases) -> None:
        now = self._clock.now()
        rule = now, MOST_BEGUN, PAUSES, self._ended_kinds, GIVEN_UP_GAP
        freed = await self._pool.fetch(FREE, *leases, *rule)
        if freed:
            log.warning("jobs.recovered", jobs=len(freed))
        for row in freed:
            if row["given_up"]:
                log.error("jobs.ends_processes", kind=row["kind"], job=row["id"])


async def forget_dead(source: Source, process: UUID) -> None:
    """Take a dead process, all of whose other work is free, out of the register."""
    await source.execute(FORGET_DEAD, process)
