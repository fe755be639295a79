"""The API over a real socket and a real database, assembled from the same parts as the product."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import asyncpg
import httpx
from uvicorn.server import ServerState

from kit.http_client import http_client
from pillarbox.api_keys import routes as api_keys_routes
from pillarbox.api_keys.credentials import KeyCredentials, LastUsed
from pillarbox.domains import routes as domains_routes
from pillarbox.domains.claims import routes as claims_routes
from pillarbox.domains.claims.policy import ClaimRules
from pillarbox.domains.context import DomainContext
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.senders import Senders
from pillarbox.kernel.clock import Clock, SystemClock
from pillarbox.kernel.http import health, openapi
from pillarbox.kernel.http.health import DatabaseProbe
from pillarbox.kernel.http.idempotency import IdempotencyRows, IdempotencyStore
from pillarbox.kernel.http.pipeline import Api, HttpSettings
from pillarbox.kernel.http.protocol import Protocol, server_config
from pillarbox.kernel.http.routing import RouteTable, collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.parts import PartRegistry
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.authentication import CredentialLookup
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.ring_check import RingWatch
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.team_rate import TeamRate
from pillarbox.kernel.settings.settings import settings_of
from pillarbox.kernel.storage.blobs import BlobStore, FolderBackend
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.storage.store_check import StoreWatch
from pillarbox.teams.allowances import Allowances
from pillarbox.teams.bootstrap import MadeTeam, create_team
from pillarbox.webhooks.publish import Publisher

PRODUCT = (health, openapi, api_keys_routes, domains_routes, claims_routes)
HERE = MailInstallation(
    hostname="mx.pillar.example", tracking_host="track.pillar.example", public_host="app.pillar.example"
)
UNLIMITED = HttpSettings(rate_limit=0)


@dataclass(slots=True)
class HttpServer:
    """A running API."""

    port: int
    services: PartRegistry
    pool: asyncpg.Pool
    table: RouteTable

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def team(self, name: str = "Harbor") -> MadeTeam:
        """Make a new team with its full-access key."""
        return await create_team(self.pool, name=name, email="ada@quay.example", ids=self.services.use(Ids))

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        """Return a client that sends this token, or none."""
        return http_client(self.url, token, timeout=30)

    async def raw(self, data: bytes, *, finish: bool = False) -> bytes:
        """Return everything the server says to these bytes until it closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        if finish:
            writer.write_eof()
        try:
            return await asyncio.wait_for(reader.read(), 20)
        finally:
            writer.close()


def parts(pool: asyncpg.Pool, clock: Clock, windows_fd: int, here: MailInstallation) -> PartRegistry:
    """Return the parts that the HTTP server needs."""
    last_used = LastUsed(pool, clock)
    credentials = KeyCredentials(pool, clock, last_used)
    ring = KeyRing.parse(KeyRing.generate_text())
    ids = Ids(clock)
    windows = Windows(windows_fd, clock)
    services = PartRegistry(ids, windows, last_used, credentials, here, ring)
    services.add(TeamRate(windows, windows_fd, pool, clock))
    services.add(DomainContext(here, ring, ids, Publisher(ids)))
    services.add(ClaimRules())
    services.add(Allowances())
    services.add(Senders(pool, clock))
    services.add(DiskSpace(clock, []))
    blobs = BlobStore(FolderBackend(Path("blobs-of-no-test")))
    services.add(blobs)
    services.add(RingWatch(pool, clock, ring))
    services.add(StoreWatch(pool, clock, blobs, settings_of({})))
    services.add(pool, asyncpg.Pool)
    services.add(credentials, CredentialLookup)
    services.add(IdempotencyRows(pool, clock), IdempotencyStore)
    return services


@asynccontextmanager
async def http_server(
    database_url: str,
    *more: ModuleType,
    settings: HttpSettings = UNLIMITED,
    here: MailInstallation = HERE,
    protocol: type[Protocol] = Protocol,
    windows_fd: int | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[HttpServer]:
    """Serve the product's routes and those of `more` on a free loopback port."""
    pool = await open_pool(database_url, limit=8)
    fd = shared_memory.create() if windows_fd is None else windows_fd
    services = parts(pool, clock or SystemClock(), fd, here)
    probe = DatabaseProbe(database_url)
    services.add(probe)
    table = RouteTable(collect(*PRODUCT, *more))
    config = server_config(Api(table, services, settings), protocol)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(config, state, {}), "127.0.0.1", 0, family=socket.AF_INET
    )
    try:
        yield HttpServer(server.sockets[0].getsockname()[1], services, pool, table)
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=5)
        await probe.close()
        await pool.close()


async def sending_key(client: httpx.AsyncClient, domain_id: str | None = None) -> str:
    """Return a new key that may only send."""
    body = {"name": "sender", "permission": "sending_access", "domain_id": domain_id}
    made = await client.post("/api-keys", json=body)
    token: str = made.json()["token"]
    return token


def error(response: httpx.Response) -> tuple[int, str, str]:
    """Return the status, name and message of an error; check the shape that every error has."""
    body: dict[str, Any] = response.json()
    assert list(body) == ["statusCode", "message", "name"]
    assert body["statusCode"] == response.status_code
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    assert UUID(response.headers["x-request-id"]).version == 7
    return response.status_code, body["name"], body["message"]
