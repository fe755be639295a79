"""Leases of all tables of work under random claims, deaths, freezes and steps of clocks (DUR-09, DUR-13).

Processes of other hosts claim, renew, give back and recover as the engines do; some die, some stand still and
come back, and the wall clocks of some jump. A plain record of what each process believes is compared with the
rows after every step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import asyncpg
import pytest

from kit.clock import START, ManualClock
from pillarbox.automations.execution.work_queries import STEPS
from pillarbox.delivery import lease_expiry
from pillarbox.delivery.queries import ITEMS
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.kernel.process import process_table
from pillarbox.kernel.work import claim_queries, jobs
from pillarbox.kernel.work.lease_table import LeaseTable
from pillarbox.kernel.work.leases import Leases
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN, PAUSES
from pillarbox.webhooks.dispatch import claims as webhook_claims

pytestmark = pytest.mark.sweep

Row = tuple[Any, ...]

ROWS: Final = 12
STEPS_OF_A_WALK: Final = 150
TEAM: Final = UUID(int=1)

ADD: Final = {
    "deliveries": """
        INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
        VALUES ($1, $2, 0, 'quay.example', $3, true, $3) RETURNING team_id, email_id, grp""",
    "webhook_deliveries": """
        INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at)
        VALUES ($1, $2, $2, 'email.sent', $3, 0, $3) RETURNING team_id, webhook_id, event_id, replay""",
    "jobs": """
        INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
        VALUES ($1, $2, 'x', $2, $3, $3) RETURNING team_id, id""",
    "automation_work": """
        INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting)
        VALUES ($1, $2, 0, $2, $3, false) RETURNING team_id, run_id, position""",
}

REGISTER: Final = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES ($1, 'elsewhere', 1, 1, 'x', $2, $2)
"""


@dataclass(frozen=True)
class Kind:
    """A table, how a process holds rows of it, and what it may rely on."""

    table: LeaseTable
    make: Callable[[asyncpg.Pool, ManualClock, UUID], Any]
    margin: float
    is_renewed: bool = True
    trusts_in_jumps: bool = False
    """Whether a lease may be trusted although clocks jump: what an outcome cannot fence needs that."""


def _plain(
    table: LeaseTable, margin: float, *values: Any
) -> Callable[[asyncpg.Pool, ManualClock, UUID], Any]:
    def make(pool: asyncpg.Pool, clock: ManualClock, owner: UUID) -> Leases:
        given = (lambda now: (now, *values)) if values else (lambda now: ())
        return Leases(table, pool, clock, owner, margin=margin, loss_values=given)

    return make


def _items(pool: asyncpg.Pool, clock: ManualClock, owner: UUID) -> ItemClaims:
    return ItemClaims(pool, clock, owner, None, None)  # type: ignore[arg-type]


KINDS: Final = {
    "deliveries": Kind(ITEMS, _items, lease_expiry.MARGIN, trusts_in_jumps=True),
    "webhook_deliveries": Kind(
        webhook_claims.DELIVERIES,
        _plain(webhook_claims.DELIVERIES, webhook_claims.MARGIN),
        webhook_claims.MARGIN,
    ),
    "jobs": Kind(
        claim_queries.JOBS,
        _plain(claim_queries.JOBS, jobs.MARGIN, PAUSES, MOST_BEGUN, [], timedelta(days=1)),
        jobs.MARGIN,
    ),
    "automation_work": Kind(STEPS, _plain(STEPS, 0.0, PAUSES), 0.0, is_renewed=False),
}


@dataclass
class Process:
    """What a process believes: the rows that it has claimed, the attempts, and until when it trusts that."""

    id: UUID
    clock: ManualClock
    leases: Any
    held: dict[Row, int] = field(default_factory=dict)
    trusted: dict[Row, float] = field(default_factory=dict)
    renewed_at: float = 0.0
    is_dead: bool = False
    frozen_until: float = 0.0

    @property
    def acts(self) -> bool:
        return not self.is_dead and self.clock.boottime() >= self.frozen_until


class Walk:
    """A walk over one table."""

    def __init__(self, kind: Kind, pool: asyncpg.Pool, seed: int, *, jumps: bool) -> None:
        self.kind, self.pool, self.random, self.jumps = kind, pool, random.Random(seed), jumps
        self.columns = ", ".join(kind.table.keys)
        self.processes: list[Process] = []
        self.started = 0

    async def begin(self) -> None:
        add = ADD[self.kind.table.name]
        for number in range(ROWS):
            await self.pool.fetchrow(add, TEAM, UUID(int=100 + number), START - timedelta(days=1))
        for _ in range(3):
            await self.start()

    async def start(self) -> None:
        """One more process, of another host."""
        clock = ManualClock()
        if self.processes:
            clock.advance(self.processes[0].clock.boottime() - clock.boottime())
        self.started += 1
        process = Process(UUID(int=1000 + self.started), clock, None)
        process.leases = self.kind.make(self.pool, clock, process.id)
        await self.pool.execute(REGISTER, process.id, clock.now())
        self.processes.append(process)

    async def step(self) -> None:
        pause = self.random.uniform(0.2, self.kind.table.renewed_every / 4)
        for process in self.processes:
            process.clock.advance(pause)
        for process in [one for one in self.processes if one.acts]:
            await self.renew(process)
            await process.leases.recover()
        process = self.random.choice(self.processes)
        await self.random.choice([self.claim, self.claim, self.claim, self.give_back, self.disturb])(process)
        await self.compare()

    async def rows(self) -> Mapping[Row, tuple[UUID | None, int]]:
        found = await self.pool.fetch(f"SELECT {self.columns}, owner, attempt FROM {self.kind.table.name}")
        return {tuple(row)[:-2]: (row["owner"], row["attempt"]) for row in found}

    async def claim(self, process: Process) -> None:
        if not process.acts:
            return
        until = process.clock.boottime() + self.kind.table.lease.total_seconds() - self.kind.margin
        names = " AND ".join(f"w.{name} = free.{name}" for name in self.kind.table.keys)
        claimed = await self.pool.fetch(
            f"""
            WITH free AS MATERIALIZED (
                SELECT {self.columns} FROM {self.kind.table.name} WHERE owner IS NULL
                 ORDER BY md5({self.columns.split(", ")[1]}::text || $4) LIMIT $3 FOR UPDATE SKIP LOCKED)
            UPDATE {self.kind.table.name} w SET owner = $1, leased_until = $2, attempt = w.attempt + 1
              FROM free WHERE {names}
            RETURNING {", ".join(f"w.{name}" for name in self.kind.table.keys)}, w.attempt
            """,
            process.id,
            process.clock.now() + self.kind.table.lease,
            self.random.randint(1, 4),
            str(self.random.random()),
        )
        for *key, attempt in claimed:
            row = tuple(key)
            process.held[row], process.trusted[row] = attempt, until
            for other in self.processes:
                if other is not process and not other.is_dead and self.may_trust:
                    assert other.trusted.get(row, 0.0) <= other.clock.boottime(), "two may begin with it"

    @property
    def may_trust(self) -> bool:
        return not self.jumps or self.kind.trusts_in_jumps

    async def renew(self, process: Process) -> None:
        now = process.clock.boottime()
        if (
            not self.kind.is_renewed
            or not process.held
            or now < process.renewed_at + self.kind.table.renewed_every
        ):
            return
        process.renewed_at = now
        until = now + self.kind.table.lease.total_seconds() - self.kind.margin
        renewed = await self.renewed(process)
        for row in list(process.held):
            if row in renewed:
                process.trusted[row] = until
            else:
                # It stood still, and another one has it by now.
                del process.held[row]
                process.trusted.pop(row)

    async def renewed(self, process: Process) -> set[Row]:
        """Those of its rows that are still its own."""
        leases = process.leases._leases if isinstance(process.leases, ItemClaims) else process.leases
        return set(await leases.renew(set(process.held)))

    async def give_back(self, process: Process) -> None:
        if process.acts and process.held:
            some = dict(
                self.random.sample(sorted(process.held.items()), self.random.randint(1, len(process.held)))
            )
            leases = process.leases._leases if isinstance(process.leases, ItemClaims) else process.leases
            before = await self.rows()
            await leases.give_back(some, process.clock.now())
            after = await self.rows()
            for row, (owner, attempt) in before.items():
                mine = row in some and (owner, attempt) == (process.id, some[row])
                assert after[row] == (None if mine else owner, attempt), "nothing of others is given back"
            for row in some:
                del process.held[row]
                process.trusted.pop(row)

    async def disturb(self, process: Process) -> None:
        what = self.random.random()
        if what < 0.25:
            process.is_dead = True
            await self.start()
            if self.random.random() < 0.3:
                # Its host is this one, which sees that it is gone.
                here = "UPDATE processes SET host = $2, pid = 4194305 WHERE id = $1"
                await self.pool.execute(here, process.id, process_table.boot_id())
        elif what < 0.6:
            process.frozen_until = process.clock.boottime() + self.random.uniform(
                1, 2 * self.kind.table.lease.total_seconds()
            )
        elif self.jumps and what < 0.7:
            # What a collector does to processes that live, where its clock is a day ahead.
            await self.pool.execute("DELETE FROM processes WHERE id = $1", process.id)
        elif self.jumps:
            process.clock.jump(self.random.choice([-3600, -20, 20, 3600, 86400]))

    async def compare(self) -> None:
        """Whoever lives and renews in time has what it believes to have; a holder has claimed what it has."""
        rows = await self.rows()
        for process in self.processes:
            is_in_time = process.clock.boottime() < process.renewed_at + 1.3 * self.kind.table.renewed_every
            if process.acts and self.kind.is_renewed and is_in_time and not process.frozen_until:
                for row, attempt in process.held.items():
                    assert rows[row] == (process.id, attempt), "it lives, and lost a row"
        for row, (owner, attempt) in rows.items():
            if owner is not None:
                [holder] = [process for process in self.processes if process.id == owner]
                assert holder.is_dead or holder.frozen_until or holder.held.get(row) == attempt

    async def end(self) -> None:
        """All die, and one that comes frees what they had within a lease and two looks."""
        for process in self.processes:
            process.is_dead = True
        await self.start()
        waited = 0.0
        while waited <= 2 * self.kind.table.lease.total_seconds() + 10:
            await self.processes[-1].leases.recover()
            if not any(owner for owner, _ in (await self.rows()).values()):
                return
            self.processes[-1].clock.advance(1)
            waited += 1
        raise AssertionError("rows of the dead are held for ever")


@pytest.mark.parametrize("jumps", [False, True], ids=["steady", "jumps"])
@pytest.mark.parametrize("name", sorted(KINDS))
async def test_walks(database_url: str, name: str, *, jumps: bool) -> None:
    pool = await asyncpg.create_pool(database_url, server_settings={"session_replication_role": "replica"})
    try:
        for seed in range(3):
            await pool.execute(f"DELETE FROM {KINDS[name].table.name}")
            await pool.execute("DELETE FROM processes")
            walk = Walk(KINDS[name], pool, seed, jumps=jumps)
            await walk.begin()
            for _ in range(STEPS_OF_A_WALK):
                await walk.step()
            await walk.end()
    finally:
        await pool.close()
