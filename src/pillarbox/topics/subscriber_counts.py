"""How many contacts get the mail of each topic, counted within a time limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import StatementLimitError, TeamDb
from pillarbox.topics import overview_queries as queries

SOON: Final = 0.1
"""Seconds that a screen waits for counts."""

LONG: Final = 6.0
"""Seconds that somebody waits who asked for the counts of a large team."""


async def subscriber_counts(db: TeamDb, seconds: float = SOON) -> Mapping[UUID, int] | None:
    """Return the number of subscribers of each topic; None where counting takes longer than so many
    seconds. Contacts that are unsubscribed from everything get no mail and are not counted."""
    try:
        async with db.statement_limit(seconds) as limited:
            return {row.id: row.subscribers for row in await queries.subscribers(limited)}
    except StatementLimitError:
        return None
