"""SQL of the webhooks: the resource, what is published to it, and its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pillarbox.kernel.db import Connection, literal

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


def _count(status: str) -> int:
    return int(status.rsplit(" ", 1)[-1])
