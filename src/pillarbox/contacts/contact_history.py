"""The history of a contact, as far as rows of contacts have it: made, joined segments, chose topics."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.contacts import overview_queries as queries
from pillarbox.contacts import queries as rows
from pillarbox.contacts.overview_queries import SuppressedAddress
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound


class ContactMoment(NamedTuple):
    """Something that happened: `kind` is created, joined_segment, opt_in or opt_out. `id` is that of the
    segment, the topic or the contact, `name` what it is called."""

    at: datetime
    id: UUID
    kind: str
    name: str | None


async def contact_moments(db: TeamDb, contact_id: UUID) -> list[ContactMoment]:
    """Return what happened to the contact, as many moments as it has segments and topics at most."""
    return [
        ContactMoment(row.happened_at, row.id, row.kind, row.name)
        for row in await queries.moments(db, contact_id)
    ]


async def address_of(db: TeamDb, contact_id: UUID) -> str:
    """Return the address of a contact as it is compared; 404 where the contact is gone."""
    address = await rows.address_of(db, contact_id)
    if address is None:
        raise NotFound("Contact")
    return address


async def suppressed_address(db: TeamDb, address: str) -> SuppressedAddress | None:
    """Return the entry of a compared address in the suppression list; None where it is not on it."""
    return await queries.suppressed(db, address)
