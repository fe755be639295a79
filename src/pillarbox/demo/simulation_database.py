"""The database and the application in which the demo's month happens, for as long as it takes.

It is an embedded PostgreSQL in a temporary folder, so no other process works on its rows, whatever their
times are. The application is the program with all of its slices. Its mail stays on the machine by the route
`capture`, whatever the route of the installation is, and its network is `closed_network`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from pillarbox.application import App, build
from pillarbox.demo import team_queries as queries
from pillarbox.demo.network_simulation import ClosedDns, DemoPoster
from pillarbox.demo.schedule import SeededRandom
from pillarbox.demo.simulation_clock import ScriptedClock
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.dns_answers import UncachedDns
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.database import Connection, Source, transaction
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.postgres.migrations import migrate_url
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.security import link_key_queries
from pillarbox.kernel.settings.settings import Settings, settings_of
from pillarbox.kernel.slices import Externals
from pillarbox.webhooks.dispatch.posting import Poster

KEPT = (
    "public_url",
    "hostname",
    SIMULATOR_DOMAINS.name,
    "inbound_domain",
    "spf_value",
    "secret_key",
    "pg_bin",
)
"""Settings of the installation that stand in mail and links; the month goes by the defaults of all others."""

CONNECTIONS = 30


def settings_of_month(settings: Settings, folder: Path, url: str) -> Settings:
    """Return the settings of the application: nothing leaves the machine, and no limit is in the way."""
    kept = {name: settings.given[name] for name in KEPT if name in settings.given}
    kept.setdefault("public_url", settings.public_url)
    kept.setdefault("hostname", settings.hostname)
    texts = {
        **kept,
        "data": str(folder),
        "database_url": url,
        "route": "capture",
        "rate_limit": "0",
        "require_verified_domain": "always",
        "allow_private": "127.0.0.0/8,::1/128",
    }
    return settings_of(texts, settings.rows)


@asynccontextmanager
async def simulation_database(settings: Settings) -> AsyncIterator[tuple[Path, str]]:
    """Yield a migrated database of its own, with the folder in which it lies; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pillarbox-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        postgres = EmbeddedPostgres(
            folder / "postgres", bin_dir=settings.pg_bin, durable=False, connections=CONNECTIONS
        )
        try:
            await postgres.start()
            await migrate_url(postgres.url())
            yield folder, postgres.url()
        finally:
            await postgres.stop()


@asynccontextmanager
async def simulation_application(
    settings: Settings,
    installation: asyncpg.Pool,
    clock: ScriptedClock,
    dns: ClosedDns,
    poster: DemoPoster,
    seed: int,
) -> AsyncIterator[App]:
    """Yield the application, not started: the caller moves its work. It uses the installation's keys of links
    and gives its first team the installation's next number: what mail says goes on working there."""
    chance = SeededRandom(seed)
    async with simulation_database(settings) as (folder, url):
        memory = shared_memory.create()
        try:
            runtime = Runtime(
                process_id=Ids(clock).new(), index=0, count=1, shared_memory=memory, capture_token=""
            )
            externals = Externals(clock, dns, chance.random, chance.shuffle)
            parts: Mapping[type, object] = {UncachedDns: dns, Poster: poster}
            app = await build(settings_of_month(settings, folder, url), runtime, externals, parts)
            try:
                async with transaction(app.kit.pool) as conn:
                    await copy_link_keys(installation, conn)
                await queries.set_next_number(app.kit.pool, await queries.next_number(installation))
                yield app
            finally:
                await app.need(Outbound).close()
                await app.kit.pools.close()
        finally:
            os.close(memory)


async def copy_link_keys(source: Source, target: Connection) -> None:
    """Copy the sealed keys of links whose numbers the target does not have."""
    await link_key_queries.lock(target)
    known = {key.id for key in await link_key_queries.every(target)}
    for key in await link_key_queries.every(source):
        if key.id not in known:
            await link_key_queries.add(target, key.id, key.sealed, key.created_at)
