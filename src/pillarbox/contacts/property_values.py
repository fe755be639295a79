"""Removing the values of properties that were deleted, some contacts at a time (docs/decisions/0060)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pillarbox.contacts import queries
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.collectors import in_batches

BATCH: Final = 1000


async def remove_values(db: TeamDb, numbers: Sequence[int], batch: int = BATCH) -> None:
    """Take the values under these numbers, which nobody writes any more, from all contacts of the team."""
    keys = [str(number) for number in numbers]
    last: UUID | None = queries.FIRST

    async def some() -> int:
        nonlocal last
        last = None if last is None else await queries.remove_values(db, last, keys, batch)
        return 0 if last is None else batch

    await in_batches(some)
