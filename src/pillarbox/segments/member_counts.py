"""How many members segments have that are kept by hand, counted within a time limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import StatementLimitError, TeamDb
from pillarbox.segments import overview_queries

SOON: Final = 0.06
"""Seconds that a screen waits for counts."""


async def member_counts(db: TeamDb, segment_ids: Sequence[str]) -> Mapping[str, int] | None:
    """Return the number of members of each of these segments, by its id; None where counting takes too
    long."""
    try:
        async with db.statement_limit(SOON) as limited:
            found = await overview_queries.member_counts(limited, [UUID(one) for one in segment_ids])
    except StatementLimitError:
        return None
    return {str(one.segment_id): one.members for one in found}
