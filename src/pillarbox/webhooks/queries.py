"""SQL of the webhooks: the resource, what is published to it, and its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pillarbox.kernel.db import Connection, Source, literal
from pillarbox.webhooks.verdicts import Health, Key, Verdict

PUBLISH = """
    WITH wanted AS MATERIALIZED (
        SELECT k.team_id, k.id, k.kind, k.at, k.payload, w.id AS webhook_id, w.epoch,
               CASE w.kind WHEN 'listener' THEN 'infinity' ELSE k.at END AS due_at
          FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::bytea[])
               AS k (team_id, id, kind, at, payload)
          JOIN webhooks w ON w.team_id = k.team_id AND w.status = 'enabled' AND k.kind = ANY (w.events)
    ), stored AS (
        INSERT INTO webhook_events (team_id, id, kind, at, payload)
        SELECT DISTINCT ON (team_id, id) team_id, id, kind, at, payload
          FROM wanted
         ORDER BY team_id, id
    )
    INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at)
    SELECT team_id, webhook_id, id, kind, at, epoch, due_at FROM wanted
"""

REFER = """
    INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, subject_id, position, detail,
                                    epoch, due_at)
    SELECT k.team_id, w.id, k.id, k.kind, k.at, k.subject_id, k.position, k.detail::json, w.epoch,
           CASE w.kind WHEN 'listener' THEN 'infinity' ELSE k.at END
      FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text[], $4::text::timestamptz[],
                  $5::text::uuid[], $6::text::smallint[], $7::text[])
           AS k (id, team_id, kind, at, subject_id, position, detail)
      JOIN webhooks w ON w.team_id = k.team_id AND w.status = 'enabled' AND k.kind = ANY (w.events)
"""

BODIES = """
    SELECT id, payload FROM webhook_events WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

KEEP_BODIES = """
    INSERT INTO webhook_events (team_id, id, kind, at, payload)
    SELECT $1, k.id, k.kind, k.at, k.payload
      FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::bytea[]) AS k (id, kind, at, payload)
     ORDER BY k.id
    ON CONFLICT (team_id, id) DO NOTHING
    RETURNING id
"""

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

ADD_JOBS = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
    SELECT k.team_id, k.id, k.kind, k.subject_id, k.at, k.at
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::timestamptz[])
           AS k (team_id, id, kind, subject_id, at)
    ON CONFLICT (team_id, kind, subject_id) DO NOTHING
"""


async def publish(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> int:
    """Store events and what is owed for them; returns how many deliveries that are."""
    return _count(await conn.execute(PUBLISH, *zip(*rows, strict=True)))


async def refer(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> int:
    """Store what is owed for events whose body is made later; returns how many deliveries that are."""
    ids, teams, kinds, times, subjects, positions, details = zip(*rows, strict=True)
    return _count(
        await conn.execute(
            REFER,
            literal(ids),
            literal(teams),
            kinds,
            literal(times),
            literal(subjects),
            literal(positions),
            details,
        )
    )


async def bodies(conn: Source, team_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """The bodies that are made already."""
    return {row["id"]: row["payload"] for row in await conn.fetch(BODIES, team_id, event_ids)}


async def keep_bodies(
    conn: Connection, team_id: UUID, rows: Sequence[tuple[UUID, str, datetime, bytes]]
) -> set[UUID]:
    """Keep bodies of events that have none; returns whose was kept."""
    kept = await conn.fetch(KEEP_BODIES, team_id, *zip(*rows, strict=True))
    return {row["id"] for row in kept}


async def health(conn: Connection, keys: Sequence[Key], *, lock: bool) -> dict[Key, Health]:
    """The failure clocks of these webhooks, of those that are enabled."""
    teams, ids = zip(*keys, strict=True)
    rows = await conn.fetch(LOCK_HEALTH if lock else HEALTH, teams, ids)
    return {(team_id, webhook_id): Health(*clock) for team_id, webhook_id, *clock in rows}


async def set_health(conn: Connection, verdicts: Mapping[Key, Verdict]) -> set[Key]:
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


async def add_jobs(conn: Connection, rows: Sequence[tuple[UUID, UUID, str, UUID, datetime]]) -> None:
    """Background work for webhooks: (team, job id, kind, webhook, due); what is waiting already is enough."""
    await conn.execute(ADD_JOBS, *zip(*rows, strict=True))


def _count(status: str) -> int:
    return int(status.rsplit(" ", 1)[-1])
