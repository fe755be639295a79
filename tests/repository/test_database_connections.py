"""How Pillarbox reaches a database that others run: enough connections, and a pooler in between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from kit.http_client import http_client
from kit.pgbouncer import pgbouncer
from kit.process import KEY, connected, served, settled, verified
from kit.remote_servers import remote_servers
from kit.world import mail, world
from pillarbox.app import SETTINGS
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.postgres.connection_limits import ConnectionCounts, too_few
from pillarbox.kernel.postgres.database import KEPT_PROMISES, open_pool
from pillarbox.kernel.postgres.pooler import PoolerError, refuse_transaction_mode
from pillarbox.kernel.settings.settings import read_settings
from pillarbox.kernel.terminal.connect import connect
from repository.running import supervisor

SESSION = """
    SELECT current_setting('lock_timeout') AS lock_timeout,
           current_setting('idle_in_transaction_session_timeout') AS idle,
           current_setting('jit') AS jit, current_setting('TimeZone') AS zone,
           current_setting('enable_seqscan') AS seqscan
"""
WANTED = {"lock_timeout": "3500ms", "idle": "30s", "jit": "off", "zone": "UTC", "seqscan": "off"}
PATIENCE = 30.0
NUMBERS = itertools.count(1)


@pytest.fixture
def limited_url(databases: Any, database_url: str) -> Iterator[str]:
    """The database, for a role of its own that is no superuser and may have eight connections."""
    role = f"limited_{next(NUMBERS)}"
    databases.run(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 8 IN ROLE pg_read_all_data, pg_write_all_data")
    yield database_url.replace("user=pillarbox", f"user={role}")
    databases.run(f"DROP ROLE {role}")


# How many -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"processes": "2"}, 2 * (16 + 10 + 4 + 1) + 3),
        ({"processes": "2", "route": "direct"}, 2 * (16 + 10 + 3 + 1) + 3),
        ({"processes": "1", "route": "direct", "roles": "delivery"}, 16 + 10 + 1 + 3),
        ({"processes": "4", "route": "direct", "roles": "jobs"}, 4 * (16 + 10) + 3),
    ],
)
def test_the_demand_follows_processes_and_roles(given: dict[str, str], wanted: int) -> None:
    assert connection_limits.of_machine(read_settings(SETTINGS, given, {})) == wanted


async def test_the_demand_is_what_a_process_can_take(database_url: str, tmp_path: Path) -> None:
    """With all roles: both pools, one connection for each channel, and that of the health probe. That of
    inboxes is listened on once a request waits."""
    async with world(database_url, tmp_path, processes="1", started=False) as pillarbox:
        kit = pillarbox.app.kit
        pools = kit.pools.requests.get_max_size() + kit.pools.engine.get_max_size()
        channels = sum(len(one.listeners(kit)) for one in kit.slices)
        waiting = 1
        assert connection_limits.of_process(kit.settings) == pools + channels + waiting + 1


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            ConnectionCounts(server=100, reserved=5, role=None, database=None, others=0),
            "95 connections (max_connections = 100, of which 5 are reserved)",
        ),
        (
            ConnectionCounts(server=500, reserved=3, role=20, database=None, others=0),
            "20 connections (the role's limit: ALTER ROLE … CONNECTION LIMIT)",
        ),
        (
            ConnectionCounts(server=500, reserved=3, role=90, database=30, others=0),
            "30 connections (the database's limit: ALTER DATABASE … CONNECTION LIMIT)",
        ),
    ],
)
def test_too_few_connections_are_one_sentence(limits: ConnectionCounts, words: str) -> None:
    found = too_few(read_settings(SETTINGS, {"processes": "4", "route": "direct"}, {}), limits)
    assert found == (
        f"The database allows {words}, but this machine needs 123: 30 for each of 4 processes and 3 for "
        "commands. Raise the limit, or run fewer processes with --processes."
    )


def test_enough_connections_are_no_sentence() -> None:
    settings = read_settings(SETTINGS, {"processes": "4", "route": "direct"}, {})
    assert (
        too_few(settings, ConnectionCounts(server=200, reserved=3, role=None, database=None, others=0))
        is None
    )
    assert (
        too_few(settings, ConnectionCounts(server=126, reserved=3, role=123, database=None, others=0)) is None
    )


def test_a_start_with_too_few_connections_ends_in_one_sentence(tmp_path: Path, limited_url: str) -> None:
    with supervisor(tmp_path / "data", "--database-url", limited_url, "--processes", "2") as running:
        assert running.exit_status() == 1
        assert running.log.wait_for_end()[-1].startswith(
            "pillarbox: The database allows 8 connections (the role's limit: ALTER ROLE … CONNECTION LIMIT), "
            "but this machine needs 65: 31 for each of 2 processes"
        )


async def test_the_embedded_database_leaves_connections_to_commands(tmp_path: Path) -> None:
    """However many processes there are, and all of them at their limits."""
    with supervisor(tmp_path / "data", "--processes", "12") as running:
        running.ready()
        settings = read_settings(SETTINGS, {"data": str(tmp_path / "data")}, {})
        async with connect(settings) as found:
            server = await found.pool.fetchval("SELECT current_setting('max_connections')::int")
            assert server >= connection_limits.of_machine(found.settings)


async def test_no_connection_left_is_a_503_of_its_own_and_passes(limited_url: str, tmp_path: Path) -> None:
    """Somebody else takes what there is: whoever asks is told so at once, and service comes back."""
    async with world(limited_url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        async with AsyncExitStack() as others:
            while True:
                try:
                    conn = await asyncpg.connect(limited_url)
                except asyncpg.TooManyConnectionsError:
                    break
                others.push_async_callback(conn.close)
            async with asyncio.timeout(PATIENCE):
                answers = await asyncio.gather(*(team.post("/emails", mail()) for _ in range(40)))
                answers += await asyncio.gather(*(team.get("/emails") for _ in range(40)))
            refused = [answer for answer in answers if answer.status_code != 200]
            assert refused
            for answer in refused:
                assert answer.status_code == 503
                assert answer.json()["message"] == (
                    "The database takes no more connections right now. Try again later."
                )
                assert answer.headers["retry-after"] == "1"
        async with asyncio.timeout(PATIENCE):
            while (await team.post("/emails", mail())).status_code != 200:
                await asyncio.sleep(0.05)


# Poolers --------------------------------------------------------------------------------------------


async def test_without_a_pooler_there_is_nothing_to_refuse(database_url: str) -> None:
    assert not await refuse_transaction_mode(database_url)


async def test_session_mode_is_recognised_and_fine(database_url: str) -> None:
    with pgbouncer(database_url, "session") as url:
        assert await refuse_transaction_mode(url)


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("size", [1, 20])
async def test_modes_without_sessions_are_refused(database_url: str, mode: str, size: int) -> None:
    with (
        pgbouncer(database_url, mode, size=size) as url,
        pytest.raises(PoolerError, match="pool_mode = session"),
    ):
        await refuse_transaction_mode(url)


async def test_a_pooler_with_one_session_is_too_small(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pillarbox.kernel.postgres.pooler.SECONDS", 0.5)
    with (
        pgbouncer(database_url, "session", size=1) as url,
        pytest.raises(PoolerError, match="default_pool_size"),
    ):
        await refuse_transaction_mode(url)


async def test_sessions_have_their_settings_behind_a_pooler_too(database_url: str) -> None:
    with pgbouncer(database_url, "session") as url:
        pool = await open_pool(url, limit=1, application="pillarbox-test", by_key=True)
        try:
            async with pool.acquire() as conn:
                assert dict(await conn.fetchrow(SESSION)) == WANTED
                assert conn.get_server_pid() == await conn.fetchval("SELECT pg_backend_pid()")
        finally:
            await pool.close()


OTHERS = {
    "synchronous_commit": "off",
    "statement_timeout": "'50ms'",
    "transaction_timeout": "'50ms'",
    "idle_session_timeout": "'50ms'",
    "default_transaction_isolation": "'serializable'",
}
"""What other programs on the server may want."""

HELD = """
    SELECT name, setting FROM pg_settings WHERE name = ANY ($1) ORDER BY name
"""


async def test_what_others_set_for_a_database_breaks_no_promise(database_url: str) -> None:
    """DUR-01: acknowledged means durable, whatever the role or the database has as its default."""
    name = urlsplit(database_url).path[1:]
    async with connected(database_url) as conn:
        known = [row[0] for row in await conn.fetch(HELD, list(OTHERS))]
        for setting in known:
            await conn.execute(f"ALTER DATABASE {name} SET {setting} = {OTHERS[setting]}")
    pool = await open_pool(database_url, limit=1, application="pillarbox-test")
    try:
        held = {row["name"]: row["setting"] for row in await pool.fetch(HELD, known)}
        assert held == {setting: KEPT_PROMISES[setting] for setting in known}
        await pool.execute("SELECT pg_sleep(0.1)")
    finally:
        await pool.close()


async def test_how_far_standbys_are_waited_for_stays_the_operators_choice(database_url: str) -> None:
    name = urlsplit(database_url).path[1:]
    async with connected(database_url) as conn:
        await conn.execute(f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
    pool = await open_pool(database_url, limit=1, application="pillarbox-test")
    try:
        assert await pool.fetchval("SELECT current_setting('synchronous_commit')") == "remote_apply"
    finally:
        await pool.close()


def test_a_start_with_a_pooler_in_transaction_mode_ends_in_one_sentence(
    tmp_path: Path, database_url: str
) -> None:
    with (
        pgbouncer(database_url, "transaction") as url,
        supervisor(tmp_path / "data", "--database-url", url) as running,
    ):
        assert running.exit_status() == 2
        complaint = running.log.wait_for_end()[-1]
    assert complaint.startswith("pillarbox: --database-url leads to a connection pooler in transaction mode")
    assert "LISTEN, advisory locks, session settings and prepared statements" in complaint


async def test_behind_a_pooler_in_session_mode_all_works_as_without_it(
    tmp_path: Path, database_url: str
) -> None:
    """From a blank database: migrations, mail over two processes, commands."""
    with (
        pgbouncer(database_url, "session") as url,
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
    ):
        route = f"relay:smtp://127.0.0.1:{far.port}"
        with served(tmp_path / "data", database_url=url, route=route) as running:
            host, port = running.ready()
            running.log.wait_for("database.pooled")
            async with http_client(f"http://{host}:{port}", KEY) as client:
                answers = await asyncio.gather(*(client.post("/emails", json=mail()) for _ in range(100)))
                assert {answer.status_code for answer in answers} == {200}
                assert (await client.get("/health")).status_code == 200
            await settled(url, PATIENCE)
            async with connected(url) as conn:
                states = await conn.fetch("SELECT DISTINCT state FROM recipients")
                assert [row["state"] for row in states] == ["delivered"]
            verified(tmp_path / "data")
