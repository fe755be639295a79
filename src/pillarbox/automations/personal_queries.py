"""SQL of what automations have of a person."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.personal_data import WalkedRows
from pillarbox.kernel.postgres.database import TeamDb

ERASE_RUNS = """
    WITH span AS MATERIALIZED (
        SELECT r.id, r.contact_id IS NOT DISTINCT FROM $5 AS is_own,
               k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
          FROM automation_runs r
         CROSS JOIN LATERAL (SELECT lower(concat_ws(' ', r.payload::text,
             r.waited::text)) AS text OFFSET 0) AS k
         WHERE r.team_id = $1 AND r.id > $6
         ORDER BY r.id
         LIMIT $7
    ), changed AS (
        UPDATE automation_runs r
           SET payload = CASE WHEN span.is_own THEN '{}' ELSE regexp_replace(r.payload::text, $3, $4,
               'gi') END::json,
               waited = CASE WHEN span.is_own THEN NULL ELSE regexp_replace(r.waited::text, $3, $4,
                   'gi') END::json
          FROM span
         WHERE r.team_id = $1 AND r.id = span.id AND (span.is_own OR span.is_concerned)
        RETURNING 1
    ), emptied AS (
        UPDATE automation_steps s
           SET output = NULL, error = NULL
          FROM span
         WHERE s.team_id = $1 AND s.run_id = span.id AND span.is_own
             AND (s.output IS NOT NULL OR s.error IS NOT NULL)
    )
    SELECT (SELECT id FROM span ORDER BY id DESC LIMIT 1) AS last, (SELECT count(*) FROM span) AS walked,
           (SELECT count(*) FROM changed) AS changed
"""

ERASE_STEPS = """
    WITH span AS MATERIALIZED (
        SELECT r.id FROM automation_runs r WHERE r.team_id = $1 AND r.id > $5 ORDER BY r.id LIMIT $6
    ), changed AS (
        UPDATE automation_steps s
           SET output = regexp_replace(s.output::text, $3, $4, 'gi')::json,
               error = regexp_replace(s.error::text, $3, $4, 'gi')::json
          FROM span
         WHERE s.team_id = $1 AND s.run_id = span.id
           AND lower(concat_ws(' ', s.output::text, s.error::text)) LIKE '%' || $2 || '%'
           AND lower(concat_ws(' ', s.output::text, s.error::text)) ~ $3
        RETURNING 1
    )
    SELECT (SELECT id FROM span ORDER BY id DESC LIMIT 1) AS last, (SELECT count(*) FROM span) AS walked,
           (SELECT count(*) FROM changed) AS changed
"""

OF_CONTACT = """
    SELECT r.id, a.name, r.event_name, r.payload, r.status, r.created_at, r.completed_at
      FROM automation_runs r
      JOIN automations a ON a.team_id = r.team_id AND a.id = r.automation_id
     WHERE r.team_id = $1 AND r.contact_id = $2 AND r.id > $3
     ORDER BY r.id
     LIMIT $4
"""


class RunWithPayload(NamedTuple):
    """A run with the payload that started it, as JSON text."""

    id: UUID
    name: str
    event_name: str
    payload: str
    status: str
    created_at: datetime
    completed_at: datetime | None


async def erase_runs(
    db: TeamDb, found_by: tuple[str, str], stands_for: str, contact_id: UUID | None, after: UUID, limit: int
) -> WalkedRows:
    """Empty those of the next runs that are the contact's, and replace the address in the others."""
    args = (*found_by, stands_for, contact_id, after, limit)
    return await db.one(WalkedRows, ERASE_RUNS, *args) or WalkedRows(None, 0, 0)


async def erase_steps(
    db: TeamDb, found_by: tuple[str, str], stands_for: str, after: UUID, limit: int
) -> WalkedRows:
    """Replace the address in the steps of the next runs."""
    return await db.one(WalkedRows, ERASE_STEPS, *found_by, stands_for, after, limit) or WalkedRows(
        None, 0, 0
    )


async def of_contact(db: TeamDb, contact_id: UUID, after: UUID, limit: int) -> list[RunWithPayload]:
    """Return the next runs of a contact behind an id, the oldest first."""
    return await db.all(RunWithPayload, OF_CONTACT, contact_id, after, limit)
