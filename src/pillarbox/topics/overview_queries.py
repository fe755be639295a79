"""SQL of what the operator sees of topics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOverview:
    """A topic, with how many contacts chose to get it and not to get it."""

    id: UUID
    name: str
    default_subscription: str
    visibility: str
    joined: int
    refused: int
    created_at: datetime


async def every(db: TeamDb) -> list[TopicOverview]:
    """Return the topics of a team, the newest first."""
    return await db.all(
        TopicOverview,
        """
        SELECT t.id, t.name, t.default_subscription, t.visibility, coalesce(c.joined, 0) AS joined,
               coalesce(c.refused, 0) AS refused, t.created_at
          FROM topics t
          LEFT JOIN (SELECT topic_id, count(*) FILTER (WHERE subscription = 'opt_in') AS joined,
                            count(*) FILTER (WHERE subscription = 'opt_out') AS refused
                       FROM topic_choices
                      WHERE team_id = $1
                      GROUP BY topic_id) AS c ON c.topic_id = t.id
         WHERE t.team_id = $1 AND t.deleted_at IS NULL
         ORDER BY t.id DESC
        """,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSubscribers:
    """How many contacts get the mail of a topic."""

    id: UUID
    subscribers: int


async def subscribers(db: TeamDb) -> list[TopicSubscribers]:
    """Count the contacts of each topic that get its mail: by their choice, else by the topic's default."""
    return await db.all(
        TopicSubscribers,
        """
        WITH chosen AS (
            SELECT c.topic_id, count(*) FILTER (WHERE c.subscription = 'opt_in') AS joined,
                   count(*) FILTER (WHERE c.subscription = 'opt_out') AS refused
              FROM topic_choices c
              JOIN contacts p ON p.team_id = c.team_id AND p.id = c.contact_id AND NOT p.unsubscribed
             WHERE c.team_id = $1
             GROUP BY c.topic_id
        )
        SELECT t.id,
               CASE t.default_subscription
                    WHEN 'opt_in' THEN (SELECT count(*) FROM contacts WHERE team_id = $1 AND NOT unsubscribed)
                                       - coalesce(c.refused, 0)
                    ELSE coalesce(c.joined, 0) END AS subscribers
          FROM topics t
          LEFT JOIN chosen c ON c.topic_id = t.id
         WHERE t.team_id = $1 AND t.deleted_at IS NULL
        """,
    )
