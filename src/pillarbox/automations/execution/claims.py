"""Claiming the steps that are due: of each contact the first one alone, so that effects keep their order
(automations.md 5.2).

What is ready for a contact is ordered by `order_at`: a step has the place of the step that led to it. What an
event brings about comes behind all that is ready by then. The end of a delay or wait has the instant at which
it was due. The first step is claimed where nobody has it; the next one is the first when it is done. So steps
of one contact are never carried out beside each other, and one that is tried again later keeps its place.

Contacts are looked at in the order of their ids, and each claim goes on behind the last one: many steps of
one contact cost the others nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.automations.execution import work_queries
from pillarbox.automations.execution.work_queries import (
    END,
    LEASE,
    START,
    ClaimedStep,
    ContactRange,
    FirstStep,
)

TEAMS_REMEMBERED: Final = 1000
"""Teams of which the last contact is remembered; with more of them all begin anew."""


@dataclass(slots=True)
class StepClaims:
    """Claim for one process. `has_more` where contacts are left that the last claim did not look at."""

    pool: asyncpg.Pool
    owner: UUID
    has_more: bool = False
    _after: dict[UUID, UUID] = field(default_factory=dict)

    async def claim(self, shares: Sequence[tuple[UUID, int]], now: datetime) -> list[ClaimedStep]:
        """Lease what is due, of each team up to its share."""
        limits = {team_id: limit for team_id, limit in shares if limit > 0}
        self.has_more = False
        if not limits:
            return []
        await work_queries.order(self.pool, list(limits), now)
        steps = await self._first_steps(limits, now)
        if not steps:
            return []
        return await work_queries.claim(self.pool, steps, self.owner, now + LEASE, now)

    async def _first_steps(self, limits: dict[UUID, int], now: datetime) -> list[FirstStep]:
        """Return the steps behind the place where the last claim of each team ended, and then those before
        it."""
        after = {team_id: self._after.pop(team_id, START) for team_id in limits}
        ranges = [ContactRange(team_id, after[team_id], END, limit) for team_id, limit in limits.items()]
        steps = await self._in_ranges(ranges, now)
        due = Counter(step.team_id for step in steps)
        again = [
            ContactRange(team_id, START, after[team_id], limit - due[team_id])
            for team_id, limit in limits.items()
            if after[team_id] != START and team_id not in self._after and limit > due[team_id]
        ]
        return steps + (await self._in_ranges(again, now) if again else [])

    async def _in_ranges(self, ranges: Sequence[ContactRange], now: datetime) -> list[FirstStep]:
        """Return the steps that are due; remembers where ranges were left."""
        rows = await work_queries.first_steps(self.pool, ranges, now)
        for contacts in ranges:
            self._remember(contacts, [row for row in rows if row.team_id == contacts.team_id])
        return [row for row in rows if row.is_due]

    def _remember(self, contacts: ContactRange, rows: Sequence[FirstStep]) -> None:
        if not rows or (rows[-1].is_due and len(rows) < contacts.limit):
            return
        if len(self._after) >= TEAMS_REMEMBERED:
            self._after.clear()
        self._after[contacts.team_id] = rows[-1].contact_id
        self.has_more |= contacts.until == END and not any(row.is_due for row in rows)
