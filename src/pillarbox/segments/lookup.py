"""Which segments there are, for the other slices."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.segments import queries


async def present(db: TeamDb, segment_ids: Collection[UUID]) -> set[UUID]:
    """Return those of these segments that the team has."""
    return set(await queries.present(db, list(segment_ids))) if segment_ids else set()
