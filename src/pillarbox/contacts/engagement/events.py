"""The events and the engagement of contacts, for other slices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.contacts.engagement import queries
from pillarbox.contacts.engagement.queries import Engagement
from pillarbox.kernel.postgres.database import TeamDb


class ContactEvent(NamedTuple):
    """An event of the contact that has this address as it is compared."""

    address: str
    name: str
    at: datetime


async def note(db: TeamDb, events: Sequence[ContactEvent]) -> None:
    """Note that the contacts with these addresses, those that there are, had these events."""
    if events:
        addresses, names, times = zip(*events, strict=True)
        await queries.add_events(db, addresses, names, times)


async def event_names(db: TeamDb, limit: int) -> Sequence[str]:
    """Return the names of events that contacts of the team had."""
    return await queries.names(db, limit)


async def engagement_of(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, Engagement]:
    """Return the engagement of those of these contacts that have some, by their ids."""
    return {one.contact_id: one for one in await queries.of_contacts(db, ids)} if ids else {}
