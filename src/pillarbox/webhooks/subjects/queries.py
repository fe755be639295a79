"""SQL of the webhook events of one subject, such as an email."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

# Of each webhook and range the first $7 events that have ended, and as many under way, are looked through for
# those of the subject.
DELIVERIES: Final = """
    SELECT w.id AS webhook_id, w.endpoint, d.event_id, d.kind, d.at, d.status, a.sent_at,
           a.http_status_code, a.response
      FROM webhooks w
     CROSS JOIN unnest($3::uuid[], $4::uuid[]) AS k (first_id, end_id)
     CROSS JOIN LATERAL (
           SELECT o.event_id, o.kind, o.at, o.status
             FROM (SELECT event_id, kind, at, status, subject_id
                     FROM webhook_outcomes
                    WHERE team_id = $1 AND webhook_id = w.id AND event_id >= greatest(k.first_id, $5)
                      AND event_id < k.end_id
                    ORDER BY event_id
                    LIMIT $7) AS o
            WHERE o.subject_id = $2
           UNION ALL
           SELECT q.event_id, q.kind, q.at,
                  CASE WHEN q.epoch <> w.epoch THEN 'failed' WHEN q.tries > 0 THEN 'attempting'
                       ELSE 'pending' END
             FROM (SELECT event_id, kind, at, epoch, tries, subject_id
                     FROM webhook_deliveries
                    WHERE team_id = $1 AND webhook_id = w.id AND event_id >= k.first_id
                      AND event_id < k.end_id AND replay = '00000000-0000-0000-0000-000000000000'
                    ORDER BY event_id
                    LIMIT $7) AS q
            WHERE q.subject_id = $2) AS d
      LEFT JOIN LATERAL (
           SELECT t.sent_at, t.http_status_code, t.response
             FROM webhook_attempts t
            WHERE t.team_id = $1 AND t.webhook_id = w.id AND t.event_id = d.event_id
            ORDER BY t.id DESC
            LIMIT 1) AS a ON true
     WHERE w.team_id = $1 AND w.kind = 'endpoint'
     ORDER BY d.event_id, w.id
     LIMIT $6
"""


class SubjectDelivery(NamedTuple):
    """An event of the subject as one webhook has it, with its last attempt; None where there was none."""

    webhook_id: UUID
    endpoint: str
    event_id: UUID
    kind: str
    at: datetime
    status: str
    sent_at: datetime | None
    http_status_code: int | None
    response: str | None


async def deliveries(
    db: TeamDb,
    subject_id: UUID,
    ranges: Sequence[tuple[UUID, UUID]],
    oldest: UUID,
    limit: int,
    scanned: int,
) -> list[SubjectDelivery]:
    """Return the events of the subject with ids in these ranges; those that have ended from `oldest` on. Of
    each webhook and range `scanned` events are looked through."""
    starts, ends = zip(*ranges, strict=True)
    return await db.all(SubjectDelivery, DELIVERIES, subject_id, starts, ends, oldest, limit, scanned)
