"""SQL of what the operator is shown of a contact."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.contacts.queries import ContactRow
from pillarbox.kernel.postgres.database import TeamDb

CONTACT = """
    SELECT id, coalesce(email, address) AS email, first_name, last_name, unsubscribed, created_at, updated_at
      FROM contacts
     WHERE team_id = $1 AND id = $2
"""

TOPICS = """
    SELECT t.id, t.name, coalesce(c.subscription, t.default_subscription) AS subscription, c.chosen_at
      FROM topics t
      LEFT JOIN topic_choices c ON c.team_id = t.team_id AND c.topic_id = t.id AND c.contact_id = $2
     WHERE t.team_id = $1 AND t.deleted_at IS NULL
     ORDER BY t.id DESC
"""

SUPPRESSED = """
    SELECT id, origin, created_at FROM suppressions WHERE team_id = $1 AND address = $2
"""

MOMENTS = """
    SELECT c.created_at AS happened_at, c.id, 'created' AS kind, NULL AS name, NULL AS note
      FROM contacts c
     WHERE c.team_id = $1 AND c.id = $2 AND c.import_id IS NULL
     UNION ALL
    SELECT c.created_at, c.import_id, 'imported', i.file_name, i.consent_note
      FROM contacts c
      LEFT JOIN contact_imports i ON i.team_id = c.team_id AND i.id = c.import_id
     WHERE c.team_id = $1 AND c.id = $2 AND c.import_id IS NOT NULL
     UNION ALL
    SELECT m.added_at, s.id, 'joined_segment', s.name, NULL
      FROM segment_members m
      JOIN segments s ON s.team_id = m.team_id AND s.id = m.segment_id
     WHERE m.team_id = $1 AND m.contact_id = $2
     UNION ALL
    SELECT k.chosen_at, t.id, k.subscription, t.name, NULL
      FROM topic_choices k
      JOIN topics t ON t.team_id = k.team_id AND t.id = k.topic_id AND t.deleted_at IS NULL
     WHERE k.team_id = $1 AND k.contact_id = $2
"""


# A contact that had a name of events many times has one row for it.
EVENTS = """
    SELECT name, md5(name)::uuid AS id, first_at, last_at, occurrences
      FROM contact_events
     WHERE team_id = $1 AND contact_id = $2 AND (last_at, md5(name)::uuid) < ($3, $4)
     ORDER BY last_at DESC, id DESC
     LIMIT $5
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInDetail:
    """A topic and the subscription that counts for a contact; `chosen_at` is None where the contact did not
    choose."""

    id: UUID
    name: str
    subscription: str
    chosen_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedAddress:
    id: UUID
    origin: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentRow:
    """Something that happened to a contact, with the id and name of the segment, topic or import."""

    happened_at: datetime
    id: UUID
    kind: str
    name: str | None
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOfContact:
    """The events of one name that a contact had; `id` is made of the name."""

    name: str
    id: UUID
    first_at: datetime
    last_at: datetime
    occurrences: int


async def moments(db: TeamDb, contact_id: UUID) -> list[MomentRow]:
    """Return when the contact was made, joined its segments, and chose topics."""
    return await db.all(MomentRow, MOMENTS, contact_id)


async def events(
    db: TeamDb, contact_id: UUID, before: tuple[datetime, UUID], limit: int
) -> list[EventOfContact]:
    """Return the events of a contact by name, those that happened last first, before an instant and id."""
    return await db.all(EventOfContact, EVENTS, contact_id, *before, limit)


async def contact(db: TeamDb, contact_id: UUID) -> ContactRow | None:
    return await db.one(ContactRow, CONTACT, contact_id)


async def topics(db: TeamDb, contact_id: UUID) -> list[TopicInDetail]:
    """Return all topics of the team with the contact's subscriptions, the newest first."""
    return await db.all(TopicInDetail, TOPICS, contact_id)


async def suppressed(db: TeamDb, address: str) -> SuppressedAddress | None:
    """Return the entry of an address in the suppression list."""
    return await db.one(SuppressedAddress, SUPPRESSED, address)
