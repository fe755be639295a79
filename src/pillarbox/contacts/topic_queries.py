"""SQL of what a contact chose of topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.contacts.change import Subscription
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

# What counted before, of topics that are not deleted; the choices of these are written.
CHOOSE = """
    WITH before AS (
        SELECT t.id, coalesce(c.subscription, t.default_subscription) AS subscription
          FROM topics t
          LEFT JOIN topic_choices c ON c.team_id = t.team_id AND c.topic_id = t.id AND c.contact_id = $2
         WHERE t.team_id = $1 AND t.id = ANY ($3::uuid[]) AND t.deleted_at IS NULL
    ), chosen AS (
        INSERT INTO topic_choices AS c (team_id, contact_id, topic_id, subscription, chosen_at)
        SELECT $1, $2, k.topic_id, k.subscription, $5
          FROM unnest($3::uuid[], $4::text[]) AS k (topic_id, subscription)
          JOIN before ON before.id = k.topic_id
         ORDER BY k.topic_id
        ON CONFLICT (team_id, contact_id, topic_id) DO UPDATE
           SET subscription = excluded.subscription, chosen_at = excluded.chosen_at
         WHERE c.subscription <> excluded.subscription
    )
    SELECT id, subscription FROM before
"""

REMOVE_ALL = """
    DELETE FROM topic_choices WHERE team_id = $1 AND contact_id = $2
"""

LIVE = """
    SELECT id FROM topics WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
"""

PAGE = """
    SELECT id, name, description, subscription FROM (
        (SELECT t.id, t.name, t.description, coalesce(c.subscription, t.default_subscription) AS subscription
           FROM topics t
           LEFT JOIN topic_choices c ON c.team_id = t.team_id AND c.topic_id = t.id AND c.contact_id = $5
          WHERE t.team_id = $1 AND t.id < $2 AND t.deleted_at IS NULL ORDER BY t.id DESC LIMIT $4)
        UNION ALL
        (SELECT t.id, t.name, t.description, coalesce(c.subscription, t.default_subscription) AS subscription
           FROM topics t
           LEFT JOIN topic_choices c ON c.team_id = t.team_id AND c.topic_id = t.id AND c.contact_id = $5
          WHERE t.team_id = $1 AND t.id > $3 AND t.deleted_at IS NULL ORDER BY t.id LIMIT $4)
    ) AS page
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOfContact:
    """`subscription` is what counts: the contact's choice, else the topic's default."""

    id: UUID
    name: str
    description: str | None
    subscription: Subscription


class EffectiveSubscription(NamedTuple):
    id: UUID
    subscription: str


async def live(db: TeamDb, topic_ids: list[UUID]) -> set[UUID]:
    """Return those of these topics that the team has."""
    return set(await db.values(LIVE, topic_ids))


async def choose(
    db: TeamDb, contact_id: UUID, choices: Mapping[UUID, Subscription], now: datetime
) -> dict[UUID, str]:
    """Write down what a contact, whose row is locked, has chosen; returns what counted before, of those
    topics that are not deleted."""
    found = await db.all(
        EffectiveSubscription, CHOOSE, contact_id, list(choices), list(choices.values()), now
    )
    return dict(found)


async def remove_all(db: TeamDb, contact_id: UUID) -> None:
    await db.run(REMOVE_ALL, contact_id)


async def page(db: TeamDb, contact_id: UUID, page: Page) -> list[TopicOfContact]:
    return await db.all(TopicOfContact, PAGE, *page.args, contact_id)
