"""Counts the views of forms: at most one write a second for each form and process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from pillarbox.forms import queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb

EVERY: Final = 1.0
MOST_KNOWN: Final = 10_000


@dataclass(slots=True)
class ShownCounts:
    """Views that are not written yet. Few of them are lost with a process."""

    clock: Clock
    waiting: Counter[UUID] = field(default_factory=Counter)
    written: dict[UUID, float] = field(default_factory=dict)

    async def add(self, db: TeamDb, form_id: UUID) -> None:
        """Count a view, and write what waits where the last write was a second ago."""
        self.waiting[form_id] += 1
        now = self.clock.boottime()
        if now - self.written.get(form_id, float("-inf")) < EVERY:
            return
        if len(self.written) >= MOST_KNOWN:
            self.written.clear()
        self.written[form_id] = now
        await queries.add_shown(db, form_id, self.waiting.pop(form_id))
