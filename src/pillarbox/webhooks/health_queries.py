"""SQL of the failure clock: since when a webhook fails, and what follows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.webhooks.failure_clock import HealthVerdict, Key, WebhookHealth

HEALTH = """
    SELECT w.team_id, w.id, w.failing_since, w.failing_event, w.failing_several, w.told_failing_at
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, id)
      JOIN webhooks w ON w.team_id = k.team_id AND w.id = k.id AND w.status = 'enabled'
"""

LOCK_HEALTH = """
    SELECT w.team_id, w.id, w.failing_since, w.failing_event, w.failing_several, w.told_failing_at
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, id)
      JOIN webhooks w ON w.team_id = k.team_id AND w.id = k.id AND w.status = 'enabled'
     ORDER BY w.team_id, w.id
       FOR NO KEY UPDATE OF w
"""

SET_HEALTH = """
    UPDATE webhooks w
       SET failing_since = k.failing_since, failing_event = k.failing_event,
           failing_several = k.failing_several, told_failing_at = k.told_failing_at,
           last_failure_at = coalesce(k.last_failure_at, w.last_failure_at),
           last_status_code = coalesce(k.last_status_code, w.last_status_code),
           status = CASE WHEN k.disable THEN 'disabled' ELSE w.status END,
           epoch = w.epoch + k.disable::integer
      FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::boolean[], $6::timestamptz[],
                  $7::timestamptz[], $8::smallint[], $9::boolean[])
           AS k (team_id, id, failing_since, failing_event, failing_several, told_failing_at,
                 last_failure_at, last_status_code, disable)
     WHERE w.team_id = k.team_id AND w.id = k.id AND w.status = 'enabled'
    RETURNING w.team_id, w.id, k.disable
"""

FAILING = """
    SELECT id, endpoint, last_failure_at, last_status_code
      FROM webhooks
     WHERE team_id = $1 AND id = $2 AND kind = 'endpoint'
"""


class FailingWebhook(NamedTuple):
    """A failing webhook, as a notice shows it."""

    id: UUID
    endpoint: str
    last_failure_at: datetime | None
    last_status_code: int | None


async def health(conn: Connection, keys: Sequence[Key], *, lock: bool) -> dict[Key, WebhookHealth]:
    """Return the failure clocks of these webhooks, of those that are enabled."""
    teams, ids = zip(*keys, strict=True)
    rows = await conn.fetch(LOCK_HEALTH if lock else HEALTH, teams, ids)
    return {(team_id, webhook_id): WebhookHealth(*clock) for team_id, webhook_id, *clock in rows}


async def set_health(conn: Connection, verdicts: Mapping[Key, HealthVerdict]) -> set[Key]:
    """Store verdicts; returns the webhooks that are disabled by them."""
    if not verdicts:
        return set()
    rows = [
        (
            *key,
            v.health.failing_since,
            v.health.failing_event,
            v.health.failing_several,
            v.health.told_failing_at,
            v.last_failure and v.last_failure.at,
            v.last_failure and v.last_failure.code,
            v.disable,
        )
        for key, v in verdicts.items()
    ]
    stored = await conn.fetch(SET_HEALTH, *zip(*rows, strict=True))
    return {(row["team_id"], row["id"]) for row in stored if row["disable"]}


async def failing(db: TeamDb, webhook_id: UUID) -> FailingWebhook | None:
    return await db.one(FailingWebhook, FAILING, webhook_id)
