"""Who belongs to a segment. Contacts write that down, with their events (`pillarbox.contacts.store`); the
members of a deleted segment are removed in the background, and nothing shows them any more."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.segments import queries
from pillarbox.segments.queries import Member


async def page(db: TeamDb, segment_id: UUID, page: Page) -> list[Member]:
    """A page of the contacts that belong to a segment, the newest contact first."""
    return await queries.members(db, segment_id, page)


async def includes(db: TeamDb, segment_id: UUID, contact_id: UUID) -> bool:
    """Whether the contact belongs to the segment."""
    return await queries.is_member(db, contact_id, segment_id)
