"""Runs under their locks: read as walks, their conditions decided, and what became of them written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.automations.execution import prometheus, state_queries
from pillarbox.automations.execution.facts import RunFacts, RunSubject, facts_of
from pillarbox.automations.execution.mail_waits import offer_past
from pillarbox.automations.execution.state_queries import WorkRow
from pillarbox.automations.execution.versions import GraphVersions
from pillarbox.automations.execution.walks import StepFailure, Walk
from pillarbox.automations.execution.work_queries import ClaimedStep
from pillarbox.automations.graphs.evaluation import holds_in_turns
from pillarbox.automations.graphs.graph import Condition
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.process import faults

AT_ONCE: Final = 20
"""Runs whose payloads are in memory together."""


@dataclass(slots=True)
class OpenedRun:
    """A run under its lock, with its work."""

    walk: Walk
    work: list[WorkRow]

    def ours(self, item: ClaimedStep, owner: UUID) -> bool:
        """Return whether a step may still be carried out by the process that has claimed it."""
        return not self.walk.is_over and any(
            (one.position, one.attempt, one.owner) == (item.position, item.attempt, owner)
            for one in self.work
        )


async def open_runs(
    db: TeamDb, versions: GraphVersions, run_ids: Iterable[UUID], now: datetime
) -> dict[UUID, OpenedRun]:
    """Lock these runs. Those whose automation has stopped them are cancelled; those that are over stay so."""
    ids = sorted(set(run_ids))
    runs = await state_queries.lock(db, ids)
    epochs = await state_queries.epochs(db, list({run.automation_id for run in runs}))
    reached: dict[UUID, set[int]] = {run.id: set() for run in runs}
    for run_id, position in await state_queries.reached(db, ids):
        reached[run_id].add(position)
    work: dict[UUID, list[WorkRow]] = {run.id: [] for run in runs}
    for row in await state_queries.work(db, ids):
        work[row.run_id].append(row)
    found: dict[UUID, OpenedRun] = {}
    for run in runs:
        graph = await versions.graph(db, run.automation_id, run.version)
        positions = frozenset(row.position for row in work[run.id])
        walk = Walk(
            run=run,
            graph=graph,
            now=now,
            reached=frozenset(reached[run.id]),
            work=positions,
            status=run.status,
        )
        if walk.is_over:
            walk.done |= positions
        elif run.epoch < epochs.get(run.automation_id, run.epoch + 1):
            walk.cancel()
        found[run.id] = OpenedRun(walk, work[run.id])
    return found


async def decide(db: TeamDb, walks: Sequence[Walk]) -> None:
    """Decide the conditions that these walks came to, and those that they lead to. A run whose contact is
    gone is cancelled. Those of heavy graphs become work, so that nobody waits for their locks meanwhile."""
    for walk in walks:
        if walk.graph.is_heavy:
            walk.defer()
    left = [walk for walk in walks if walk.undecided]
    for first in range(0, len(left), AT_ONCE):
        some = left[first : first + AT_ONCE]
        subjects = [RunSubject(w.run.id, w.run.contact_id, w.run.event_name) for w in some]
        facts = await facts_of(db, subjects, [walk.graph for walk in some])
        for walk in some:
            known = facts[walk.run.id]
            if walk.waited is not None:
                known.waited = walk.waited
            if known.contact is None and walk.contact_deleted_at is None:
                walk.cancel()
            await settle(walk, known)


async def settle(walk: Walk, known: RunFacts) -> None:
    """Decide the conditions that a walk came to, and those that they lead to."""
    while walk.undecided:
        position = walk.undecided.pop(0)
        config = walk.graph.steps[position].config
        assert isinstance(config, Condition)
        walk.decide(position, result=await holds_in_turns(config.rule, known.event()))


async def write(db: TeamDb, walks: Sequence[Walk]) -> None:
    """Decide what is left to decide, and write all that became of these runs."""
    await decide(db, walks)
    for walk in walks:
        walk.close()
    steps = [row for walk in walks for row in _step_rows(walk)]
    removed = sorted((walk.run.id, position) for walk in walks for position in walk.done & walk.work)
    added = [row for walk in walks for row in _work_rows(walk)]
    changed = [_run_row(walk) for walk in walks if walk.run.status == "running"]
    if steps:
        await state_queries.write_steps(db, steps)
    if removed:
        await state_queries.remove_work(db, removed)
    if added:
        await state_queries.add_work(db, added)
    await offer_past(db, walks)
    if changed:
        await state_queries.write_runs(db, changed)
        after_commit(db.connection, partial(prometheus.count, walks))


def is_for_nobody(walk: Walk, position: int) -> None:
    """Leave out a step whose contact the run itself has deleted; end the run where the contact is gone
    otherwise."""
    if walk.contact_deleted_at is None:
        walk.cancel()
    else:
        walk.skip(position)


@dataclass(frozen=True, slots=True)
class RunLocks:
    """Opens runs for this process, which claims work as `owner`."""

    pool: asyncpg.Pool
    clock: Clock
    owner: UUID
    versions: GraphVersions

    async def open(self, db: TeamDb, items: Iterable[ClaimedStep]) -> dict[UUID, OpenedRun]:
        """Lock the runs of these steps and return them."""
        return await open_runs(db, self.versions, [item.run_id for item in items], self.clock.now())

    @asynccontextmanager
    async def opened(
        self,
        team_id: UUID,
        items: Sequence[ClaimedStep],
        before: Callable[[TeamDb], Awaitable[object]] | None = None,
    ) -> AsyncIterator[tuple[TeamDb, list[tuple[ClaimedStep, Walk]]]]:
        """Yield a transaction and those of the steps that may still be carried out, with their runs. Their
        changes are written at its end. `before` runs first, ahead of the locks."""
        async with TeamDb(self.pool, team_id).transaction() as db:
            if before is not None:
                await before(db)
            runs = await self.open(db, items)
            yield db, self.ours(runs, items)
            await write(db, [one.walk for one in runs.values()])
            await faults.point("automations.written")
        await faults.point("automations.committed")

    def ours(
        self, runs: dict[UUID, OpenedRun], items: Iterable[ClaimedStep]
    ) -> list[tuple[ClaimedStep, Walk]]:
        """Return the steps that may still be carried out, with their runs."""
        found: list[tuple[ClaimedStep, Walk]] = []
        for item in items:
            opened = runs.get(item.run_id)
            if opened is not None and opened.ours(item, self.owner):
                opened.walk.order_at = item.order_at
                found.append((item, opened.walk))
        return found

    async def fail(self, item: ClaimedStep, failure: StepFailure) -> None:
        """Let a step fail."""
        async with self.opened(item.team_id, [item]) as (_, steps):
            for _, walk in steps:
                walk.fail(item.position, failure)


def _step_rows(walk: Walk) -> list[tuple[Any, ...]]:
    return [
        (
            walk.run.id,
            position,
            step.status,
            step.started_at,
            step.completed_at,
            _json(step.output),
            None if step.error is None else _json(step.error._asdict()),
        )
        for position, step in walk.steps.items()
    ]


def _work_rows(walk: Walk) -> list[tuple[Any, ...]]:
    return [
        (walk.run.id, position, walk.run.contact_id, *work, None if work.waiting else walk.order_at)
        for position, work in walk.ready.items()
    ]


def _run_row(walk: Walk) -> tuple[Any, ...]:
    return walk.run.id, walk.status, walk.now, _json(walk.waited), walk.contact_deleted_at


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
