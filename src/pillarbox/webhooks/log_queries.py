"""SQL of the log of a webhook beside its resource: events that failed, and an event for one webhook alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks.queries import LoggedEvent


class WebhookFailures(NamedTuple):
    """A webhook with the number of its events that failed lately."""

    webhook_id: UUID
    endpoint: str
    failed: int


async def failures(
    db: TeamDb, webhook_ids: Sequence[UUID] | None, lower: UUID, counted: int
) -> list[WebhookFailures]:
    """Return how many of the newest `counted` ended events from `lower` on failed, of these webhooks or of
    the newest hundred."""
    return await db.all(
        WebhookFailures,
        """
        SELECT w.id AS webhook_id, w.endpoint,
               (SELECT count(*) FILTER (WHERE ended.status = 'failed')
                  FROM (SELECT o.status
                          FROM webhook_outcomes o
                         WHERE o.team_id = w.team_id AND o.webhook_id = w.id AND o.event_id >= $3
                         ORDER BY o.event_id DESC
                         LIMIT $4) AS ended) AS failed
          FROM webhooks w
         WHERE w.team_id = $1 AND w.kind = 'endpoint' AND ($2::uuid[] IS NULL OR w.id = ANY ($2))
         ORDER BY w.id DESC
         LIMIT 100
        """,
        webhook_ids,
        lower,
        counted,
    )


async def failed_events(
    db: TeamDb, webhook_id: UUID, lower: UUID, upper: UUID, scanned: int, limit: int
) -> list[LoggedEvent]:
    """Return the newest failed events from `lower` up to but not including `upper`. It reads the newest
    `scanned` ended events of that range."""
    return await db.all(
        LoggedEvent,
        """
        SELECT event_id, kind, at, status, NULL::timestamptz AS due_at, subject_id, position, detail
          FROM (SELECT event_id, kind, at, status, subject_id, position, detail
                  FROM webhook_outcomes
                 WHERE team_id = $1 AND webhook_id = $2 AND event_id >= $3 AND event_id < $4
                 ORDER BY event_id DESC
                 LIMIT $5) AS ended
         WHERE status = 'failed'
        UNION ALL
        (SELECT d.event_id, d.kind, d.at, 'failed', NULL, d.subject_id, d.position, d.detail
           FROM webhook_deliveries d
           JOIN webhooks w ON w.team_id = d.team_id AND w.id = d.webhook_id AND w.epoch <> d.epoch
          WHERE d.team_id = $1 AND d.webhook_id = $2 AND d.event_id >= $3 AND d.event_id < $4
            AND d.replay = '00000000-0000-0000-0000-000000000000'
          ORDER BY d.event_id DESC
          LIMIT $6)
         ORDER BY event_id DESC
         LIMIT $6
        """,
        webhook_id,
        lower,
        upper,
        scanned,
        limit,
    )


async def insert_event(
    db: TeamDb, webhook_id: UUID, event_id: UUID, kind: str, now: datetime, payload: bytes
) -> bool:
    """Store an event and queue it for one webhook; return False where that takes none now."""
    queued = await db.run(
        """
        WITH hook AS (
            SELECT team_id, id, epoch
              FROM webhooks
             WHERE team_id = $1 AND id = $2 AND status = 'enabled' AND kind = 'endpoint'
        ), stored AS (
            INSERT INTO webhook_events (team_id, id, kind, at, payload)
            SELECT team_id, $3, $4, $5, $6 FROM hook
        )
        INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at)
        SELECT team_id, id, $3, $4, $5, epoch, $5 FROM hook
        """,
        webhook_id,
        event_id,
        kind,
        now,
        payload,
    )
    return queued == 1


async def digest_of_one(db: TeamDb, webhook_id: UUID) -> str:
    """Return a digest of the newest hundred events of a webhook that have ended, and of those under way."""
    found: str = await db.value(
        """
        SELECT md5(coalesce(string_agg(k.state, ',' ORDER BY k.state), ''))
          FROM ((SELECT concat_ws(' ', o.event_id, o.status) AS state
                   FROM webhook_outcomes o
                  WHERE o.team_id = $1 AND o.webhook_id = $2
                  ORDER BY o.event_id DESC
                  LIMIT 100)
                UNION ALL
                (SELECT concat_ws(' ', q.event_id, q.replay, q.attempt, q.tries, q.owner)
                   FROM webhook_deliveries q
                  WHERE q.team_id = $1 AND q.webhook_id = $2
                  ORDER BY q.event_id DESC
                  LIMIT 100)
                UNION ALL
                SELECT concat_ws(' ', w.status, w.failing_since, w.last_failure_at)
                  FROM webhooks w
                 WHERE w.team_id = $1 AND w.id = $2) AS k
        """,
        webhook_id,
    )
    return found


async def digest_of_all(db: TeamDb) -> str:
    """Return a digest of the states of the newest hundred webhooks."""
    found: str = await db.value(
        """
        SELECT md5(coalesce(string_agg(k.state, ',' ORDER BY k.state), ''))
          FROM (SELECT concat_ws(' ', w.id, w.status, w.failing_since, w.last_failure_at) AS state
                  FROM webhooks w
                 WHERE w.team_id = $1
                 ORDER BY w.id DESC
                 LIMIT 100) AS k
        """
    )
    return found
