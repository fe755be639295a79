"""Webhooks for tests: real ones, made through the API, and what their log shows.

No dispatcher is needed: `ends` and `attempt` write what a dispatcher would have written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx

from kit.world import Team
from pillarbox.kernel.ids import Ids
from pillarbox.webhooks import wire
from pillarbox.webhooks.publish import Publisher, WebhookEvent

ENDPOINT = "https://hooks.harbor.example/in"

ENDS = """
    WITH gone AS (
        DELETE FROM webhook_deliveries
         WHERE team_id = $1 AND webhook_id = $2 AND event_id = $3
           AND replay = '00000000-0000-0000-0000-000000000000'
        RETURNING kind, at
    )
    INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status)
    SELECT $1, $2, $3, kind, at, $4 FROM gone
"""

OWED = """
    SELECT * FROM webhook_deliveries WHERE team_id = $1 AND webhook_id = $2 ORDER BY event_id, replay
"""

FAILS = """
    UPDATE webhook_deliveries SET tries = tries + 1, due_at = $4
     WHERE team_id = $1 AND webhook_id = $2 AND event_id = $3
"""

ATTEMPT = """
    INSERT INTO webhook_attempts (team_id, webhook_id, event_id, id, sent_at, http_status_code, response)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""


@dataclass(slots=True)
class Hook:
    """A webhook of a team, with its secret."""

    team: Team
    id: str
    secret: str

    @property
    def path(self) -> str:
        return f"/webhooks/{self.id}"

    async def get(self, below: str = "") -> Any:
        """Return what the API answers for it, or for something below it."""
        answer = await self.team.get(self.path + below)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def change(self, **fields: Any) -> httpx.Response:
        return await self.team.call("PATCH", self.path, fields)

    async def events(self) -> list[dict[str, Any]]:
        """Return its log, the oldest first."""
        found: list[dict[str, Any]] = (await self.get("/events?limit=100"))["data"]
        return found[::-1]

    async def kinds(self) -> list[str]:
        return [event["type"] for event in await self.events()]

    async def payloads(self) -> list[dict[str, Any]]:
        """Return the bodies of its events, the oldest first."""
        return [(await self.get(f"/events/{event['id']}"))["payload"] for event in await self.events()]

    async def replay(self, event: str) -> httpx.Response:
        return await self.team.post(f"{self.path}/events/{event}/replay")

    async def ends(self, event: str, status: str) -> None:
        """End the schedule of an event."""
        await self._run(ENDS, event, status)

    async def fails(self, event: str, due_at: Any) -> None:
        """Record that an attempt failed, and that the next one is due then."""
        await self._run(FAILS, event, due_at)

    async def attempt(self, event: str, code: int, response: str) -> None:
        """Record that an attempt was made, and what came of it."""
        stamp = self.team.world.app.need(Ids).stamp()
        await self._run(ATTEMPT, event, stamp.id, stamp.at, code, response)

    async def owed(self) -> list[Any]:
        """Return the rows of the queue."""
        return list(await self.team.db.source.fetch(OWED, self.team.id, UUID(self.id)))

    async def _run(self, sql: str, event: str, *rest: Any) -> None:
        event_id = wire.event_id(event)
        assert event_id is not None
        await self.team.db.run(sql, UUID(self.id), event_id, *rest)


async def hook(team: Team, *events: str, endpoint: str = ENDPOINT) -> Hook:
    """Make a new webhook for these kinds."""
    made = await team.post("/webhooks", {"endpoint": endpoint, "events": list(events) or ["domain.updated"]})
    assert made.status_code == 201, made.text
    return Hook(team, made.json()["id"], made.json()["signing_secret"])


async def publish(team: Team, *kinds: str, **data: Any) -> None:
    """Publish events of the team, and commit them."""
    app = team.world.app
    async with team.db.transaction() as inner:
        found = [
            WebhookEvent(team.id, kind, app.need(Ids).stamp().at, data)
            for kind in kinds or ["domain.updated"]
        ]
        await app.need(Publisher).publish(inner.connection, found)
