"""Which segments there are, for the other slices."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.segments import queries


async def present(db: TeamDb, segment_ids: Collection[UUID]) -> set[UUID]:
    """Return those of these segments that the team has."""
    return set(await queries.present(db, list(segment_ids))) if segment_ids else set()


async def with_conditions(db: TeamDb, segment_ids: Collection[UUID]) -> set[UUID]:
    """Return those of these segments whose conditions say who is in them: nobody is added to them."""
    return set(await queries.with_conditions(db, list(segment_ids))) if segment_ids else set()
