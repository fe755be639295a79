"""Builders: a whole Pillarbox in this process, with real PostgreSQL and a real HTTP listener.

async with world(database_url, tmp_path) as pillarbox:
    team = await pillarbox.team()
    answer = await team.post("/emails", {...})
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from kit.clock import ManualClock
from kit.documented_statuses import DocumentedStatuses
from kit.http_client import http_client
from kit.http_server import served
from kit.zone import Zone
from pillarbox.application import SLICES, App, build
from pillarbox.dashboard.frame.live import EVERY, LiveStreams
from pillarbox.delivery.engine import Engine
from pillarbox.domains import trust
from pillarbox.domains.context import DomainContext
from pillarbox.domains.senders import Senders
from pillarbox.kernel.clock import Clock, SystemClock
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.dns_answers import UncachedDns
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.security.ring_check import established
from pillarbox.kernel.settings.settings import Settings, settings_of
from pillarbox.kernel.slices import Externals, Slice
from pillarbox.kernel.work.periodic import LOOK, NO_TEAM
from pillarbox.teams import bootstrap

FINAL = {"delivered", "bounced", "complained", "failed", "suppressed", "canceled"}


@dataclass(slots=True)
class Team:
    """A team with a full-access key, and a client that uses it."""

    world: World
    id: UUID
    token: str
    http: httpx.AsyncClient

    @property
    def db(self) -> TeamDb:
        return TeamDb(self.world.pool, self.id)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, path, json=body, headers=names)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.get(path, headers=names)

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.call("POST", path, {} if body is None else body, **headers)

    async def send(self, **fields: Any) -> str:
        """Send an email that is right but for `fields`; returns its id."""
        answer = await self.post("/emails", mail(**fields))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    async def email(self, email_id: str) -> dict[str, Any]:
        answer = await self.get(f"/emails/{email_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def events(self, email_id: str) -> list[dict[str, Any]]:
        answer = await self.get(f"/emails/{email_id}/events")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["data"])

    async def kinds(self, email_id: str) -> list[str]:
        """Return the names of an email's events, in order."""
        return [event["event"] for event in await self.events(email_id)]

    async def settled(self, email_id: str, seconds: float = 10.0) -> dict[str, Any]:
        """Return the email once its last event is final."""
        async with asyncio.timeout(seconds):
            while (found := await self.email(email_id))["last_event"] not in FINAL:
                await asyncio.sleep(0.01)
        return found

    async def domain(self, name: str = "harbor.example") -> str:
        """Make a domain that the operator vouches for."""
        app = self.world.app
        domain = await trust.trust(self.world.pool, name, self.id, app.need(DomainContext))
        app.need(Senders).forget(self.id)
        return str(domain.id)

    async def key(self, **fields: Any) -> str:
        """Make another key of the team, and return its token."""
        answer = await self.post("/api-keys", {"name": "another", **fields})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def using(self, token: str) -> Team:
        """Return the same team through another key."""
        client = self.world.client(token)
        return Team(self.world, self.id, token, client)


class World:
    """One process of Pillarbox inside the test."""

    def __init__(self, app: App, url: str, zone: Zone) -> None:
        self.app = app
        self.zone = zone
        self.url = url
        self.pool: asyncpg.Pool = app.kit.pool
        self.clock: Clock = app.kit.clock
        self._documented = DocumentedStatuses(RouteTable(app.kit.routes))
        self._clients: list[httpx.AsyncClient] = []
        self._teams = 0

    @property
    def engine(self) -> Any:
        return self.app.need(Engine)

    def client(self, token: str | None) -> httpx.AsyncClient:
        client = http_client(self.url, token)
        client.event_hooks["response"].append(self._documented.check)
        self._clients.append(client)
        return client

    async def team(self, name: str = "Harbor", email: str | None = None, ids: Ids | None = None) -> Team:
        self._teams += 1
        made = await bootstrap.create_team(
            self.pool,
            name=name,
            email=email or f"owner{self._teams}@team.example",
            ids=ids or Ids(SystemClock()),
        )
        return Team(self, made.id, made.token, self.client(made.token))

    async def turn(self) -> int:
        """Let the engine look for due work and finish it; returns how many items it took.

        A manual clock moves on by a millisecond: ids made at one instant are microseconds apart.
        """
        if isinstance(self.clock, ManualClock):
            self.clock.advance(0.001)
        taken = await self.engine.look()
        await self.engine.idle()
        return int(taken)

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()


RESTING = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
    SELECT $1, gen_random_uuid(), k.kind, $1, k.due_at, $4
      FROM unnest($2::text[], $3::timestamptz[]) AS k (kind, due_at)
    ON CONFLICT DO NOTHING
"""


@asynccontextmanager
async def world(
    database_url: str,
    folder: Path,
    *,
    clock: Clock | None = None,
    zone: Zone | None = None,
    asks: UncachedDns | None = None,
    chance: float = 0.5,
    trust: ssl.SSLContext | None = None,
    https_port: int = 443,
    listeners: dict[str, int] | None = None,
    started: bool = True,
    slices: Sequence[Slice] = SLICES,
    **settings: str,
) -> AsyncIterator[World]:
    """Yield a running Pillarbox. `started` False leaves out the loops: the test drives the engine by hand."""
    listener = _listener()
    port = listener.getsockname()[1]
    texts = {
        "data": str(folder),
        "database_url": database_url,
        "http": f"127.0.0.1:{port}",
        "hostname": "mx.pillar.example",
        "rate_limit": "0",
        **settings,
    }
    memory = shared_memory.create()
    runtime = Runtime(
        process_id=Ids(SystemClock()).new(),
        index=0,
        count=1,
        shared_memory=memory,
        capture_token="capture-token",
        listeners=listeners or {},
    )
    known = zone or Zone()
    externals = Externals(
        clock=clock or SystemClock(),
        resolver=known,
        random=lambda: chance,
        shuffle=lambda names: names.sort(),
        trust=trust,
        https_port=https_port,
    )
    app = await build(
        await with_key_ring(settings_of(texts)), runtime, externals, {UncachedDns: asks or known}, slices
    )
    if started:
        if slices is SLICES:
            await rest(app)
        await app.start()
    server, serving = await served(app.asgi, listener)
    made = World(app, f"http://127.0.0.1:{port}", known)
    try:
        yield made
    finally:
        await made.close()
        end_streams(app)
        server.end()
        await serving
        await app.stop(5) if started else await app.kit.pools.close()
        os.close(memory)


def end_streams(app: App) -> None:
    """End the streams of open pages, which sleep on the clock: where it stands still the server would wait
    for them until its patience ends."""
    app.need(LiveStreams).close()
    if isinstance(app.kit.clock, ManualClock):
        app.kit.clock.wake(EVERY)


async def rest(app: App) -> None:
    """Note that periodic jobs were done a moment ago: each start of a new database would run all of them
    at once."""
    jobs = app.kit.need(PeriodicJobs)
    now = datetime.now(UTC)
    due = [now + (LOOK if job.depends else job.every) / 2 for job in jobs]
    await app.kit.pool.execute(RESTING, NO_TEAM, [job.kind for job in jobs], due, now)


async def with_key_ring(settings: Settings) -> Settings:
    """Return the settings with the key ring that a start would find or make."""
    conn = await asyncpg.connect(settings.database_url)
    try:
        settings.data.mkdir(parents=True, exist_ok=True)
        return settings.replacing(secret_key=await established(conn, settings))
    finally:
        await conn.close()


def _listener() -> socket.socket:
    """Return a free loopback port. The protocol is named, or asyncio would leave Nagle's delay of 40
    ms on."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def mail(**fields: Any) -> dict[str, Any]:
    """Return a send request that is right, with `fields` put in its place (None removes one)."""
    body = {
        "from": "Harbor <notes@harbor.example>",
        "to": ["ada@quay.example"],
        "subject": "Berth 12",
        "html": "<p>Ready</p>",
    }
    body.update({name.rstrip("_"): value for name, value in fields.items()})
    return {name: value for name, value in body.items() if value is not None}


__all__ = ["Team", "World", "mail", "world"]
