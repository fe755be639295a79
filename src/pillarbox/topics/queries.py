"""SQL of the topics. A deleted topic is there for mail that was accepted for it, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.paging import Page


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic of a team that is not deleted."""

    id: UUID
    name: str
    description: str | None
    default_subscription: str
    visibility: str
    created_at: datetime
    updated_at: datetime


async def insert(db: TeamDb, topic: TopicRow) -> None:
    await db.run(
        """
        INSERT INTO topics (team_id, id, name, description, default_subscription, visibility, created_at,
                            updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        topic.id,
        topic.name,
        topic.description,
        topic.default_subscription,
        topic.visibility,
        topic.created_at,
        topic.updated_at,
    )


async def page(db: TeamDb, page: Page) -> list[TopicRow]:
    return await db.all(
        TopicRow,
        """
        SELECT id, name, description, default_subscription, visibility, created_at, updated_at FROM (
            (SELECT id, name, description, default_subscription, visibility, created_at, updated_at
               FROM topics
              WHERE team_id = $1 AND id < $2 AND deleted_at IS NULL ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT id, name, description, default_subscription, visibility, created_at, updated_at
               FROM topics
              WHERE team_id = $1 AND id > $3 AND deleted_at IS NULL ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
    )


async def get(db: TeamDb, topic_id: UUID) -> TopicRow | None:
    return await db.one(
        TopicRow,
        """
        SELECT id, name, description, default_subscription, visibility, created_at, updated_at
          FROM topics
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
        """,
        topic_id,
    )


async def lock(db: TeamDb, topic_id: UUID) -> TopicRow | None:
    """As `get`; nobody else changes or deletes the topic before the transaction ends."""
    return await db.one(
        TopicRow,
        """
        SELECT id, name, description, default_subscription, visibility, created_at, updated_at
          FROM topics
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
           FOR NO KEY UPDATE
        """,
        topic_id,
    )


async def update(db: TeamDb, topic: TopicRow) -> None:
    await db.run(
        """
        UPDATE topics
           SET name = $3, description = $4, visibility = $5, updated_at = $6
         WHERE team_id = $1 AND id = $2
        """,
        topic.id,
        topic.name,
        topic.description,
        topic.visibility,
        topic.updated_at,
    )


async def delete(db: TeamDb, topic_id: UUID, now: datetime) -> TopicRow | None:
    """Mark it deleted; None where it is not there, or is deleted already."""
    return await db.one(
        TopicRow,
        """
        UPDATE topics
           SET deleted_at = $3, updated_at = $3
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
        RETURNING id, name, description, default_subscription, visibility, created_at, updated_at
        """,
        topic_id,
        now,
    )


async def live(db: TeamDb, topic_ids: Sequence[UUID]) -> Sequence[UUID]:
    return await db.values(
        "SELECT id FROM topics WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL", topic_ids
    )


# For several teams at once: who of these gets no mail of a topic. A topic that is deleted counts as it was;
# of one that is not known nobody gets mail.
REFUSED: Final = """
    SELECT k.team_id, k.topic_id, k.address
      FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS k (team_id, topic_id, address)
      LEFT JOIN topics t ON t.team_id = k.team_id AND t.id = k.topic_id
      LEFT JOIN contacts p ON p.team_id = k.team_id AND p.address = k.address
      LEFT JOIN topic_choices c ON c.team_id = k.team_id AND c.contact_id = p.id AND c.topic_id = k.topic_id
     WHERE p.unsubscribed
        OR coalesce(c.subscription, t.default_subscription, 'opt_out') = 'opt_out'
"""


async def refused(
    conn: Connection, teams: Sequence[UUID], topics: Sequence[UUID], addresses: Sequence[str]
) -> set[tuple[UUID, UUID, str]]:
    return {tuple(row) for row in await conn.fetch(REFUSED, teams, topics, addresses)}
