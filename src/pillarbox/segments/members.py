"""Who belongs to which segments: the part that other slices use, on a connection inside a transaction.

Whoever adds a member holds its contact and its segment (`hold`) in the same transaction: there is no foreign
key (docs/decisions/0056). The members of a deleted segment are removed in the background; nothing here shows
them any more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.segments import queries
from pillarbox.segments.queries import Member, Segment


async def hold(db: TeamDb, segment_ids: Collection[UUID], called: str = "Segment") -> None:
    """404 where one of the segments is not there. None is deleted before the transaction ends."""
    wanted = sorted(set(segment_ids))
    if wanted and len(await queries.hold(db, wanted)) < len(wanted):
        raise NotFound(called)


async def add(db: TeamDb, contact_id: UUID, segment_ids: Collection[UUID], at: datetime) -> bool:
    """Make the contact a member of segments that are held; False where it is one of all of them already."""
    wanted = sorted(set(segment_ids))
    return bool(wanted) and await queries.add_member(db, contact_id, wanted, at) > 0


async def remove(db: TeamDb, contact_id: UUID, segment_id: UUID) -> bool:
    """End a membership; False where there is none."""
    return await queries.remove_member(db, contact_id, segment_id)


async def leave_all(db: TeamDb, contact_id: UUID) -> None:
    """End all memberships of a contact, because it is deleted."""
    await queries.leave_all(db, contact_id)


async def is_member(db: TeamDb, contact_id: UUID, segment_id: UUID) -> bool:
    """Whether the contact belongs to a segment that is there."""
    return await queries.is_member(db, contact_id, segment_id)


async def segments_of(db: TeamDb, contact_id: UUID) -> Sequence[UUID]:
    """The segments that a contact belongs to, the oldest membership first, as events tell them."""
    return await queries.of_contact(db, contact_id)


async def page_of_contact(db: TeamDb, contact_id: UUID, page: Page) -> list[Segment]:
    """A page of the segments that a contact belongs to, the newest segment first."""
    return await queries.page_of_contact(db, contact_id, page)


async def page(db: TeamDb, segment_id: UUID, page: Page) -> list[Member]:
    """A page of the contacts that belong to a segment, the newest contact first."""
    return await queries.members(db, segment_id, page)
