"""SQL of contacts: the rows of one team. What is merged is merged here, never outside of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET, Raw

from pillarbox.contact_properties.definitions import Values
from pillarbox.contacts.change import ContactChange
from pillarbox.contacts.list_queries import ListedContact
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress

# Whoever inserts second updates what the first has committed: the constraint decides. The row is locked even
# where nothing changes, and then nothing comes back.
UPSERT = """
    INSERT INTO contacts AS c
           (team_id, id, address, email, first_name, last_name, unsubscribed, properties, created_at,
            updated_at)
    VALUES ($1, $2, $3, $4, $6, $8, coalesce($9, false), $10::text::jsonb, $12, $12)
    ON CONFLICT ON CONSTRAINT contacts_team_address_key DO UPDATE
       SET first_name = CASE WHEN $5 THEN $6 ELSE c.first_name END,
           last_name = CASE WHEN $7 THEN $8 ELSE c.last_name END,
           unsubscribed = coalesce($9, c.unsubscribed),
           properties = (c.properties || $10::text::jsonb) - $11::text[],
           updated_at = $12
     WHERE (c.first_name, c.last_name, c.unsubscribed, c.properties) IS DISTINCT FROM (
               CASE WHEN $5 THEN $6 ELSE c.first_name END,
               CASE WHEN $7 THEN $8 ELSE c.last_name END,
               coalesce($9, c.unsubscribed),
               (c.properties || $10::text::jsonb) - $11::text[])
    RETURNING c.id
"""

CHANGE = """
    UPDATE contacts
       SET first_name = CASE WHEN $3 THEN $4 ELSE first_name END,
           last_name = CASE WHEN $5 THEN $6 ELSE last_name END,
           unsubscribed = coalesce($7, unsubscribed),
           properties = (properties || $8::text::jsonb) - $9::text[],
           updated_at = $10
     WHERE team_id = $1 AND id = $2
       AND (first_name, last_name, unsubscribed, properties) IS DISTINCT FROM (
               CASE WHEN $3 THEN $4 ELSE first_name END,
               CASE WHEN $5 THEN $6 ELSE last_name END,
               coalesce($7, unsubscribed),
               (properties || $8::text::jsonb) - $9::text[])
    RETURNING id
"""

TOUCH = """
    UPDATE contacts SET updated_at = $3 WHERE team_id = $1 AND id = $2
"""

LOCK = """
    SELECT id, coalesce(email, address) AS email, first_name, last_name, unsubscribed, created_at, updated_at
      FROM contacts
     WHERE team_id = $1 AND id = $2
       FOR NO KEY UPDATE
"""

LOCK_ALONE = """
    SELECT id, coalesce(email, address) AS email, first_name, last_name, unsubscribed, created_at, updated_at
      FROM contacts
     WHERE team_id = $1 AND id = $2
       FOR UPDATE
"""

DELETE = """
    DELETE FROM contacts WHERE team_id = $1 AND id = $2
"""

ID_OF = """
    SELECT id FROM contacts WHERE team_id = $1 AND address = $2
"""

ID = """
    SELECT id FROM contacts WHERE team_id = $1 AND id = $2
"""

ADDRESS = """
    SELECT address FROM contacts WHERE team_id = $1 AND id = $2
"""

# Values of a property that was deleted are still there for a while (docs/decisions/0060).
FOUND = """
    SELECT id, coalesce(email, address) AS email, first_name, last_name, unsubscribed, created_at,
           (SELECT string_agg('"' || p.key || '":{"value":' || v.value || ',"type":"' || p.type || '"}',
                              ',' ORDER BY p.key COLLATE "C")
              FROM jsonb_each(c.properties) AS v
              JOIN contact_properties p
                ON p.team_id = $1 AND p.number = v.key::integer AND p.deleted_at IS NULL) AS properties
      FROM contacts c
     WHERE team_id = $1 AND id = $2
"""

# By their keys, and not the numbers under which values are kept.
NAMED_IN_MAIL = """
    SELECT c.address, coalesce(c.email, c.address) AS email, c.first_name, c.last_name,
           (SELECT coalesce(jsonb_object_agg(p.key, v.value), '{}')::text
              FROM jsonb_each(c.properties) AS v
              JOIN contact_properties p
                ON p.team_id = $1 AND p.number = v.key::integer AND p.deleted_at IS NULL) AS properties
      FROM contacts c
     WHERE c.team_id = $1 AND c.address = ANY ($2::text[])
"""

# Rows are locked in the order of addresses, as by everybody who locks several.
REMOVE_VALUES = """
    WITH walked AS MATERIALIZED (
        SELECT id, properties ?| $3::text[] AS is_concerned
          FROM contacts
         WHERE team_id = $1 AND id > $2
         ORDER BY id
         LIMIT $4
    ), held AS MATERIALIZED (
        SELECT c.id
          FROM contacts c
          JOIN walked ON walked.id = c.id AND walked.is_concerned
         WHERE c.team_id = $1
         ORDER BY c.address COLLATE "C"
           FOR NO KEY UPDATE OF c
    ), changed AS (
        UPDATE contacts c
           SET properties = c.properties - $3::text[]
          FROM held
         WHERE c.team_id = $1 AND c.id = held.id
    )
    SELECT id FROM walked ORDER BY id DESC LIMIT 1
"""

FIRST = UUID(int=0)
"""Before all contacts."""


class NamedInMail(NamedTuple):
    """A contact as mail names it; `properties` is JSON."""

    address: str
    email: str
    first_name: str | None
    last_name: str | None
    properties: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactWithProperties(ListedContact):
    """The same with its properties as answers encode them, sorted and with commas between; None where it has
    none. They may be megabytes, so nothing else is made of them where a request waits."""

    properties: str | None

    @property
    def encoded(self) -> Raw:
        """The object of all properties."""
        return Raw(f"{{{self.properties or ''}}}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRow:
    """A contact without its properties; `email` as it is shown."""

    id: UUID
    email: str
    first_name: str | None
    last_name: str | None
    unsubscribed: bool
    created_at: datetime
    updated_at: datetime


class StoredContact(NamedTuple):
    """Which contact has the address now, and whether it is new, or another than it was."""

    id: UUID
    is_new: bool
    has_changed: bool


def _members(change: ContactChange) -> tuple[Any, ...]:
    first, last = change.first_name, change.last_name
    return (
        first is not UNSET,
        None if first is UNSET else first,
        last is not UNSET,
        None if last is UNSET else last,
        None if change.unsubscribed is UNSET else change.unsubscribed,
    )


async def upsert(
    db: TeamDb, new_id: UUID, address: EmailAddress, change: ContactChange, values: Values, now: datetime
) -> StoredContact:
    """Make the contact of an address, or change the one that has it; its row is locked."""
    args = (*_members(change), values.given, values.cleared, now)
    found = await db.value(UPSERT, new_id, address.address, address.given, *args)
    if found is None:
        return StoredContact(await db.value(ID_OF, address.address), is_new=False, has_changed=False)
    return StoredContact(found, is_new=found == new_id, has_changed=True)


async def change(db: TeamDb, contact_id: UUID, change: ContactChange, values: Values, now: datetime) -> bool:
    """Change what is given; False where that makes no difference."""
    args = (*_members(change), values.given, values.cleared, now)
    return await db.value(CHANGE, contact_id, *args) is not None


async def touch(db: TeamDb, contact_id: UUID, now: datetime) -> None:
    """Store the date of a change that is not in the row."""
    await db.run(TOUCH, contact_id, now)


async def lock(db: TeamDb, contact_id: UUID) -> ContactRow | None:
    return await db.one(ContactRow, LOCK, contact_id)


async def lock_alone(db: TeamDb, contact_id: UUID) -> ContactRow | None:
    """Lock the contact for its deletion: others that add a member wait as well."""
    return await db.one(ContactRow, LOCK_ALONE, contact_id)


async def delete(db: TeamDb, contact_id: UUID) -> None:
    await db.run(DELETE, contact_id)


async def id_of(db: TeamDb, address: str) -> UUID | None:
    """Return the id of the contact with this address, in the form in which addresses are compared."""
    found: UUID | None = await db.value(ID_OF, address)
    return found


async def exists(db: TeamDb, contact_id: UUID) -> bool:
    return await db.value(ID, contact_id) is not None


async def found(db: TeamDb, contact_id: UUID) -> ContactWithProperties | None:
    return await db.one(ContactWithProperties, FOUND, contact_id)


async def address_of(db: TeamDb, contact_id: UUID) -> str | None:
    """Return the address of a contact, as it is compared."""
    address: str | None = await db.value(ADDRESS, contact_id)
    return address


async def remove_values(db: TeamDb, after: UUID, numbers: list[str], batch: int) -> UUID | None:
    """Take values from the next contacts; returns the last of them, None where there are no more."""
    last: UUID | None = await db.value(REMOVE_VALUES, after, numbers, batch)
    return last


async def named_in_mail(db: TeamDb, addresses: Sequence[str]) -> list[NamedInMail]:
    return await db.all(NamedInMail, NAMED_IN_MAIL, addresses)
