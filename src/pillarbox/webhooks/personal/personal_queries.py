"""SQL of what webhooks have of a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.personal_data import BATCH, DataSubject, ErasedRows
from pillarbox.kernel.postgres.database import TeamDb

ERASE_EVENTS = """
    WITH span AS MATERIALIZED (
        SELECT e.id, k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned,
               EXISTS (SELECT FROM webhooks w
                         JOIN webhook_deliveries d ON d.team_id = w.team_id AND d.webhook_id = w.id
                              AND d.event_id = e.id
                        WHERE w.team_id = $1) AS is_live
          FROM webhook_events e
         CROSS JOIN LATERAL (SELECT lower(convert_from(e.payload, 'UTF8')) AS text OFFSET 0) AS k
         WHERE e.team_id = $1 AND e.id > $4
         ORDER BY e.id
         LIMIT $5
    ), changed AS (
        UPDATE webhook_events e
           SET payload = convert_to(json_build_object(
                   'type', e.kind, 'created_at', e.at, 'data', json_build_object('erased', true))::text,
                       'UTF8')
          FROM span
         WHERE e.team_id = $1 AND e.id = span.id AND span.is_concerned AND NOT span.is_live
        RETURNING 1
    )
    SELECT (SELECT id FROM span ORDER BY id DESC LIMIT 1)::text AS last, (SELECT count(*)
        FROM span) AS walked,
           (SELECT count(*) FROM changed) AS changed,
           (SELECT count(*) FROM span WHERE is_concerned AND is_live) AS waiting
"""

ERASE_OUTCOMES = """
    WITH span AS MATERIALIZED (
        SELECT o.webhook_id, o.event_id,
               lower(o.detail::text) LIKE '%' || $2 || '%' AND lower(o.detail::text) ~ $3 AS is_concerned
          FROM webhook_outcomes o
         WHERE o.team_id = $1 AND (o.webhook_id, o.event_id) > ($5::text::uuid, $6::text::uuid)
         ORDER BY o.webhook_id, o.event_id
         LIMIT $7
    ), changed AS (
        UPDATE webhook_outcomes o
           SET detail = regexp_replace(o.detail::text, $3, $4, 'gi')::json
          FROM span
         WHERE o.team_id = $1 AND o.webhook_id = span.webhook_id AND o.event_id = span.event_id
             AND span.is_concerned
        RETURNING 1
    )
    SELECT (SELECT webhook_id || ',' || event_id FROM span ORDER BY webhook_id DESC,
        event_id DESC LIMIT 1) AS last,
           (SELECT count(*) FROM span) AS walked, (SELECT count(*) FROM changed) AS changed,
               0::bigint AS waiting
"""

ERASE_ATTEMPTS = """
    WITH span AS MATERIALIZED (
        SELECT a.webhook_id, a.event_id, a.id,
               lower(a.response) LIKE '%' || $2 || '%' AND lower(a.response) ~ $3 AS is_concerned
          FROM webhook_attempts a
         WHERE a.team_id = $1 AND (a.webhook_id, a.event_id, a.id) > ($5::text::uuid, $6::text::uuid,
             $7::text::uuid)
         ORDER BY a.webhook_id, a.event_id, a.id
         LIMIT $8
    ), changed AS (
        UPDATE webhook_attempts a
           SET response = regexp_replace(a.response, $3, $4, 'gi')
          FROM span
         WHERE a.team_id = $1 AND a.webhook_id = span.webhook_id AND a.event_id = span.event_id
             AND a.id = span.id
           AND span.is_concerned
        RETURNING 1
    )
    SELECT (SELECT webhook_id || ',' || event_id || ',' || id
              FROM span ORDER BY webhook_id DESC, event_id DESC, id DESC LIMIT 1) AS last,
           (SELECT count(*) FROM span) AS walked, (SELECT count(*) FROM changed) AS changed,
               0::bigint AS waiting
"""


class ErasedDeliveries(NamedTuple):
    """Rows that a statement looked at, the place of the last, and how many it changed or left for later."""

    last: str | None
    walked: int
    changed: int
    waiting: int

    @property
    def step(self) -> ErasedRows:
        """The result of a step that did this alone."""
        return ErasedRows(self.last if self.walked == BATCH else None, self.changed)


NOTHING = ErasedDeliveries(None, 0, 0, 0)


async def erase_events(db: TeamDb, found_by: tuple[str, str], after: UUID, limit: int) -> ErasedDeliveries:
    """Empty those of the next events behind an id that name the person and that nobody waits for."""
    return await db.one(ErasedDeliveries, ERASE_EVENTS, *found_by, after, limit) or NOTHING


async def erase_outcomes(
    db: TeamDb, person: DataSubject, stands_for: str, after: Sequence[str], limit: int
) -> ErasedDeliveries:
    """Replace the address in the next outcomes behind one, named by its ids."""
    args = (*person.found_by, stands_for, *after, limit)
    return await db.one(ErasedDeliveries, ERASE_OUTCOMES, *args) or NOTHING


async def erase_attempts(
    db: TeamDb, person: DataSubject, stands_for: str, after: Sequence[str], limit: int
) -> ErasedDeliveries:
    """Replace the address in the answers of the next attempts behind one, named by its ids."""
    args = (*person.found_by, stands_for, *after, limit)
    return await db.one(ErasedDeliveries, ERASE_ATTEMPTS, *args) or NOTHING
