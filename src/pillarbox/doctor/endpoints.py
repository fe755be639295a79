"""Do the webhooks reach their endpoints? One that fails loses what it was told, when its schedule is over."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import asyncpg

from pillarbox.doctor.checks import Check, Level

NAME: Final = "webhooks"
TITLE: Final = "Webhooks reach their endpoints"
MOST_SHOWN: Final = 20
STEP: Final = (
    "Tell the team, or mend the endpoint: `GET /webhooks/{id}/deliveries` shows its answers, and what failed "
    "can be replayed."
)

# Across teams: the operator wants to know of all endpoints that are away.
FAILING = """
    SELECT t.name AS team, w.id, w.endpoint, w.status, w.failing_since, w.last_status_code
      FROM webhooks w
      JOIN teams t ON t.id = w.team_id
     WHERE w.kind = 'endpoint' AND w.failing_since IS NOT NULL
     ORDER BY w.failing_since, w.id
     LIMIT $1
"""
COUNT = "SELECT count(*) FROM webhooks WHERE kind = 'endpoint' AND status = 'enabled'"


async def endpoints(pool: asyncpg.Pool, now: datetime) -> list[Check]:
    """A warning for each endpoint that fails, or was disabled because it did."""
    rows = await pool.fetch(FAILING, MOST_SHOWN)
    if not rows:
        enabled = await pool.fetchval(COUNT)
        if not enabled:
            return [Check(NAME, Level.SKIPPED, TITLE, "there is none")]
        return [Check(NAME, Level.OK, TITLE, f"none of {enabled} fails")]
    return [_check(row, now) for row in rows]


def _check(row: asyncpg.Record, now: datetime) -> Check:
    hours = int((now - row["failing_since"]).total_seconds() // 3600)
    code = row["last_status_code"]
    answer = "without an answer" if code is None else f"last with {code}"
    place = f"{row['endpoint']} of {row['team']}"
    if row["status"] == "disabled":
        found = f"{place} was disabled: it failed since {row['failing_since']:%Y-%m-%d}, {answer}"
        return Check(f"{NAME}.disabled", Level.WARNING, TITLE, found, None, STEP)
    return Check(
        f"{NAME}.failing", Level.WARNING, TITLE, f"{place} fails for {hours} h, {answer}", None, STEP
    )
