"""Names of broadcasts, for the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from pillarbox.broadcasts.reports import queries
from pillarbox.kernel.postgres.database import TeamDb


async def names_of(db: TeamDb, ids: Sequence[UUID]) -> Mapping[str, str]:
    """Return the names of these broadcasts, by their ids as text; of all where none is named."""
    return {str(row.id): row.name for row in await queries.named(db, ids)}
