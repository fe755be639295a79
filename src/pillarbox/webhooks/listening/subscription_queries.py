"""SQL of subscriptions: listeners of the program itself, known by their name in place of an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb

SUBSCRIBE = """
    INSERT INTO webhooks AS w (team_id, id, created_at, since, kind, endpoint, events, secrets, secret_ends,
                               seen_at)
    VALUES ($1, $2, $6, $6, 'listener', $3, $4, ARRAY[$5::bytea], ARRAY[NULL::timestamptz], 'infinity')
    ON CONFLICT (team_id, id) DO UPDATE
       SET since = excluded.since,
           events = ARRAY(SELECT DISTINCT unnest(w.events || excluded.events) ORDER BY 1)
"""

UNSUBSCRIBE = """
    WITH gone AS (
        DELETE FROM webhooks WHERE team_id = $1 AND id = $2 AND since < $3 RETURNING team_id, id
    ), emptied AS (
        DELETE FROM webhook_deliveries d
         USING gone
         WHERE d.team_id = $1 AND d.team_id = gone.team_id AND d.webhook_id = gone.id
    )
    SELECT EXISTS (SELECT FROM gone)
"""

# Across teams: those with events that wait for the subscription.
WAITING = """
    SELECT w.team_id
      FROM webhooks w
     WHERE w.kind = 'listener' AND w.id = $1
       AND EXISTS (SELECT FROM webhook_deliveries d WHERE d.team_id = w.team_id AND d.webhook_id = w.id)
"""

# Across teams: whether there are any, of any subscription.
IS_BUSY = """
    SELECT EXISTS (SELECT FROM webhooks w
                    WHERE w.kind = 'listener' AND w.seen_at = 'infinity'
                      AND EXISTS (SELECT FROM webhook_deliveries d
                                   WHERE d.team_id = w.team_id AND d.webhook_id = w.id))
"""

# Across teams: those that have the subscription.
SUBSCRIBED = """
    SELECT team_id FROM webhooks WHERE kind = 'listener' AND id = $1
"""

HOLD = """
    SELECT true FROM webhooks WHERE team_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED
"""

OFFER = """
    INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, subject_id, position, detail,
                                    epoch, due_at)
    SELECT w.team_id, w.id, k.id, k.kind, k.at, k.subject_id, k.position, k.detail::json, w.epoch, 'infinity'
      FROM webhooks w
     CROSS JOIN unnest($3::uuid[], $4::text[], $5::timestamptz[], $6::uuid[], $7::smallint[], $8::text[])
           AS k (id, kind, at, subject_id, position, detail)
     WHERE w.team_id = $1 AND w.id = $2
    ON CONFLICT DO NOTHING
"""


async def subscribe(
    db: TeamDb, listener: UUID, name: str, kinds: Sequence[str], sealed: bytes, now: datetime
) -> None:
    """Make the listener, or give it these kinds beside its own."""
    await db.run(SUBSCRIBE, listener, name, kinds, sealed, now)


async def unsubscribe(db: TeamDb, listener: UUID, before: datetime) -> bool:
    """Remove it with what waits for it, where it last changed before then; whether it was removed."""
    return bool(await db.value(UNSUBSCRIBE, listener, before))


async def waiting(source: Source, listener: UUID) -> list[UUID]:
    return [row["team_id"] for row in await source.fetch(WAITING, listener)]


async def subscribed(source: Source, listener: UUID) -> list[UUID]:
    return [row["team_id"] for row in await source.fetch(SUBSCRIBED, listener)]


async def hold(conn: Connection, team_id: UUID, listener: UUID) -> bool:
    """Keep others from taking its events before the transaction ends; False where somebody does."""
    return bool(await conn.fetchval(HOLD, team_id, listener))


async def offer(db: TeamDb, listener: UUID, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write events for the listener, where it exists and does not have them."""
    await db.run(OFFER, listener, *zip(*rows, strict=True))
