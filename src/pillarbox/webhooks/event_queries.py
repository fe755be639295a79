"""SQL of publishing: the events, what is owed for them to each webhook, and the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import Statement, rows_json
from pillarbox.kernel.postgres.database import Connection, Source

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
      FROM json_to_recordset($1::text::json)
           AS k (id uuid, team_id uuid, kind text, at timestamptz, subject_id uuid, position smallint,
                 detail text)
     CROSS JOIN LATERAL (
           SELECT e.id, e.kind, e.epoch, e.events
             FROM webhooks e
            WHERE e.team_id = k.team_id AND e.status = 'enabled'
           OFFSET 0) AS w
     WHERE k.kind = ANY (w.events)
"""

REFERRED: Final = ("id", "team_id", "kind", "at", "subject_id", "position", "detail")

BODIES = """
    SELECT id, payload FROM webhook_events WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

STORE_BODIES = """
    INSERT INTO webhook_events (team_id, id, kind, at, payload)
    SELECT $1, k.id, k.kind, k.at, k.payload
      FROM unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::bytea[]) AS k (id, kind, at, payload)
     ORDER BY k.id
    ON CONFLICT (team_id, id) DO NOTHING
    RETURNING id
"""


async def publish(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> int:
    """Store events and what is owed for them; returns how many deliveries that are."""
    return _count(await conn.execute(PUBLISH, *zip(*rows, strict=True)))


def referring(rows: Sequence[tuple[Any, ...]]) -> Statement:
    """Return the statement that stores the deliveries of events whose body is made later."""
    return Statement(REFER, (rows_json([dict(zip(REFERRED, row, strict=True)) for row in rows]),))


async def refer(conn: Connection, referring: Statement) -> int:
    """Run it; returns how many deliveries were queued."""
    return _count(await conn.execute(referring.sql, *referring.args))


async def bodies(conn: Source, team_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """Return the bodies that are made already."""
    return {row["id"]: row["payload"] for row in await conn.fetch(BODIES, team_id, event_ids)}


async def store_bodies(
    conn: Connection, team_id: UUID, rows: Sequence[tuple[UUID, str, datetime, bytes]]
) -> set[UUID]:
    """Keep bodies of events that have none; returns whose was kept."""
    kept = await conn.fetch(STORE_BODIES, team_id, *zip(*rows, strict=True))
    return {row["id"] for row in kept}


def _count(status: str) -> int:
    return int(status.rsplit(" ", 1)[-1])
