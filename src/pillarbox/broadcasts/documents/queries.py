"""SQL of the documents of broadcasts."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


async def source(db: TeamDb, broadcast_id: UUID) -> str | None:
    """Return what is kept beside the HTML of a broadcast."""
    kept: str | None = await db.value(
        "SELECT source FROM broadcasts WHERE team_id = $1 AND id = $2", broadcast_id
    )
    return kept


async def set_source(db: TeamDb, broadcast_id: UUID, kept: str | None) -> None:
    """Keep it beside the HTML of a broadcast."""
    await db.run("UPDATE broadcasts SET source = $3 WHERE team_id = $1 AND id = $2", broadcast_id, kept)
