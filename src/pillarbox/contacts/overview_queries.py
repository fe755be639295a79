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
    SELECT origin, created_at FROM suppressions WHERE team_id = $1 AND address = $2
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
    origin: str
    created_at: datetime


async def contact(db: TeamDb, contact_id: UUID) -> ContactRow | None:
    return await db.one(ContactRow, CONTACT, contact_id)


async def topics(db: TeamDb, contact_id: UUID) -> list[TopicInDetail]:
    """Return all topics of the team with the contact's subscriptions, the newest first."""
    return await db.all(TopicInDetail, TOPICS, contact_id)


async def suppressed(db: TeamDb, address: str) -> SuppressedAddress | None:
    """Return the entry of an address in the suppression list."""
    return await db.one(SuppressedAddress, SUPPRESSED, address)
