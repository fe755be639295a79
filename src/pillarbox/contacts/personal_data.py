"""Personal data in contacts: the contact with all that belongs to it, imports, and acts on many contacts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from pillarbox.contacts import overview_queries, personal_queries, queries
from pillarbox.contacts.contact_history import contact_moments
from pillarbox.contacts.store import Contacts
from pillarbox.kernel.personal_data import ERASED_ADDRESS, DataSubject, ErasedRows, EraseStep, PersonalData
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.slices import Container
from pillarbox.kernel.wire.paging import NEWEST
from pillarbox.kernel.wire.problems import NotFound

LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
MOST_EVENTS: Final = 1000
"""Names of events that the file of a person has."""


def contact_eraser(kit: Container) -> EraseStep:
    """Return the step that deletes the contact, as anybody who deletes it does, with its event."""
    contacts = kit.need(Contacts)

    async def erase(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
        contact_id = await queries.id_of(db, person.address)
        if contact_id is None:
            return ErasedRows(None)
        try:
            await contacts.delete(db, contact_id)
        except NotFound:
            return ErasedRows(None)
        return ErasedRows(None, 1)

    return erase


async def erase_errors(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Replace the address in rows of imports that failed; an import keeps a thousand of them at most."""
    return ErasedRows(None, await personal_queries.erase_errors(db, person.found_by, ERASED_ADDRESS))


async def erase_imports(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Replace the address in the first rows, names and notes of files. A file that nobody has mapped stays
    until its time is over; its import skips the person."""
    return ErasedRows(None, await personal_queries.erase_imports(db, person.found_by, ERASED_ADDRESS))


async def erase_bulk_acts(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Replace the address in searches and conditions of acts that ended; those that go on need theirs."""
    erased = await personal_queries.erase_bulk_acts(db, person.found_by, ERASED_ADDRESS)
    return ErasedRows(None, erased, waiting=await personal_queries.bulk_acts_under_way(db, person.found_by))


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the contact of the address, if there is one."""
    contact_id = await queries.id_of(db, person.address)
    row = None if contact_id is None else await overview_queries.contact(db, contact_id)
    found = None if contact_id is None else await queries.found(db, contact_id)
    if contact_id is None or row is None or found is None:
        return
    moments = await contact_moments(db, contact_id)
    events = await overview_queries.events(db, contact_id, (LATEST, NEWEST), MOST_EVENTS)
    yield {
        "id": row.id,
        "email": row.email,
        "first_name": row.first_name,
        "last_name": row.last_name,
        "unsubscribed": row.unsubscribed,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "properties": msgspec.json.decode(found.encoded),
        "topics": [
            {"name": topic.name, "subscription": topic.subscription, "chosen_at": topic.chosen_at}
            for topic in await overview_queries.topics(db, contact_id)
        ],
        "segments": [
            {"name": moment.name, "added_at": moment.at}
            for moment in moments
            if moment.kind == "joined_segment"
        ],
        "import": next(
            (
                {"id": moment.id, "file_name": moment.name, "consent_note": moment.note}
                for moment in moments
                if moment.kind == "imported"
            ),
            None,
        ),
        "events": [
            {
                "name": event.name,
                "first_at": event.first_at,
                "last_at": event.last_at,
                "occurrences": event.occurrences,
            }
            for event in events
        ],
    }


PERSONAL_DATA: Final = [
    PersonalData(name="contacts", order=10, eraser=contact_eraser, read=read),
    PersonalData(name="import_errors", order=11, eraser=lambda _: erase_errors),
    PersonalData(name="imports", order=13, eraser=lambda _: erase_imports),
    PersonalData(name="bulk_acts", order=14, eraser=lambda _: erase_bulk_acts),
]
