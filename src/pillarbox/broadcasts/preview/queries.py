"""SQL of previews."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewContact:
    """A contact with its values as they are now; `properties` by their numbers."""

    id: UUID
    address: str
    email: str
    first_name: str | None
    last_name: str | None
    properties: str


async def recipient(db: TeamDb, address: str) -> PreviewContact | None:
    return await db.one(
        PreviewContact,
        """
        SELECT id, address, coalesce(email, address) AS email, first_name, last_name,
               properties::text AS properties
          FROM contacts
         WHERE team_id = $1 AND address = $2
        """,
        address,
    )
