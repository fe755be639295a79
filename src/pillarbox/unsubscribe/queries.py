"""SQL of the page behind a link: whose link it is, what can be chosen, and how the team wants it to look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

RECIPIENT = """
    SELECT c.id AS contact_id, coalesce(c.unsubscribed, false) AS is_unsubscribed, e.sender,
           own.unsubscribe_page AS page_settings
      FROM (SELECT $1::uuid AS team_id) AS k
      LEFT JOIN teams own ON own.id = k.team_id
      LEFT JOIN contacts c ON c.team_id = k.team_id AND c.address = $2
      LEFT JOIN complete_emails e ON e.team_id = k.team_id AND e.id = $3
"""

# A contact that is none yet has no choices. The topics of `$4` are shown whatever they are.
TOPICS = """
    SELECT t.id, t.name, t.description, t.visibility = 'public' AS is_public,
           coalesce(h.subscription, t.default_subscription) = 'opt_in' AS is_subscribed
      FROM topics t
      LEFT JOIN topic_choices h ON h.team_id = t.team_id AND h.topic_id = t.id AND h.contact_id = $2
     WHERE t.team_id = $1 AND t.deleted_at IS NULL
       AND (t.visibility = 'public' OR coalesce(h.subscription, t.default_subscription) = 'opt_in'
            OR t.id = ANY ($4::uuid[]))
     ORDER BY t.id = ANY ($4::uuid[]) DESC, lower(t.name), t.id
     LIMIT $3
"""


# What one click needs to know, at once.
CLICK = """
    SELECT c.id AS contact_id, t.id AS topic_id
      FROM (SELECT $1::uuid AS team_id) AS k
      LEFT JOIN contacts c ON c.team_id = k.team_id AND c.address = $2
      LEFT JOIN topics t ON t.team_id = k.team_id AND t.id = $3 AND t.deleted_at IS NULL
"""


class UnsubscribeClick(NamedTuple):
    """The contact that an address is, and the topic that a mail was about, where there are such."""

    contact_id: UUID | None
    topic_id: UUID | None


class LinkHolder(NamedTuple):
    """The holder of the link, as far as they are known."""

    contact_id: UUID | None
    is_unsubscribed: bool
    sender: str | None
    page_settings: str | None = None
    """The team's choices for the page, as JSON."""


class ShownTopic(NamedTuple):
    """A topic as the recipient has it."""

    id: UUID
    name: str
    description: str | None
    is_public: bool
    is_subscribed: bool


async def click(db: TeamDb, address: str, topic_id: UUID | None) -> UnsubscribeClick:
    return await db.one(UnsubscribeClick, CLICK, address, topic_id) or UnsubscribeClick(None, None)


async def recipient(db: TeamDb, address: str, email_id: UUID) -> LinkHolder:
    """Return the facts about an address, and who wrote the email."""
    found = await db.one(LinkHolder, RECIPIENT, address, email_id)
    return found or LinkHolder(None, is_unsubscribed=False, sender=None)


async def topics(db: TeamDb, contact_id: UUID | None, limit: int, also: Sequence[UUID]) -> list[ShownTopic]:
    """Return the topics that are public or that the contact gets, and those of `also`; these first."""
    return await db.all(ShownTopic, TOPICS, contact_id, limit, list(also))


async def page_settings(db: TeamDb) -> str | None:
    """Return the team's choices for its page, as JSON."""
    found: str | None = await db.value("SELECT unsubscribe_page FROM teams WHERE id = $1")
    return found


async def set_page_settings(db: TeamDb, stored: str | None) -> bool:
    """Store the team's choices. Return whether that is something else than before."""
    return bool(
        await db.run(
            """
            UPDATE teams SET unsubscribe_page = $2::jsonb
             WHERE id = $1 AND unsubscribe_page IS DISTINCT FROM $2::jsonb
            """,
            stored,
        )
    )
