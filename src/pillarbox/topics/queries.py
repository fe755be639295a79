"""SQL of the topics. A deleted topic is there for mail that was accepted for it, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import row_json
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic of a team that is not deleted."""

    id: UUID
    name: str
    description: str | None
    default_subscription: str
    visibility: str
    created_at: datetime
    updated_at: datetime


# The topics of a page, or the one with the id `$5`.
READ: Final = """
    SELECT id, name, description, default_subscription, visibility, created_at, updated_at
      FROM (
        (SELECT * FROM topics
          WHERE team_id = $1 AND id < $2 AND deleted_at IS NULL ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM topics
          WHERE team_id = $1 AND id > $3 AND deleted_at IS NULL ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM topics
          WHERE team_id = $1 AND id = $5 AND deleted_at IS NULL)
    ) AS page
"""


async def page(db: TeamDb, page: Page) -> list[TopicRow]:
    return await db.all(TopicRow, READ, *page.args, None)


async def get(db: TeamDb, topic_id: UUID) -> TopicRow | None:
    return await db.one(TopicRow, READ, *NO_PAGE, topic_id)


async def lock(db: TeamDb, topic_id: UUID) -> TopicRow | None:
    """Return the topic as `get` does, and lock it until the transaction ends."""
    await db.run(
        """
        SELECT 1 FROM topics WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE
        """,
        topic_id,
    )
    return await get(db, topic_id)


async def insert(db: TeamDb, topic: TopicRow) -> None:
    await db.run(
        """
        INSERT INTO topics (team_id, id, created_at, updated_at, name, description, default_subscription,
                            visibility)
        SELECT $1, id, created_at, updated_at, name, description, default_subscription, visibility
          FROM json_populate_record(NULL::topics, $2::text::json)
        """,
        row_json(topic),
    )


async def update(db: TeamDb, topic: TopicRow) -> None:
    await db.run(
        """
        UPDATE topics t
           SET updated_at = k.updated_at, name = k.name, description = k.description,
               visibility = k.visibility
          FROM json_populate_record(NULL::topics, $2::text::json) AS k
         WHERE t.team_id = $1 AND t.id = k.id
        """,
        row_json(topic),
    )


async def mark_deleted(db: TeamDb, topic_id: UUID, now: datetime) -> None:
    await db.run(
        "UPDATE topics SET deleted_at = $3, updated_at = $3 WHERE team_id = $1 AND id = $2", topic_id, now
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


class DeletedTopicsOwner(NamedTuple):
    """A team that has deleted topics, and the email of its oldest open delivery."""

    team_id: UUID
    oldest_open: UUID | None


class DeletedTopic(NamedTuple):
    """A deleted topic with the instant when the last of its mail began."""

    id: UUID
    last_mail_at: datetime


class RemovedChoices(NamedTuple):
    """How many choices were removed, and the key of the last one that was looked at."""

    removed: int
    contact_id: UUID
    topic_id: UUID


# Across teams: the next team that has deleted topics.
async def next_with_deleted(source: Source, after: UUID, before: datetime) -> DeletedTopicsOwner | None:
    """Return the first team behind `after` that has topics which were deleted before an instant."""
    row = await source.fetchrow(
        """
        SELECT t.team_id,
               (SELECT d.email_id FROM deliveries d WHERE d.team_id = t.team_id ORDER BY d.email_id LIMIT 1)
          FROM topics t
         WHERE t.team_id > $1 AND t.deleted_at < $2
         ORDER BY t.team_id
         LIMIT 1
        """,
        after,
        before,
    )
    return None if row is None else DeletedTopicsOwner(*row)


async def deleted(db: TeamDb, before: datetime, limit: int) -> list[DeletedTopic]:
    """Return topics that were deleted before an instant and have no open broadcast, those without mail for
    longest first."""
    # Copies of a broadcast that had the topic are made until it is sent: that is when the last of its mail
    # begins.
    return await db.all(
        DeletedTopic,
        """
        SELECT t.id, greatest(t.deleted_at, b.sent_at) AS last_mail_at
          FROM topics t
          LEFT JOIN (SELECT topic_id, max(sent_at) AS sent_at,
                            bool_or(status IN ('scheduled', 'queued')) AS is_open
                       FROM broadcasts
                      WHERE team_id = $1 AND topic_id IS NOT NULL
                      GROUP BY topic_id) AS b ON b.topic_id = t.id
         WHERE t.team_id = $1 AND t.deleted_at < $2 AND b.is_open IS NOT TRUE
         ORDER BY last_mail_at
         LIMIT $3
        """,
        before,
        limit,
    )


async def remove_choices(
    db: TeamDb, topic_ids: Sequence[UUID], after: tuple[UUID, UUID], limit: int
) -> RemovedChoices | None:
    """Remove choices of these topics among the next `limit` choices of the team; None behind the last one."""
    # The choices of a team are gone through in the order of their key, which does not begin with the topic.
    return await db.one(
        RemovedChoices,
        """
        WITH span AS MATERIALIZED (
            SELECT contact_id, topic_id
              FROM topic_choices
             WHERE team_id = $1 AND (contact_id, topic_id) > ($3, $4)
             ORDER BY contact_id, topic_id
             LIMIT $5
        ), gone AS (
            DELETE FROM topic_choices c
             USING span
             WHERE c.team_id = $1 AND c.contact_id = span.contact_id AND c.topic_id = span.topic_id
               AND span.topic_id = ANY ($2::uuid[])
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone) AS removed, contact_id, topic_id
          FROM span
         ORDER BY contact_id DESC, topic_id DESC
         LIMIT 1
        """,
        topic_ids,
        *after,
        limit,
    )


async def remove_deleted(db: TeamDb, topic_ids: Sequence[UUID]) -> int:
    """Remove these topics, as far as they are deleted; return how many."""
    return await db.run(
        """
        DELETE FROM topics WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NOT NULL
        """,
        topic_ids,
    )
