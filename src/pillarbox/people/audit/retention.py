"""Removing what is old of the log of acts, and invitations that nobody accepted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.people.audit import queries as audit_queries
from pillarbox.people.membership import invitation_queries

EVERY: Final = timedelta(hours=1)
BATCH: Final = 1000
INVITATIONS_KEPT: Final = timedelta(days=30)
"""For so long after their end."""


class AuditRetention:
    """Removes entries that are older than the setting says, some at a time."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, days: int) -> None:
        self._pool = pool
        self._clock = clock
        self._kept = timedelta(days=days)

    def periodic(self) -> Sequence[Periodic]:
        return [Periodic("people.audit", EVERY, self.collect)]

    async def collect(self) -> str:
        """Remove entries and invitations that are over their time; return how many of each, in words."""
        now = self._clock.now()
        entries = await in_batches(partial(audit_queries.remove_old, self._pool, now - self._kept, BATCH))
        before = now - INVITATIONS_KEPT
        invitations = await in_batches(partial(invitation_queries.remove_old, self._pool, before, BATCH))
        return f"{entries} audit entries, {invitations} invitations"
