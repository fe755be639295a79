"""What the operator asks of keys without naming their team."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import Source

# Across teams: the operator names a key by its id alone. One look into the index for each team.
OWNER = """
    SELECT t.id FROM teams t WHERE EXISTS (SELECT FROM api_keys k WHERE k.team_id = t.id AND k.id = $1)
"""


async def owner_of(source: Source, key_id: UUID) -> UUID | None:
    """The team whose key this is."""
    found: UUID | None = await source.fetchval(OWNER, key_id)
    return found
