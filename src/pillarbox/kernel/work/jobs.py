"""Background jobs: rows with leases, run in three beats (architecture 2.5, style rule 7).

Claim and commit; do the work with no transaction open; then write the outcome and everything that
follows from it in one transaction, guarded by the claim's `attempt`. A process that dies in the middle
leaves a row that is freed (`leases`) and claimed again; what becomes of a job that ends its processes
says `lone_attempts` (DUR-13). Given up, it is ended by its handler where that is an `EndingHandler`; else it
is tried once a day, and `pillarbox verify` names it.

`attempt` counts claims and fences outcomes. `tries` follows it with every outcome, so the difference is the
number of claims that ended without one. `begun` counts the claims since the first of these.

Most kinds share one limit. A kind of which thousands may be due at once has one of its own, so that it does
not delay other kinds; it begins small batches, spread over time, from both ends of the queue: what was asked
for just now does not stand behind all that is merely due. Where jobs wait for servers that a team has chosen,
teams take turns (`kernel.work.fair_turns`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import TROUBLE, Connection, transaction
from pillarbox.kernel.work import claim_queries
from pillarbox.kernel.work.claim_queries import GIVEN_UP_GAP, JOBS, RENEW_EVERY
from pillarbox.kernel.work.engine_loop import EngineLoop
from pillarbox.kernel.work.fair_turns import TakenSlot, Turns, chosen, overdue
from pillarbox.kernel.work.leases import RECOVER_EVERY, Leases
from pillarbox.kernel.work.lone_attempts import (
    ALONE_FROM,
    BUSY_GAP,
    MOST_BEGUN,
    PAUSES,
    LoneAttempts,
)
from pillarbox.kernel.work.queue_poll import SELDOM

log = get("jobs")


BATCH = 10
MOST_RUNNING = 10
LOOK_EVERY = 1.0
DUE_LOOKED_AT = 100
MARGIN = 5.0
"""Seconds before the end of its lease at which a job is not begun any more."""

BROKEN_GAP = timedelta(seconds=30)


class Job(NamedTuple):
    """A claimed job."""

    team_id: UUID
    id: UUID
    kind: str
    subject_id: UUID
    attempt: int
    tries: int
    created_at: datetime
    site: str = ""
    """The host that it waits for, where its kind has one."""

    begun: int = 0
    """Which attempt this is after a first process of it died; 0 where none did."""


@dataclass(frozen=True, slots=True)
class JobFinished:
    """The job is over; `effects` runs in the transaction that removes its row."""

    effects: Callable[[Connection], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class JobPostponed:
    """The job is tried again at `due_at`; `reason` is for people."""

    due_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class DecidedAtSettle:
    """The outcome of a job that is decided in the transaction that settles it: `decide` writes the effects
    and returns it. All of it is undone where the job is no longer this claim's."""

    decide: Callable[[Connection], Awaitable[JobFinished | JobPostponed]]


JobOutcome = JobFinished | JobPostponed | DecidedAtSettle
Handler = Callable[[Job], Awaitable[JobOutcome]]


@dataclass(frozen=True, slots=True)
class EndingHandler:
    """Does jobs of a kind, and ends one that is given up, so that its owner is told."""

    run: Handler
    give_up: Handler

    async def __call__(self, job: Job) -> JobOutcome:
        if job.begun <= MOST_BEGUN:
            return await self.run(job)
        log.error("jobs.given_up", kind=job.kind, job=job.id)
        return await self.give_up(job)


@dataclass(frozen=True, slots=True)
class JobLimit:
    """Kinds that run beside the others: at most `running` at a time, begun `batch` by `batch` with `pause`
    seconds between while more is due. One with `turns` has one kind."""

    kinds: tuple[str, ...]
    running: int
    batch: int
    pause: float
    turns: Turns | None = None


@dataclass(slots=True)
class _Track:
    """A limit, and how many jobs run under it."""

    limit: JobLimit
    running: dict[asyncio.Task[None], tuple[Job, float]] = field(default_factory=dict)
    """The jobs, and since when they run."""

    look_at: float = 0.0
    backlog: bool = False
    latest: bool = False
    failures: LoopFailures = field(default_factory=lambda: LoopFailures("jobs.claim"))


class _OvertakenError(Exception):
    """The job was claimed anew, or asked for anew, while this claim ran."""


class Jobs:
    """Runs the jobs of this process."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        owner: UUID,
        handlers: Mapping[str, Handler],
        limits: Sequence[JobLimit] = (),
        roles: str = "jobs",
        lone: LoneAttempts | None = None,
        look_every: float = LOOK_EVERY,
    ) -> None:
        """Build the queue; `look_every` is longer where `look_again` is called when jobs are due."""
        self._look_every = look_every
        self._pool = pool
        self._clock = clock
        self._owner = owner
        self._handlers = handlers
        apart = {kind for limit in limits for kind in limit.kinds}
        shared = tuple(kind for kind in handlers if kind not in apart)
        own = [limit for limit in limits if handlers.keys() >= set(limit.kinds)]
        self._tracks = [_Track(limit) for limit in (JobLimit(shared, MOST_RUNNING, BATCH, LOOK_EVERY), *own)]
        self._loop = EngineLoop("jobs", clock)
        self._tasks: dict[asyncio.Task[None], Job] = {}
        self._limits: dict[UUID, asyncio.Timeout] = {}
        self._failures = {kind: LoopFailures(f"jobs.{kind}") for kind in handlers}
        self._recover_failures = LoopFailures("jobs.recover")
        self._settle_failures = LoopFailures("jobs.settle")
        self._wake = asyncio.Event()
        self._is_woken = False
        self._is_held = True
        ended = [kind for kind, handler in handlers.items() if isinstance(handler, EndingHandler)]
        self._roles = roles
        self._leases = Leases(
            JOBS,
            pool,
            clock,
            owner,
            margin=MARGIN,
            loss_values=lambda now: (now, PAUSES, MOST_BEGUN, ended, GIVEN_UP_GAP),
        )
        self._lone = lone or LoneAttempts()

    async def start(self) -> None:
        self._loop.look("due", self._look_when_woken, self._pause, self._wake)
        self._loop.repeat("renew", self._renew, RENEW_EVERY)

    async def stop(self, grace: float) -> None:
        """Claim nothing more, let what runs finish within `grace` seconds, and give back the rest."""
        await self._loop.stop_looking()
        await self._loop.wait(grace)
        left = list(self._tasks.values())
        await self._loop.end()
        if left:
            await self._give_back(left)

    def wake(self) -> None:
        """Look for due work now, also of kinds of which more waits."""
        self._is_woken = True
        self._wake.set()

    def look_again(self) -> None:
        """Look for due work now; kinds of which more waits keep their pace."""
        self._wake.set()

    def look_for_lost(self) -> None:
        """Free what processes had that are gone: some process has jobs."""
        self._is_held = True
        self._wake.set()

    async def look(self) -> int:
        """Claim and start what is due; returns how many jobs were started."""
        await self._recover()
        return sum([await self._look(track) for track in self._tracks])

    async def _recover(self, every: float = RECOVER_EVERY) -> None:
        """Say that this process is there, and free what others had that are gone."""
        await self._leases.record(self._roles)
        freed = await self._leases.recover(every)
        if freed:
            log.warning("jobs.recovered", jobs=len(freed))
        for row in freed:
            if row["given_up"]:
                log.error("jobs.ends_processes", kind=row["kind"], job=row["id"])

    async def _look(self, track: _Track) -> int:
        free_slots = min(track.limit.running - len(track.running), track.limit.batch)
        if not track.limit.kinds or (free_slots <= 0 and track.limit.turns is None):
            return 0
        deadline = self._leases.deadline()
        if track.limit.turns is None:
            rows = await self._claim(track, free_slots)
        else:
            rows = await self._claim_in_turn(track, track.limit.turns, free_slots)
        jobs = [Job(**row) for row in rows]
        if jobs and self._clock.boottime() >= deadline:
            # This process stood still since it asked: another one may have them by now.
            await self._give_back(jobs)
            return 0
        jobs = await self._beginning(jobs)
        for job in jobs:
            task = self._loop.begin(self._run(job))
            self._tasks[task] = job
            track.running[task] = job, self._clock.boottime()
            task.add_done_callback(self._tasks.pop)
            task.add_done_callback(track.running.pop)
        return len(jobs)

    async def _beginning(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those that may begin; what is to be alone and is not is left for later."""
        kept = [job for job in jobs if job.begun < ALONE_FROM or self._lone.take(job.id)]
        if left := [job for job in jobs if job not in kept]:
            keys = [job.team_id for job in left], [job.id for job in left]
            await claim_queries.leave(self._pool, *keys, self._owner, self._clock.now() + BUSY_GAP)
        return kept

    async def _claim(self, track: _Track, free_slots: int) -> Sequence[asyncpg.Record]:
        rows = await claim_queries.claim(
            self._pool, self._owner, self._clock.now(), free_slots, track.limit.kinds, latest=track.latest
        )
        track.backlog = len(rows) == free_slots
        track.latest = track.backlog and not track.latest
        return rows

    def _cut_off(self, slot: TakenSlot) -> None:
        """End a job's work, unless it is over and only its outcome is being written."""
        limit = self._limits.get(slot.job)
        if limit is not None and not limit.expired():
            log.info("jobs.cut_off", job=slot.job, seconds=int(slot.seconds))
            limit.reschedule(asyncio.get_running_loop().time())

    async def _claim_in_turn(self, track: _Track, turns: Turns, free_slots: int) -> Sequence[asyncpg.Record]:
        """Claim the next jobs by the rules of `kernel.work.fair_turns`; without a free slot, cut off an
        overdue job."""
        now, at = self._clock.now(), self._clock.boottime()
        kind, slots = track.limit.kinds[0], track.limit.running
        candidates = await claim_queries.candidates(self._pool, kind, now, slots)
        taken = [
            TakenSlot(team_id=j.team_id, site=j.site, job=j.id, seconds=at - since, tries=j.tries)
            for j, since in track.running.values()
        ]
        found = chosen(candidates, taken, slots, free_slots) if free_slots > 0 else []
        track.backlog = bool(candidates)
        if free_slots <= 0 and (slot := overdue(candidates, taken, turns)) is not None:
            self._cut_off(slot)
        if not found:
            return []
        return await claim_queries.claim_these(self._pool, self._owner, now, found)

    async def idle(self) -> None:
        """Return when no job runs."""
        await self._loop.idle()

    async def _look_when_woken(self) -> None:
        is_woken, self._is_woken = self._is_woken, False
        is_held, self._is_held = self._is_held or self._look_every == LOOK_EVERY, False
        await self._recover_failures.attempt(self._recover(RECOVER_EVERY if is_held else SELDOM))
        await self._look_where_due(is_woken=is_woken)

    def _pause(self) -> float:
        """Return the seconds until the first limit is to be looked at."""
        return min(track.look_at for track in self._tracks) - asyncio.get_running_loop().time()

    async def _look_where_due(self, *, is_woken: bool) -> None:
        """Look at the limits of which jobs are due. One statement finds out for all of them together."""
        time = asyncio.get_running_loop().time
        began = time()
        tracks = [
            track
            for track in self._tracks
            if began >= track.look_at or not (track.failures.pause or (track.backlog and not is_woken))
        ]
        kinds = await self._due_kinds()
        for track in tracks:
            track.backlog = False
            if kinds is None or not kinds.isdisjoint(track.limit.kinds):
                began = time()
                await track.failures.attempt(self._look(track))
            pause = track.limit.pause if track.backlog else self._look_every
            track.look_at = began + max(pause, track.failures.pause)

    async def _due_kinds(self) -> set[str] | None:
        """Return the kinds of which jobs are due; None where more are due than it looks at."""
        kinds = await claim_queries.due_kinds(self._pool, self._clock.now(), DUE_LOOKED_AT)
        return None if len(kinds) == DUE_LOOKED_AT else set(kinds)

    async def _renew(self) -> None:
        """Renew the leases of what runs: some jobs take longer than a lease."""
        await self._leases.renew({(job.team_id, job.id) for job in self._tasks.values()})

    async def _give_back(self, jobs: Collection[Job]) -> None:
        try:
            await self._leases.give_back({(job.team_id, job.id): job.attempt for job in jobs})
        except TROUBLE as trouble:
            log.warning("jobs.not_given_back", trouble=repr(trouble)[:200])

    async def _run(self, job: Job) -> None:
        outcome: JobOutcome
        failures = self._failures[job.kind]
        try:
            outcome = await self._handle(job)
            failures.succeeded()
        except Exception as trouble:
            failures.failed(trouble, job=job.id)
            outcome = JobPostponed(self._clock.now() + BROKEN_GAP, "internal_error")
        try:
            await self._settle(job, outcome)
            self._settle_failures.succeeded()
        except Exception as trouble:
            self._settle_failures.failed(trouble, kind=job.kind, job=job.id)
        finally:
            self._lone.release(job.id)

    async def _handle(self, job: Job) -> JobOutcome:
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[job.id] = limit
                return await self._handlers[job.kind](job)
        except TimeoutError:
            if not limit.expired():
                raise
            return JobPostponed(self._clock.now() + self._gap(job.kind), "cut_off")
        finally:
            self._limits.pop(job.id, None)

    def _gap(self, kind: str) -> timedelta:
        """Return when a job of this kind is due again that was cut off."""
        limits = [track.limit for track in self._tracks if kind in track.limit.kinds]
        return next((limit.turns.gap for limit in limits if limit.turns is not None), BROKEN_GAP)

    async def _settle(self, job: Job, outcome: JobOutcome) -> None:
        try:
            async with transaction(self._pool) as conn:
                if isinstance(outcome, DecidedAtSettle):
                    outcome = await outcome.decide(conn)
                await self._write(conn, job, outcome)
        except _OvertakenError:
            log.info("jobs.overtaken", kind=job.kind, job=job.id)

    async def _write(self, conn: Connection, job: Job, outcome: JobFinished | JobPostponed) -> None:
        if isinstance(outcome, JobPostponed):
            ours = await claim_queries.postpone(
                conn, job.team_id, job.id, job.attempt, outcome.due_at, outcome.reason
            )
        else:
            ours = await claim_queries.finish(conn, job.team_id, job.id, job.attempt)
        if not ours:
            raise _OvertakenError
        if isinstance(outcome, JobFinished) and outcome.effects is not None:
            await outcome.effects(conn)
