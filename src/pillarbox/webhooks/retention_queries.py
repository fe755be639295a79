"""SQL of the log of webhooks that is removed with age."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.collectors import changed

# Across teams: the next webhook that has rows in a table, and whether it is still there.
WITH_DELIVERIES = """
    SELECT d.team_id, d.webhook_id,
           EXISTS (SELECT FROM webhooks w WHERE w.team_id = d.team_id AND w.id = d.webhook_id)
      FROM webhook_deliveries d
     WHERE (d.team_id, d.webhook_id) > ($1, $2)
     ORDER BY d.team_id, d.webhook_id
     LIMIT 1
"""

WITH_OUTCOMES = """
    SELECT o.team_id, o.webhook_id,
           EXISTS (SELECT FROM webhooks w WHERE w.team_id = o.team_id AND w.id = o.webhook_id)
      FROM webhook_outcomes o
     WHERE (o.team_id, o.webhook_id) > ($1, $2)
     ORDER BY o.team_id, o.webhook_id
     LIMIT 1
"""

WITH_ATTEMPTS = """
    SELECT a.team_id, a.webhook_id,
           EXISTS (SELECT FROM webhooks w WHERE w.team_id = a.team_id AND w.id = a.webhook_id)
      FROM webhook_attempts a
     WHERE (a.team_id, a.webhook_id) > ($1, $2)
     ORDER BY a.team_id, a.webhook_id
     LIMIT 1
"""

WITH_EVENTS = """
    SELECT team_id FROM webhook_events WHERE team_id > $1 ORDER BY team_id LIMIT 1
"""

# The first event of a team, or of one of its webhooks, that is not decided.
FIRST_OPEN = """
    SELECT first.event_id
      FROM webhooks w
     CROSS JOIN LATERAL (
           SELECT d.event_id
             FROM webhook_deliveries d
            WHERE d.team_id = $1 AND d.webhook_id = w.id AND d.epoch = w.epoch
            ORDER BY d.event_id
            LIMIT 1) AS first
     WHERE w.team_id = $1 AND ($2::uuid IS NULL OR w.id = $2)
     ORDER BY first.event_id
     LIMIT 1
"""

# Said before outcomes go: of the time before, nobody expects rows any more.
MOVE_SINCE = """
    UPDATE webhooks
       SET since = $3
     WHERE team_id = $1 AND id = $2 AND since < $3
       AND EXISTS (SELECT FROM webhook_outcomes o
                    WHERE o.team_id = $1 AND o.webhook_id = $2 AND o.event_id < $4)
"""

# Only what is void: of an earlier epoch, or of a webhook that is gone.
REMOVE_DELIVERIES = """
    WITH old AS MATERIALIZED (
        SELECT event_id, replay
          FROM webhook_deliveries d
         WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
           AND NOT EXISTS (SELECT FROM webhooks w
                            WHERE w.team_id = $1 AND w.id = $2 AND w.epoch = d.epoch)
         ORDER BY event_id
         LIMIT $4
           FOR UPDATE OF d SKIP LOCKED
    )
    DELETE FROM webhook_deliveries d
     USING old
     WHERE d.team_id = $1 AND d.webhook_id = $2 AND d.event_id = old.event_id AND d.replay = old.replay
"""

REMOVE_OUTCOMES = """
    WITH old AS MATERIALIZED (
        SELECT event_id
          FROM webhook_outcomes
         WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
         ORDER BY event_id
         LIMIT $4
    )
    DELETE FROM webhook_outcomes o USING old
     WHERE o.team_id = $1 AND o.webhook_id = $2 AND o.event_id = old.event_id
"""

REMOVE_ATTEMPTS = """
    WITH old AS MATERIALIZED (
        SELECT event_id, id
          FROM webhook_attempts
         WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
         ORDER BY event_id, id
         LIMIT $4
    )
    DELETE FROM webhook_attempts a USING old
     WHERE a.team_id = $1 AND a.webhook_id = $2 AND a.event_id = old.event_id AND a.id = old.id
"""

REMOVE_EVENTS = """
    WITH old AS MATERIALIZED (
        SELECT id FROM webhook_events WHERE team_id = $1 AND id < $2 ORDER BY id LIMIT $3
    )
    DELETE FROM webhook_events e USING old WHERE e.team_id = $1 AND e.id = old.id
"""


class LogTable(NamedTuple):
    """A table of the log: how to find the next webhook that has rows in it, and how to remove old ones."""

    next_webhook: str
    remove: str


TABLES = (
    LogTable(WITH_DELIVERIES, REMOVE_DELIVERIES),
    LogTable(WITH_OUTCOMES, REMOVE_OUTCOMES),
    LogTable(WITH_ATTEMPTS, REMOVE_ATTEMPTS),
)


async def next_webhook(
    source: Source, statement: str, team_id: UUID, webhook_id: UUID
) -> tuple[UUID, UUID, bool] | None:
    """Return the webhook behind this one that has rows in a table, and whether it still exists."""
    row = await source.fetchrow(statement, team_id, webhook_id)
    return None if row is None else (row[0], row[1], row[2])


async def next_team(source: Source, after: UUID) -> UUID | None:
    """Return the next team with bodies of events."""
    found: UUID | None = await source.fetchval(WITH_EVENTS, after)
    return found


async def first_open(source: Source, team_id: UUID, webhook_id: UUID | None) -> UUID | None:
    """Return the first event of a team, or of one of its webhooks, that is not decided."""
    found: UUID | None = await source.fetchval(FIRST_OPEN, team_id, webhook_id)
    return found


async def move_since(source: Source, team_id: UUID, webhook_id: UUID, since: datetime, before: UUID) -> None:
    """Say from when on a webhook has a log, where events before `before` are about to go."""
    await source.execute(MOVE_SINCE, team_id, webhook_id, since, before)


async def remove(source: Source, statement: str, *key: UUID, limit: int) -> int:
    """Remove up to so many rows; returns how many."""
    return changed(await source.execute(statement, *key, limit))


async def remove_events(source: Source, team_id: UUID, before: UUID, limit: int) -> int:
    """Remove up to so many bodies of events before this one; returns how many."""
    return changed(await source.execute(REMOVE_EVENTS, team_id, before, limit))
