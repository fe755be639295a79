"""Contacts as they are answered: one with its properties, or a list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from pillarbox.contacts import list_queries, queries, wire
from pillarbox.contacts.conditions import membership
from pillarbox.contacts.conditions import queries as condition_queries
from pillarbox.contacts.list_queries import ListedContact
from pillarbox.contacts.queries import ContactWithProperties
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import database_style
from pillarbox.kernel.wire.paging import ListOf, Page, encoded, envelope
from pillarbox.kernel.wire.problems import NotFound

BLOCK: Final = 1000
"""Contacts that are read at once of a list that is wanted whole."""


async def shown(db: TeamDb, contact_id: UUID) -> wire.FullContact:
    """Return a contact with the properties that were set on it; 404 where there is none."""
    contact = await queries.found(db, contact_id)
    if contact is None:
        raise NotFound("Contact")
    return full(contact)


async def contact_list(
    db: TeamDb, page: Page, now: datetime, segment_id: UUID | None = None
) -> ListOf[wire.ContactItem] | bytes | AsyncIterator[bytes]:
    """Return the body of a list of contacts: of all of them, or of those who are in a segment."""
    by_conditions = None if segment_id is None else await membership.filter_of(db, segment_id, now)
    if by_conditions is not None:
        if page.limit is None:
            return await encoded(partial(condition_queries.encoded, db, by_conditions, BLOCK), page)
        return envelope(await condition_queries.page(db, by_conditions, page), page, item)
    if page.limit is None:
        return await encoded(partial(list_queries.encoded, db, segment_id, BLOCK), page)
    if segment_id is None:
        return envelope(await list_queries.page(db, page), page, item)
    return envelope(await list_queries.members(db, segment_id, page), page, item)


def full(contact: ContactWithProperties) -> wire.FullContact:
    return wire.FullContact(
        object="contact",
        id=contact.id,
        email=contact.email,
        first_name=contact.first_name,
        last_name=contact.last_name,
        created_at=database_style(contact.created_at),
        unsubscribed=contact.unsubscribed,
        properties=contact.encoded,
    )


def item(contact: ListedContact) -> wire.ContactItem:
    return wire.ContactItem(
        id=contact.id,
        email=contact.email,
        first_name=contact.first_name,
        last_name=contact.last_name,
        created_at=database_style(contact.created_at),
        unsubscribed=contact.unsubscribed,
    )
