"""Commits whose connection is lost before the database says that they are done."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from kit.database_link import DatabaseLink, database_link
from kit.world import Team, mail, world
from pillarbox.emails.accept import Accept
from pillarbox.kernel.postgres.shards import shard_group

WAITING = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

STORED = "SELECT count(*) FROM emails WHERE subject = 'held up'"

HELD_UP = mail(subject="held up")
BODIES: dict[str, tuple[str, Any]] = {
    "plain": ("/emails", HELD_UP),
    "scheduled": ("/emails", {**HELD_UP, "scheduled_at": "in 2 hours"}),
    "with a key": ("/emails", HELD_UP),
    "batch": ("/emails/batch", [HELD_UP] * 100),
}


@asynccontextmanager
async def held_up(
    database_url: str, folder: Path, what: str
) -> AsyncIterator[tuple[Team, asyncpg.Connection, asyncio.Task[httpx.Response], DatabaseLink, int]]:
    """A request whose commit waits for a lock that the connection beside it holds, and the server process
    that waits."""
    async with database_link(database_url) as wire, world(wire.url, folder, started=False) as pillarbox:
        team = await pillarbox.team()
        # The connection knows the statement, so it waits where it is run, not where it is read.
        for _ in range(3):
            await team.send()
        beside = await asyncpg.connect(database_url)
        try:
            await beside.execute("BEGIN")
            await beside.execute("LOCK TABLE contents IN SHARE MODE")
            headers = {"idempotency_key": "once"} if what == "with a key" else {}
            asked = asyncio.create_task(team.post(*BODIES[what], **headers))
            while (backend := await beside.fetchval(WAITING)) is None:
                await asyncio.sleep(0.01)
            yield team, beside, asked, wire, backend
        finally:
            await beside.close()


@pytest.mark.parametrize("what", BODIES)
async def test_a_commit_that_goes_on_without_its_connection_is_waited_for(
    database_url: str, tmp_path: Path, what: str
) -> None:
    """DUR-01: the server process runs its statement although its client is gone."""
    async with held_up(database_url, tmp_path, what) as (team, beside, asked, wire, _):
        wire.cut()
        await wire.open()
        await beside.execute("ROLLBACK")
        answer = await asked
        stored = await beside.fetchval(STORED)
        if what in ("plain", "batch"):
            assert answer.status_code == 200, answer.text
            ids = [found["id"] for found in answer.json().get("data", [answer.json()])]
            assert await team.email(ids[-1])
            assert stored == len(ids)
        else:
            # Its transaction had more to do, so it ended with the connection.
            assert answer.status_code == 503
            assert stored == 0


@pytest.mark.parametrize("what", BODIES)
async def test_a_commit_that_ends_with_its_connection_is_refused(
    database_url: str, tmp_path: Path, what: str
) -> None:
    """DUR-01: 503 means that nothing is stored, and the same request is taken afterwards."""
    async with held_up(database_url, tmp_path, what) as (team, beside, asked, _, backend):
        assert await beside.fetchval("SELECT pg_terminate_backend($1)", backend)
        answer = await asked
        await beside.execute("ROLLBACK")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert await beside.fetchval(STORED) == 0
        headers = {"idempotency_key": "once"} if what == "with a key" else {}
        again = await team.post(*BODIES[what], **headers)
        assert again.status_code == 200, again.text


async def once(team: Team) -> httpx.Response:
    return await team.post("/emails", mail(subject="held up"), idempotency_key="once")


async def test_a_commit_whose_outcome_is_unknown_is_called_so(database_url: str, tmp_path: Path) -> None:
    """DUR-01: the database got a COMMIT and does not answer. The 503 says that it may be done; the same
    key gives the stored answer when the database speaks again, and there is one email."""
    async with database_link(database_url) as wire, world(wire.url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        await team.send()
        await pillarbox.turn()
        wire.stalls_behind = b"COMMIT"
        began = time.monotonic()
        answer = await once(team)
        assert (answer.status_code, answer.json()["name"]) == (503, "service_unavailable"), answer.text
        assert "not known" in answer.json()["message"]
        assert time.monotonic() - began < 13
        # The same request now is not run a second time, whatever its answer.
        hurried = await once(team)
        assert hurried.status_code in (409, 503), hurried.text
        wire.flow()
        async with asyncio.timeout(30):
            while (again := await once(team)).is_error:
                assert again.status_code in (409, 503), again.text
                await asyncio.sleep(0.1)
        assert again.headers["idempotent-replayed"] == "true"
        assert await pillarbox.pool.fetchval(STORED) == 1
        # The process has found it committed as well, and sends it once.
        await pillarbox.app.need(Accept).drain()
        await pillarbox.turn()
        assert (await team.kinds(again.json()["id"])).count("delivered") == 1


GROUPS = """
    SELECT team_id, xmin::text AS written_by FROM emails WHERE subject = 'together'
"""


async def test_each_shard_group_has_a_commit_of_its_own(database_url: str, tmp_path: Path) -> None:
    """What waits while a commit is under way is committed next: by shard group, in one transaction each."""
    async with world(database_url, tmp_path, started=False, database_shards="4") as pillarbox:
        teams = [await pillarbox.team() for _ in range(12)]
        for team in teams[:3]:
            await team.send()
        beside = await asyncpg.connect(database_url)
        try:
            await beside.execute("BEGIN")
            await beside.execute("LOCK TABLE contents IN SHARE MODE")
            first = asyncio.create_task(teams[0].post("/emails", mail(subject="first")))
            while await beside.fetchval(WAITING) is None:
                await asyncio.sleep(0.01)
            posts = [team.post("/emails", mail(subject="together")) for team in teams for _ in range(4)]
            sends = [asyncio.create_task(post) for post in posts]
            await asyncio.wait(sends, timeout=0.2)
            await beside.execute("ROLLBACK")
            answers = await asyncio.gather(first, *sends)
            assert [answer.text for answer in answers if answer.status_code != 200] == []
            rows = await beside.fetch(GROUPS)
        finally:
            await beside.close()
        written = defaultdict[str, set[int]](set)
        for row in rows:
            written[row["written_by"]].add(shard_group(row["team_id"], 4))
        assert len(rows) == len(posts) > len(written), "some were committed together"
        assert all(len(groups) == 1 for groups in written.values())
        assert len(set().union(*written.values())) > 1
