"""The contacts of a segment: its members, or those that fit its conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from pillarbox.contacts import list_queries, segment_queries
from pillarbox.contacts.conditions import queries
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.language import Condition
from pillarbox.contacts.conditions.parsing import stored_condition
from pillarbox.contacts.conditions.queries import FittingCounts
from pillarbox.contacts.list_queries import ExportedContact
from pillarbox.contacts.segment_queries import SegmentOfContact
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.wire.problems import NotFound


async def filter_of(db: TeamDb, segment_id: UUID, now: datetime) -> ContactFilter | None:
    """Return the filter of a segment with conditions; None for one with members of its own, or that is
    gone."""
    given = await segment_queries.conditions_of(db, segment_id)
    return None if given is None else ContactFilter(now, stored_condition(given))


async def condition_by_segment(db: TeamDb, segment_id: UUID | None) -> dict[UUID, Condition]:
    """Return the condition of a segment that has one, by its id; raise NotFound where there is no segment."""
    if segment_id is None:
        return {}
    given = await segment_queries.conditions_of(db, segment_id)
    if given is not None:
        return {segment_id: stored_condition(given)}
    if not await segment_queries.exists(db, segment_id):
        raise NotFound("Segment")
    return {}


async def counts(db: TeamDb, contact_filter: ContactFilter) -> FittingCounts:
    """Return how many contacts fit, and how many of them are subscribed."""
    return await queries.count(db, contact_filter)


async def count_fitting(db: TeamDb, contact_filter: ContactFilter) -> int:
    """Return how many contacts fit."""
    return (await queries.count(db, contact_filter)).contacts


async def following_fitting(
    db: TeamDb, contact_filter: ContactFilter, after: UUID, limit: int
) -> list[ExportedContact]:
    """Return the next contacts that fit, the oldest first."""
    return await queries.following(db, contact_filter, after, limit)


async def fits(db: TeamDb, contact_filter: ContactFilter, contact_id: UUID) -> bool:
    """Return whether the contact is there and fits."""
    return await queries.fits(db, contact_filter, contact_id)


async def count(db: TeamDb, segment_id: UUID | None, now: datetime) -> int:
    """Return how many contacts the team, or a segment of it, has."""
    found = None if segment_id is None else await filter_of(db, segment_id, now)
    return await list_queries.count(db, segment_id) if found is None else await count_fitting(db, found)


async def following(
    db: TeamDb, after: UUID, segment_id: UUID | None, limit: int, now: datetime
) -> list[ExportedContact]:
    """Return the next contacts of the team, or of a segment, the oldest first."""
    found = None if segment_id is None else await filter_of(db, segment_id, now)
    if found is None:
        return await list_queries.following(db, after, segment_id, limit)
    return await queries.following(db, found, after, limit)


async def fitting_segments(db: TeamDb, contact_id: UUID, now: datetime) -> list[SegmentOfContact]:
    """Return the segments whose conditions a contact fits."""
    known = await segment_queries.all_conditions(db)
    if not known:
        return []
    places = await queries.fitting(db, contact_id, [stored_condition(one.conditions) for one in known], now)
    return [
        SegmentOfContact(id=known[place].id, name=known[place].name, created_at=known[place].created_at)
        for place in places
    ]


async def segments_page(
    db: TeamDb, contact_id: UUID, now: datetime, page: Page
) -> Sequence[SegmentOfContact]:
    """Return the segments that a contact is in, by its membership or by their conditions; the newest
    first."""
    upper, lower, limit = page.args
    found = await segment_queries.page(db, contact_id, page)
    fitting = [
        one
        for one in await fitting_segments(db, contact_id, now)
        if (upper is None or one.id < upper) and (lower is None or one.id > lower)
    ]
    return sorted([*found, *fitting], key=lambda one: one.id, reverse=upper is not None)[:limit]
