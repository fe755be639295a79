"""SQL of the topics. A deleted topic is there for mail that was accepted for it, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a team that is not deleted."""

    id: UUID
    name: str
    description: str | None
    default_subscription: str
    visibility: str
    created_at: datetime
    updated_at: datetime


async def insert(db: TeamDb, topic: Topic) -> None:
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


async def page(db: TeamDb, page: Page) -> list[Topic]:
    return await db.all(
        Topic,
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


async def get(db: TeamDb, topic_id: UUID) -> Topic | None:
    return await db.one(
        Topic,
        """
        SELECT id, name, description, default_subscription, visibility, created_at, updated_at
          FROM topics
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
        """,
        topic_id,
    )


async def lock(db: TeamDb, topic_id: UUID) -> Topic | None:
    """As `get`; nobody else changes or deletes the topic before the transaction ends."""
    return await db.one(
        Topic,
        """
        SELECT id, name, description, default_subscription, visibility, created_at, updated_at
          FROM topics
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
           FOR NO KEY UPDATE
        """,
        topic_id,
    )


async def update(db: TeamDb, topic: Topic) -> None:
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


async def delete(db: TeamDb, topic_id: UUID, at: datetime) -> Topic | None:
    """Mark it deleted; None where it is not there, or is deleted already."""
    return await db.one(
        Topic,
        """
        UPDATE topics
           SET deleted_at = $3, updated_at = $3
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
        RETURNING id, name, description, default_subscription, visibility, created_at, updated_at
        """,
        topic_id,
        at,
    )


async def hold(db: TeamDb, topic_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The defaults of those that are there; none of them is deleted before the transaction ends. In the order
    of their ids, so that two callers never wait for each other crosswise."""
    rows = await db.source.fetch(
        """
        SELECT id, default_subscription
          FROM topics
         WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
         ORDER BY id
           FOR SHARE
        """,
        db.team_id,
        topic_ids,
    )
    return {row["id"]: row["default_subscription"] for row in rows}
