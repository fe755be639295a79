"""The way of a broadcast with a plan from stage to stage. Each move is one guarded update, so it happens once
whoever makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Final
from uuid import UUID

from pillarbox.broadcasts import copy_counts_queries
from pillarbox.broadcasts.copy_counts_queries import CopyCounts
from pillarbox.broadcasts.limits import BrakeLimits, reason_to_pause
from pillarbox.broadcasts.plans import queries
from pillarbox.broadcasts.plans.plan import CANARY, MINUTE, TEST, SendingPlan, WinnerBy, decode
from pillarbox.broadcasts.plans.queries import PlanProgress, VariantCounts
from pillarbox.broadcasts.prometheus import PAUSED
from pillarbox.broadcasts.watch_queries import RunningBroadcast
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults

log = get("broadcasts")

FEWEST_FAILURES: Final = 2
"""A single bounce or complaint of a canary says nothing."""

MOST_CANARY_WAITS: Final = timedelta(hours=24)
"""So long it is waited at most that half of the canary has an outcome."""


@dataclass(frozen=True, slots=True)
class PlanStages:
    """Moves broadcasts on. `limits` are the operator's, here from the first copies on."""

    ids: Ids
    limits: BrakeLimits

    async def move_on(self, db: TeamDb, broadcast_id: UUID, running: RunningBroadcast) -> None:
        """Move a broadcast that is not paused to its next stage, where this one is over."""
        reached = await queries.progress(db, broadcast_id)
        if reached is None or reached.stage in (None, "rest"):
            return
        plan = decode(reached.plan)
        match reached.stage:
            case "canary" if plan.canary is not None:
                if await queries.next_waiting_of(db, broadcast_id, CANARY) is None:
                    until = self.ids.now() + plan.canary.minutes * MINUTE
                    await queries.move(db, broadcast_id, ("canary", "checking"), until)
            case "checking":
                await self._check(db, broadcast_id, running, reached, plan)
            case "testing" if plan.test is not None:
                if await queries.next_waiting_of(db, broadcast_id, TEST) is None:
                    until = self.ids.now() + plan.test.minutes * MINUTE
                    await queries.move(db, broadcast_id, ("testing", "deciding"), until)
            case "deciding" if plan.test is not None and self._is_over(reached):
                winner = winner_of(await queries.figures(db, broadcast_id), plan.test.winner_by)
                chosen = await queries.choose_winner(db, broadcast_id, winner)
                await faults.point("broadcast.winner_chosen")
                if chosen:
                    log.info("broadcasts.winner", id=broadcast_id, variant=winner)

    async def _check(
        self,
        db: TeamDb,
        broadcast_id: UUID,
        running: RunningBroadcast,
        reached: PlanProgress,
        plan: SendingPlan,
    ) -> None:
        """Go on behind the canary once its time is over and its figures are good. All copies so far are its
        own, also those from before somebody paused and resumed the broadcast."""
        counts = await copy_counts_queries.since_start(db, broadcast_id, running.queued_at)
        following = plan.stage_after_canary
        if (reason := self._reason(counts)) is not None:
            if await queries.stop_canary(db, broadcast_id, following, reason, self.ids.now()):
                PAUSED.add()
                log.warning("broadcasts.paused", id=broadcast_id, reason=reason)
        elif self._is_over(reached) and (has_outcomes(counts) or self._is_late(reached)):
            await queries.move(db, broadcast_id, ("checking", following), None)

    def _reason(self, counts: CopyCounts) -> str | None:
        if max(counts.bounced, counts.complained) < FEWEST_FAILURES:
            return None
        limits = BrakeLimits(self.limits.bounces, self.limits.complaints, after=1)
        reason = reason_to_pause(counts, limits)
        return None if reason is None else f"The canary went wrong: {reason}"

    def _is_over(self, reached: PlanProgress) -> bool:
        return reached.stage_until is not None and reached.stage_until <= self.ids.now()

    def _is_late(self, reached: PlanProgress) -> bool:
        return reached.stage_until is not None and reached.stage_until + MOST_CANARY_WAITS <= self.ids.now()


def has_outcomes(counts: CopyCounts) -> bool:
    """Return whether at least half of the copies have an outcome."""
    return 2 * (counts.delivered + counts.bounced + counts.suppressed + counts.failed) >= counts.received


def winner_of(figures: Sequence[VariantCounts], winner_by: WinnerBy) -> int:
    """Return the variant with the best rate. Of equal ones the other rate decides, then the order."""

    def rank(counts: VariantCounts) -> tuple[Fraction, Fraction, int]:
        opens = Fraction(counts.opened, max(counts.copies, 1))
        clicks = Fraction(counts.clicked, max(counts.copies, 1))
        first, second = (opens, clicks) if winner_by == "opens" else (clicks, opens)
        return first, second, -counts.number

    return max(figures, key=rank).number
