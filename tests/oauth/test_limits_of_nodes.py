"""What an address may do within a minute or an hour is counted over all nodes (docs/decisions/0054)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.manual_world import manual_world
from kit.world import World
from pillarbox.kernel.security import rate_queries
from pillarbox.kernel.security.rate_limit import key_for
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.kernel.security.team_rate import TeamRate
from pillarbox.oauth.authorization import MOST_OF_ADDRESS
from pillarbox.oauth.clients.documents import MOST_OF_ADDRESS as FETCHES_OF_ADDRESS
from pillarbox.oauth.clients.registration import MOST_AN_HOUR
from pillarbox.oauth.routes import MOST_FAILURES

CLIENT = {"client_name": "Quill", "redirect_uris": ["https://quill.example/cb"]}
RETRY = "retry-after"


@asynccontextmanager
async def two_nodes(database_url: str, folder: Path) -> AsyncIterator[tuple[World, World]]:
    (folder / "other").mkdir()
    async with manual_world(database_url, folder) as one:
        shutil.copy(folder / "secret.key", folder / "other")
        async with manual_world(database_url, folder / "other") as two:
            for node in (one, two, one):
                await node.app.need(TeamRate).look()
            assert [node.app.need(TeamRate).nodes for node in (one, two)] == [2, 2]
            yield one, two


async def statuses(nodes: tuple[World, World], count: int, path: str, **body: Any) -> list[int]:
    """The answers to so many requests, one after the other at one node and the other."""
    clients = [node.client(None) for node in nodes]
    return [(await clients[number % 2].post(path, **body)).status_code for number in range(count)]


async def test_registrations_are_counted_over_nodes(database_url: str, tmp_path: Path) -> None:
    async with two_nodes(database_url, tmp_path) as nodes:
        found = await statuses(nodes, MOST_AN_HOUR + 4, "/oauth/register", json=CLIENT)
        assert found == [201] * MOST_AN_HOUR + [429] * 4
        later = await nodes[1].client(None).post("/oauth/register", json=CLIENT)
        assert 3500 <= int(later.headers[RETRY]) <= 3600
        made = "SELECT count(*) FROM oauth_clients WHERE name = $1"
        assert await nodes[0].pool.fetchval(made, CLIENT["client_name"]) == MOST_AN_HOUR


async def test_failures_are_counted_over_nodes(database_url: str, tmp_path: Path) -> None:
    async with two_nodes(database_url, tmp_path) as nodes:
        wrong = {"grant_type": "authorization_code", "client_id": "nobody", "code": "x"}
        found = await statuses(nodes, MOST_FAILURES + 4, "/oauth/token", data=wrong)
        assert 429 not in found[:MOST_FAILURES]
        assert found[MOST_FAILURES:] == [429] * 4


async def test_who_is_refused_for_its_address_makes_no_rows_of_other_names(
    database_url: str, tmp_path: Path
) -> None:
    """Names of programs and hosts are made up by whoever asks; each would be a row for an hour."""
    rows = "SELECT count(*) FROM rate_windows"
    async with two_nodes(database_url, tmp_path) as (one, two):
        await one.pool.execute("DELETE FROM rate_windows")
        client = two.client(None)
        for number in range(MOST_FAILURES + 10):
            wrong = {"grant_type": "authorization_code", "client_id": f"nobody-{number}", "code": "x"}
            last = await client.post("/oauth/token", data=wrong)
        assert last.status_code == 429
        assert await one.pool.fetchval(rows) == 1 + MOST_FAILURES
        await one.pool.execute("DELETE FROM rate_windows")
        for number in range(FETCHES_OF_ADDRESS + 10):
            asked = {"client_id": f"https://made-up-{number}.example/client", "response_type": "code"}
            last = await client.get("/oauth/authorize", params=asked)
        assert last.status_code == 429
        assert await one.pool.fetchval(rows) == 1 + 2 * FETCHES_OF_ADDRESS, "by path and by URL"


async def test_requests_are_counted_over_nodes(database_url: str, tmp_path: Path) -> None:
    async with two_nodes(database_url, tmp_path) as (one, two):
        key = key_for("oauth requests of 192.0.2.1")
        limits = [node.app.need(SharedLimits) for node in (one, two)]
        taken = [await limits[n % 2].take(key, MOST_OF_ADDRESS, 60.0) for n in range(MOST_OF_ADDRESS + 2)]
        assert [each.allowed for each in taken] == [True] * MOST_OF_ADDRESS + [False] * 2
        assert [each.remaining for each in taken[:3]] == [MOST_OF_ADDRESS - 1 - n for n in range(3)]
        assert 1 <= limits[0].wait(key, MOST_OF_ADDRESS) <= 60
        await one.pool.execute("UPDATE rate_windows SET ends_at = now()")
        assert await rate_queries.count(one.pool, key, 3, 60.0) == (1, pytest.approx(60, abs=1))
        await one.pool.execute("UPDATE rate_windows SET ends_at = now() + interval '1 day', taken = 3")
        assert (await rate_queries.count(one.pool, key, 3, 60.0))[0] == 1, "the clock was set back"


async def test_without_the_database_each_node_counts_by_itself(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise ConnectionError

    async with two_nodes(database_url, tmp_path) as nodes:
        monkeypatch.setattr(rate_queries, "count", away)
        for node in nodes:
            limits = node.app.need(SharedLimits)
            assert [(await limits.take(key_for("x"), 2, 60.0)).allowed for _ in range(3)] == [
                True,
                True,
                False,
            ]
