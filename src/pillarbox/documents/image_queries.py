"""SQL of the pictures of teams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamImage:
    """A picture of a team; `blob` names its octets."""

    id: UUID
    name: str
    alt: str
    media: str
    width: int
    height: int
    size: int
    blob: str
    created_at: datetime


class ImageUsage(NamedTuple):
    """How many pictures a team has, and their octets."""

    amount: int
    octets: int


async def insert(db: TeamDb, image: TeamImage) -> None:
    await db.run(
        """
        INSERT INTO images (team_id, id, name, alt, media, width, height, size, blob, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        """,
        image.id,
        image.name,
        image.alt,
        image.media,
        image.width,
        image.height,
        image.size,
        image.blob,
        image.created_at,
    )


async def usage(db: TeamDb) -> ImageUsage:
    """Return what the team has."""
    found = await db.one(
        ImageUsage,
        "SELECT count(*) AS amount, coalesce(sum(size), 0)::bigint AS octets FROM images WHERE team_id = $1",
    )
    return found or ImageUsage(0, 0)


async def newest(db: TeamDb, limit: int) -> list[TeamImage]:
    """Return the newest pictures of the team."""
    return await db.all(
        TeamImage,
        """
        SELECT id, name, alt, media, width, height, size, blob, created_at
          FROM images
         WHERE team_id = $1
         ORDER BY id DESC
         LIMIT $2
        """,
        limit,
    )


async def remove(db: TeamDb, image_id: UUID) -> str | None:
    """Remove a picture; return the name of its blob, None where there is no such picture."""
    blob: str | None = await db.value(
        "DELETE FROM images WHERE team_id = $1 AND id = $2 RETURNING blob", image_id
    )
    return blob
