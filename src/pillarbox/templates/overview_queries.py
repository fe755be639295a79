"""SQL of what the operator sees of templates."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.postgres.database import TeamDb

EVERY: Final = """
    SELECT t.id, t.name, t.alias,
           CASE WHEN t.published_at IS NULL THEN 'draft' ELSE 'published' END AS status,
           t.draft_version IS NOT NULL AS has_draft, t.published_at, t.created_at, t.updated_at
      FROM templates t
     WHERE t.team_id = $1
     ORDER BY t.id DESC
"""


class TemplateOverview(Struct, kw_only=True):
    """A template as the operator sees it."""

    id: UUID
    name: str
    alias: str | None
    status: str
    has_draft: bool
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime


async def every(db: TeamDb) -> list[TemplateOverview]:
    """Return the templates of a team, the newest first."""
    return await db.all(TemplateOverview, EVERY)
