"""The engine of automations: claims steps that are due and has them carried out (architecture 2.5).

Teams take turns, and what is claimed is carried out in batches, each a transaction. A lease need not be
trusted: whoever carries out a step finds under the lock of its run whether the claim still is the last one.
So a lease is never renewed, and one that ran out too early costs a second claim and nothing else.

What went wrong in a batch is tried one by one. What goes wrong alone is tried again for an hour; then its
step fails. So does a step that has ended its process several times (`kernel.work.lone_attempts`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from enum import Enum
from typing import Final
from uuid import UUID

from pillarbox.automations.execution import prometheus, timers, work_queries
from pillarbox.automations.execution.changes import ContactSteps
from pillarbox.automations.execution.claims import StepClaims
from pillarbox.automations.execution.mail import MailSteps
from pillarbox.automations.execution.state import RunLocks
from pillarbox.automations.execution.walks import StepFailure
from pillarbox.automations.execution.work_queries import START, STEPS, ClaimedStep
from pillarbox.automations.graphs.graph import (
    AddToSegment,
    Config,
    ContactDelete,
    ContactUpdate,
    SendEmailStep,
)
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import EXHAUSTED, GONE, RETRIED, TROUBLE, TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.problems import DatabaseGone, Problem
from pillarbox.kernel.work.engine_loop import EngineLoop
from pillarbox.kernel.work.leases import RECOVER_EVERY, Leases
from pillarbox.kernel.work.lone_attempts import ALONE_FROM, BUSY_GAP, MOST_BEGUN, PAUSES, LoneAttempts

log = get("automations")

GIVE_BACK_TRIES: Final = 10
GIVE_BACK_PAUSE: Final = 0.1
"""Of a process that is stopped, between two tries to give back what somebody has locked."""

LOOK_EVERY: Final = 1.0
MOST_HELD: Final = 200
"""Steps that one process has claimed at once."""

MOST_OF_TEAM: Final = 150
"""Of them, those of one team: its work may be slow, and the others have to find room."""

MOST_HEAVY: Final = 5
"""The same for a team with heavy graphs: what it has claimed is to be done before its leases run out."""

MOST_HEAVY_TEAMS: Final = 1000
AT_ONCE: Final = 3
"""Batches that it carries out at once."""

TEAMS_PER_PAGE: Final = 500
MOST_PAGES: Final = 4
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(minutes=5)
TRIED_FOR: Final = timedelta(hours=1)

GAVE_UP: Final = StepFailure(
    "internal_server_error", "The step could not be carried out, although it was tried for an hour."
)
DIED: Final = StepFailure(
    "internal_server_error", "The step could not be carried out: three processes ended in the middle of it."
)


class StepKind(Enum):
    """How steps are carried out; the value is how many at once."""

    TIMERS = 50
    MAIL = 20
    CHANGES = 10
    DELETIONS = 1


CarryOut = Callable[[UUID, Sequence[ClaimedStep]], Awaitable[None]]


class StepEngine:
    """Bounded in what it holds; what does not fit stays free."""

    def __init__(
        self,
        runs: RunLocks,
        mail: MailSteps,
        contacts: ContactSteps,
        roles: str,
        lone: LoneAttempts,
        look_every: float = LOOK_EVERY,
    ) -> None:
        """Build the engine; `look_every` is longer where a poll calls `wake`."""
        self._lone = lone
        self._look_every = look_every
        self._runs = runs
        self._pool = runs.pool
        self._clock = runs.clock
        self._owner = runs.owner
        self._roles = roles
        self._kinds: Mapping[StepKind, CarryOut] = {
            StepKind.TIMERS: lambda team_id, items: timers.carry_out(runs, team_id, items),
            StepKind.MAIL: mail.carry_out,
            StepKind.CHANGES: contacts.change,
            StepKind.DELETIONS: contacts.delete,
        }
        self._leases = Leases(
            STEPS, self._pool, self._clock, self._owner, loss_values=lambda now: (now, PAUSES)
        )
        self._claims = StepClaims(self._pool, self._owner)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._heavy = asyncio.Semaphore(1)
        self._heavy_teams: set[UUID] = set()
        self._held = 0
        self._held_of: Counter[UUID] = Counter()
        self._left: list[ClaimedStep] = []
        self._after = START
        self._wake = asyncio.Event()
        self._loop = EngineLoop("automations", self._clock)

    async def start(self) -> None:
        self._loop.look("claim", self._look_until_empty, lambda: self._look_every, self._wake)

    async def stop(self, grace: float) -> None:
        """Claim nothing more, finish what is being carried out, and give back the rest."""
        await self._loop.stop_looking()
        await self._loop.wait(grace)
        await self._loop.end()
        try:
            for _ in range(GIVE_BACK_TRIES):
                await self._give_back()
                if not self._left:
                    return
                await asyncio.sleep(GIVE_BACK_PAUSE)
        except TROUBLE as trouble:
            log.warning("automations.not_given_back", trouble=repr(trouble)[:200])

    def wake(self) -> None:
        """Look for work that is due now."""
        self._wake.set()

    async def look(self) -> int:
        """Claim what is due and begin to carry it out; returns how many steps that were."""
        await self._recover()
        await self._give_back()
        free = MOST_HELD - self._held
        teams = await self._due(free) if free > 0 else []
        if not teams:
            return 0
        share = max(1, min(StepKind.TIMERS.value, free // len(teams)))
        now = self._clock.now()
        shares = [(team_id, min(share, self._room(team_id))) for team_id in teams]
        items = await self._claims.claim(shares, now)
        await faults.point("automations.claimed")
        for item in items:
            prometheus.LATE.observe(max(0.0, (now - item.due_at).total_seconds()))
        await self._begin(items)
        return len(items)

    async def idle(self) -> None:
        """Return when nothing is being carried out."""
        await self._loop.idle()

    # Claiming --------------------------------------------------------------------------------------

    async def _due(self, limit: int) -> list[UUID]:
        """Return the next teams with work that is due; each call goes on behind the last one, and begins
        again where there are no more."""
        found: list[UUID] = []
        for _ in range(MOST_PAGES):
            page = await work_queries.teams(self._pool, self._clock.now(), self._after, TEAMS_PER_PAGE)
            for team in page:
                self._after = team.team_id
                if team.due and self._room(team.team_id) > 0:
                    found.append(team.team_id)
                    if len(found) == limit:
                        return found
            if len(page) < TEAMS_PER_PAGE:
                if self._after == START or found:
                    self._after = START
                    return found
                self._after = START
        return found

    def _room(self, team_id: UUID) -> int:
        """Return for how many more steps of a team there is room."""
        most = MOST_HEAVY if team_id in self._heavy_teams else MOST_OF_TEAM
        return most - self._held_of[team_id]

    async def _recover(self) -> None:
        """Say that this process is there, and free what others had that are not."""
        await self._leases.record(self._roles)
        freed = len(await self._leases.recover(RECOVER_EVERY))
        prometheus.RECOVERED.add(freed)
        if freed:
            log.warning("automations.recovered", steps=freed)

    async def _give_back(self) -> None:
        """Free what this process has claimed and could not do; what is locked is left for the next time."""
        left, self._left = self._left, []
        try:
            for team_id in {item.team_id for item in left}:
                items = [item for item in left if item.team_id == team_id]
                self._left += await work_queries.give_back(TeamDb(self._pool, team_id), items, self._owner)
        except BaseException:
            self._left += left
            raise

    async def _look_until_empty(self) -> None:
        while await self.look() or self._claims.has_more:
            pass

    # Carrying out ----------------------------------------------------------------------------------

    async def _begin(self, items: Sequence[ClaimedStep]) -> None:
        groups: dict[tuple[UUID, StepKind, bool], list[ClaimedStep]] = {}
        self._hold(items, 1)
        try:
            for item in items:
                kind, is_heavy = await self._kind(item)
                groups.setdefault((item.team_id, kind, is_heavy), []).append(item)
        except BaseException:
            self._hold(items, -1)
            self._left += items
            raise
        if len(self._heavy_teams) > MOST_HEAVY_TEAMS:
            self._heavy_teams.clear()
        self._heavy_teams |= {team_id for team_id, _, is_heavy in groups if is_heavy}
        for (team_id, kind, is_heavy), found in groups.items():
            calm = [] if is_heavy else [item for item in found if item.deaths <= 0]
            batches = [calm[at : at + kind.value] for at in range(0, len(calm), kind.value)]
            for batch in [*batches, *([item] for item in found if is_heavy or item.deaths > 0)]:
                self._loop.begin(self._in_turn(team_id, kind, batch, is_heavy=is_heavy))

    def _hold(self, items: Sequence[ClaimedStep], sign: int) -> None:
        """Count what this process has, or no longer has."""
        self._held += sign * len(items)
        for item in items:
            self._held_of[item.team_id] += sign
            if not self._held_of[item.team_id]:
                del self._held_of[item.team_id]

    async def _kind(self, item: ClaimedStep) -> tuple[StepKind, bool]:
        """Return how the step is carried out, and whether its graph is a heavy one."""
        db = TeamDb(self._pool, item.team_id)
        try:
            graph = await self._runs.versions.graph(db, item.automation_id, item.version)
        except RETRIED:
            raise
        except Exception:
            # It cannot be carried out in any way, which must not hold up the others.
            return StepKind.TIMERS, False
        if item.waiting:
            return StepKind.TIMERS, graph.is_heavy
        return _kind_of(graph.steps[item.position].config), graph.is_heavy

    async def _in_turn(
        self, team_id: UUID, kind: StepKind, items: list[ClaimedStep], *, is_heavy: bool
    ) -> None:
        """Carry out these steps when it is their turn; heavy ones take no more than one place."""
        is_done = False
        try:
            async with self._heavy if is_heavy else nullcontext(), self._turns:
                await self._carry_out(team_id, kind, items)
            is_done = True
        finally:
            self._hold(items, -1)
            if not is_done:
                self._left += items
            self._wake.set()

    async def _carry_out(self, team_id: UUID, kind: StepKind, items: Sequence[ClaimedStep]) -> None:
        try:
            if items[0].begun >= MOST_BEGUN:
                await self._runs.fail(items[0], DIED)
            elif items[0].deaths > 0:
                await self._carry_out_again(team_id, kind, items[0])
            else:
                await self._kinds[kind](team_id, items)
        except (*GONE, DatabaseGone) as trouble:
            await self._postpone(team_id, items, trouble)
        except Exception as trouble:
            if len(items) == 1:
                await self._postpone(team_id, items, trouble)
                return
            for item in items:
                await self._carry_out(team_id, kind, [item])

    async def _carry_out_again(self, team_id: UUID, kind: StepKind, item: ClaimedStep) -> None:
        """Carry out a step that has lost its process: alone, where it was lost in the middle of such an
        attempt."""
        db, key = TeamDb(self._pool, team_id), (item.run_id, item.position)
        if item.begun + 1 >= ALONE_FROM and not self._lone.take(key):
            await work_queries.leave(db, item, self._owner, self._clock.now() + BUSY_GAP)
            return
        try:
            if await work_queries.begin(db, item, self._owner):
                await self._kinds[kind](team_id, [item])
        finally:
            self._lone.release(key)

    async def _postpone(self, team_id: UUID, items: Sequence[ClaimedStep], trouble: BaseException) -> None:
        """Try these later, for an hour."""
        if isinstance(trouble, (*RETRIED, Problem)):
            log.warning("automations.trouble", trouble=repr(trouble)[:200])
        else:
            log.error("automations.step_failed", run=items[0].run_id, exc_info=trouble)
        prometheus.TROUBLE.add(len(items))
        try:
            for item in items:
                await self._try_later(TeamDb(self._pool, team_id), item, trouble)
        except Exception as again:
            log.warning("automations.not_postponed", trouble=repr(again)[:200])
            self._left += items

    async def _try_later(self, db: TeamDb, item: ClaimedStep, trouble: BaseException) -> None:
        """Let the step be tried again later, or fail after an hour of that. A full disk of the database is no
        fault of the step, so the hour does not begin with it."""
        now, reason = self._clock.now(), type(trouble).__name__
        if isinstance(trouble, EXHAUSTED):
            due_at = now + FIRST_PAUSE
            self._left += await work_queries.postpone(db, [item], self._owner, due_at, reason, None)
            return
        since = item.failing_since or now
        if now - since >= TRIED_FOR:
            try:
                await self._runs.fail(item, GAVE_UP)
                return
            except Exception as trouble:
                log.warning("automations.not_failed", trouble=repr(trouble)[:200])
        due_at = now + min(LONGEST_PAUSE, max(FIRST_PAUSE, now - since))
        self._left += await work_queries.postpone(db, [item], self._owner, due_at, reason, now)


def _kind_of(config: Config) -> StepKind:
    match config:
        case SendEmailStep():
            return StepKind.MAIL
        case ContactUpdate() | AddToSegment():
            return StepKind.CHANGES
        case ContactDelete():
            return StepKind.DELETIONS
        case _:
            return StepKind.TIMERS
