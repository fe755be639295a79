"""Removes sign-ups that nobody confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.forms import sign_up_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic

KEPT: Final = timedelta(days=4)
"""Behind the end of its link, a week after it was asked for."""

BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class SignUpRetention:
    """Removes addresses whose owners did not click."""

    pool: asyncpg.Pool
    clock: Clock

    def periodic(self) -> list[Periodic]:
        return [Periodic("forms.retention", timedelta(hours=1), self.collect)]

    async def collect(self) -> str:
        """Remove what is old; says how much."""
        before = self.clock.now() - KEPT

        async def some() -> int:
            return await sign_up_queries.remove_expired(self.pool, before, BATCH)

        return f"{await in_batches(some)} sign-ups"
