"""SQL of addresses of people who were erased: their hashes are all that is left."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pillarbox.kernel.postgres.database import Source

HAS_ERASED = """
    SELECT EXISTS (SELECT FROM erasures WHERE team_id = $1)
"""

ERASED = """
    SELECT hash FROM erasures WHERE team_id = $1 AND hash = ANY ($2::bytea[])
"""


async def has_erased(source: Source, team_id: UUID) -> bool:
    """Return whether anybody was erased in the team."""
    return bool(await source.fetchval(HAS_ERASED, team_id))


async def erased(source: Source, team_id: UUID, hashes: Sequence[bytes]) -> set[bytes]:
    """Return those of these hashes that are of erased addresses."""
    return {row["hash"] for row in await source.fetch(ERASED, team_id, hashes)}
