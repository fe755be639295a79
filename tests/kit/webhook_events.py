"""The webhook events of a team: a real subscription, read from the rows that would be delivered."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from kit.world import Team

DOMAIN_EVENTS = ["domain.created", "domain.updated", "domain.deleted"]


async def subscribe(team: Team, events: list[str] | None = None) -> None:
    """Have the team's events stored from now on."""
    await team.world.pool.execute(
        """
        INSERT INTO webhooks (team_id, id, created_at, endpoint, events, secrets, secret_ends)
        VALUES ($1, $2, $3, 'https://hooks.harbor.example', $4, ARRAY[''::bytea], ARRAY[NULL::timestamptz])
        """,
        team.id,
        uuid4(),
        team.world.clock.now(),
        events or DOMAIN_EVENTS,
    )


async def published_events(team: Team) -> list[dict[str, Any]]:
    """Return the bodies of all events so far, in order."""
    rows = await team.world.pool.fetch(
        "SELECT payload FROM webhook_events WHERE team_id = $1 ORDER BY id", team.id
    )
    return [json.loads(row["payload"]) for row in rows]


async def published_kinds(team: Team) -> list[str]:
    """Return the names of all events so far, in order."""
    return [event["type"] for event in await published_events(team)]
