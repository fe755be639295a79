"""A team's domain and the DNS server that answers for it: real packets, a clock that the test moves.

async with checked(database_url, tmp_path) as at:
    domain = await at.adds("harbor.example")
    await domain.publishes()
    await domain.verifies()
    assert await at.checks() == 1
    assert (await domain.shown())["status"] == "verified"
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from kit.dns_server import DnsServer
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team, World
from pillarbox.domains.checks.record_results import RecordResult, decoded
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.jobs import Jobs

BOTH = {"sending": "enabled", "receiving": "enabled"}


@dataclass(slots=True)
class Place:
    """A Pillarbox and the DNS that it asks."""

    world: World
    dns: DnsServer
    team: Team

    async def adds(self, name: str = "harbor.example", team: Team | None = None, **fields: Any) -> Added:
        owner = team or self.team
        answer = await owner.post("/domains", {"name": name, **fields})
        assert answer.status_code == 201, answer.text
        return Added(self, owner, answer.json())

    async def checks(self, after: timedelta | None = None) -> int:
        """Let the checks run that are due (after so much time); how many there were."""
        if after is not None:
            clock_of(self.world).advance(after)
        return await run_jobs(self.world)

    async def checks_until(self, end: datetime) -> list[datetime]:
        """Jump from one due check to the next until `end`; when they ran."""
        times = []
        while (due := await self.world.pool.fetchval("SELECT min(due_at) FROM jobs")) and due <= end:
            clock_of(self.world).set(due)
            times.append(due)
            assert await self.world.app.need(Jobs).look() > 0
            await self.world.app.need(Jobs).idle()
        return times

    def now(self) -> datetime:
        return self.world.clock.now()


@dataclass(slots=True)
class Added:
    """A domain as its creation answered."""

    place: Place
    team: Team
    made: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.made["id"])

    @property
    def db(self) -> TeamDb:
        return self.team.db

    @property
    def uuid(self) -> UUID:
        return UUID(self.id)

    @property
    def name(self) -> str:
        return str(self.made["name"])

    def owner_of(self, record: dict[str, Any]) -> str:
        """Return the full name of a record; the domains of these tests are registrable ones."""
        return self.name if record["record"] == "Receiving" else f"{record['name']}.{self.name}"

    async def publishes(self, *only: str) -> None:
        """Put the records that the API shows now into DNS: all, or those of these types and names."""
        for record in (await self.shown())["records"]:
            if not only or record["record"] in only or record["type"] in only:
                value = record["value"]
                if record["type"] == "MX":
                    value = f"{record['priority']} {value}"
                self.place.dns.put(self.owner_of(record), record["type"], value)

    def withdraws(self, *only: str) -> None:
        """Take the records of that kind out of DNS."""
        for record in self.made["records"]:
            if not only or record["record"] in only or record["type"] in only:
                self.place.dns.put(self.owner_of(record), record["type"])

    def fails(self, how: str) -> None:
        """Let every name of the domain fail so; "" heals it."""
        for record in self.made["records"]:
            self.place.dns.fault(self.owner_of(record), how)

    async def verifies(self) -> None:
        answer = await self.team.http.post(f"/domains/{self.id}/verify")
        assert (answer.status_code, answer.json()) == (200, {"object": "domain", "id": self.id})

    async def verified(self) -> Added:
        """Return the domain once everything is published and seen."""
        await self.publishes()
        await self.verifies()
        await self.place.checks()
        assert (await self.shown())["status"] == "verified"
        return self

    async def shown(self) -> dict[str, Any]:
        answer = await self.team.get(f"/domains/{self.id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def states(self) -> dict[str, str]:
        """Return the state of each record, by its name and type, and of the domain."""
        shown = await self.shown()
        found = {f"{record['record']} {record['type']}": record["status"] for record in shown["records"]}
        return {"domain": shown["status"], **found}

    async def may(self) -> str:
        """Return what the domain may do, as words."""
        row = await self.place.world.pool.fetchrow(
            "SELECT sending_ok AS send, receiving_ok AS receive, tracking_ok AS track FROM domains "
            "WHERE team_id = $1 AND id = $2",
            self.team.id,
            self.uuid,
        )
        assert row is not None
        return " ".join(name for name, able in row.items() if able)

    async def results(self) -> dict[str, RecordResult]:
        stored = await self.place.world.pool.fetchval(
            "SELECT findings FROM domains WHERE team_id = $1 AND id = $2", self.team.id, self.uuid
        )
        assert isinstance(json.loads(stored), dict)
        return decoded(stored)

    async def due(self) -> timedelta | None:
        """Return how long until the next check; None where none is planned."""
        due = await self.place.world.pool.fetchval(
            "SELECT due_at FROM jobs WHERE team_id = $1 AND subject_id = $2", self.team.id, self.uuid
        )
        return None if due is None else due - self.place.now()


@asynccontextmanager
async def checked(database_url: str, folder: Path, **settings: Any) -> AsyncIterator[Place]:
    """Yield a place with one team; DNS knows nothing yet but the addresses of our own host."""
    script = "mx.pillar.example A 192.0.2.80"
    async with DnsServer(script) as dns:
        resolver = UncachedResolver([dns.address], SystemClock(), timeouts=(0.4,))
        settings = {"require_verified_domain": "always", **settings}
        async with manual_world(database_url, folder, asks=resolver, **settings) as pillarbox:
            yield Place(pillarbox, dns, await pillarbox.team())
