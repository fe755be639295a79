"""Events that are here: those that wait to be distributed, and those that could not be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pillarbox.events import overview_queries
from pillarbox.events.overview_queries import EventCount, StoredTeamEvent
from pillarbox.kernel.postgres.database import TeamDb

COUNTED: Final = 10_000
LOOKED_AT: Final = 2000
"""Of the newest events so many are counted, and looked through for those of a name."""


async def stored_events(db: TeamDb, name: str | None, limit: int, shown: int) -> Sequence[StoredTeamEvent]:
    """Return the newest events that wait or failed, of one name or of all, each with so many characters of
    its payload."""
    return await overview_queries.newest(db, name, limit, LOOKED_AT, shown)


async def counts(db: TeamDb) -> Mapping[str, EventCount]:
    """Return by name how many of the newest events wait and failed."""
    return {row.name: row for row in await overview_queries.counts(db, COUNTED)}
