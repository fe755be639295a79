"""The person that a request means, and what is done about it; screens, routes and commands share it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.contacts import store
from pillarbox.contacts.reading import shown
from pillarbox.kernel.personal_data import DataSubject, ReadPerson
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.personal_data import queries
from pillarbox.personal_data.erasing import Erasures
from pillarbox.personal_data.export import person_file
from pillarbox.personal_data.queries import ErasureRow
from pillarbox.suppressions.erased_addresses import ErasedAddresses

FILE_HEADERS: Final = {
    "content-disposition": 'attachment; filename="personal-data.json"',
    "cache-control": "no-store",
}
"""Headers of the file of a person."""


async def address_of(db: TeamDb, text: str) -> EmailAddress:
    """Return the address that a path names, or that of the contact with this id; 404 for other texts."""
    try:
        return email_address((await shown(db, UUID(text))).email if well_formed(text) else text)
    except NotAnAddress:
        raise NotFound("Contact") from None


@dataclass(frozen=True, slots=True)
class People:
    """Reads and erases people by their addresses."""

    erasures: Erasures
    erased: ErasedAddresses
    readers: Sequence[tuple[str, ReadPerson]]

    async def file(self, db: TeamDb, address: EmailAddress, now: datetime) -> AsyncIterator[bytes]:
        """Return the file of all that the team holds about an address."""
        contact_id = await store.id_of(db, address.address)
        person = DataSubject.of(address.address, address.given, contact_id)
        return person_file(db, person, self.readers, now)

    async def mark_of(self, db: TeamDb, address: EmailAddress) -> str:
        """Return what the log of acts calls an address: the beginning of its hash."""
        return (await self.erased.hash_of(db.team_id, address.address)).hex()

    async def erase(self, db: TeamDb, address: EmailAddress) -> UUID:
        """Begin the erasure of an address, in the caller's transaction; returns the id of the erasure."""
        return await self.erasures.begin(db, address, await store.id_of(db, address.address))

    async def erasure(self, db: TeamDb, text: str) -> ErasureRow:
        """Return the erasure that a path names by its id or by the address; 404 where there is none."""
        if well_formed(text):
            row = await queries.by_id(db, UUID(text))
        else:
            try:
                address = email_address(text)
            except NotAnAddress:
                raise NotFound("Erasure") from None
            row = await queries.by_hash(db, await self.erased.hash_of(db.team_id, address.address))
        if row is None:
            raise NotFound("Erasure")
        return row
