"""A process that dies while it makes copies: each recipient gets one (docs/decisions/0012)."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broadcasts.test_deaths import AUDIENCE, MEMBERS
from kit.http_client import http_client
from kit.ledger import arrivals
from kit.process import KEY, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import remote_servers

pytestmark = pytest.mark.sweep

MADE = "SELECT count(*) FROM broadcast_recipients WHERE email_id IS NOT NULL"
TEST_OVER = """
    UPDATE broadcast_plans SET stage_until = now() WHERE stage = 'deciding' RETURNING true
"""
PLAN = {
    "per_hour": 360_000,
    "ab_test": {
        "variants": [{"subject": "High"}, {"subject": "Low"}],
        "percent": 50,
        "winner_by": "opens",
        "minutes": 60,
    },
}
OTHERS = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES (gen_random_uuid(), 'another', 1, 1, 'api,delivery', now(), now())
"""


@pytest.mark.parametrize("point", ["copies_written", "copies_committed"])
async def test_a_death_while_copies_are_made(database_url: str, tmp_path: Path, point: str) -> None:
    """Before the commit nothing is left, behind it the lease of the dead process ends at once."""
    await first_team(database_url)
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        workers.start(f"broadcast.{point}=kill@2")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            segment_id = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
            async with connected(database_url) as conn:
                await conn.execute(AUDIENCE, UUID(segment_id), MEMBERS)
            wanted = {"from": "a@harbor.example", "subject": "Tides", "text": "High", "send": True}
            await client.post("/broadcasts", json={**wanted, "segment_id": segment_id})
        assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
        async with connected(database_url) as conn:
            assert await conn.fetchval(MADE) in (MEMBERS // 2, MEMBERS)
        workers.start()
        async with asyncio.timeout(60), connected(database_url) as conn:
            while await conn.fetchval("SELECT status FROM broadcasts") != "sent":
                await asyncio.sleep(0.05)
            assert await conn.fetchval(MADE) == MEMBERS
        await settled(database_url, 60)
        taken = Counter(one.recipient for one in arrivals(far.journal))
        assert len(taken) == MEMBERS
    await reconciled(database_url)


async def test_deaths_while_an_ab_test_is_sent_slowly(database_url: str, tmp_path: Path) -> None:
    """A process dies when it has made a portion of the test, and the next one when the winner is chosen: each
    recipient has one variant and one copy, and the others have the winner's."""
    await first_team(database_url)
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        workers.start("broadcast.copies_committed=kill")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            segment_id = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
            async with connected(database_url) as conn:
                await conn.execute(AUDIENCE, UUID(segment_id), MEMBERS)
            wanted = {"from": "a@harbor.example", "subject": "Tides", "text": "High", "send": True}
            answer = await client.post("/broadcasts", json={**wanted, "segment_id": segment_id, "plan": PLAN})
            assert answer.status_code == 201, answer.text
        assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
        workers.start("broadcast.winner_chosen=kill")
        async with asyncio.timeout(60), connected(database_url) as conn:
            while await conn.fetchval(TEST_OVER) is None:
                await asyncio.sleep(0.05)
        assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
        workers.start()
        async with asyncio.timeout(60), connected(database_url) as conn:
            while await conn.fetchval("SELECT status FROM broadcasts") != "sent":
                await asyncio.sleep(0.05)
            assert await conn.fetchval(MADE) == MEMBERS
            winner = await conn.fetchval("SELECT winner FROM broadcast_plans")
            rows = await conn.fetch("SELECT wave, variant, count(*) FROM broadcast_recipients GROUP BY 1, 2")
            found = {(row["wave"], row["variant"]): row["count"] for row in rows}
            assert found == {(2, 1): MEMBERS // 4, (2, 2): MEMBERS // 4, (None, winner): MEMBERS // 2}
        await settled(database_url, 60)
        taken = Counter(one.recipient for one in arrivals(far.journal))
        assert len(taken) == MEMBERS
    await reconciled(database_url)


WHOLE_PLAN: dict[str, Any] = {**PLAN, "canary": {"percent": 20, "minutes": 60}}
STAGE_OVER = "UPDATE broadcast_plans SET stage_until = now() WHERE stage_until IS NOT NULL"
LOOKS_AGAIN = "UPDATE jobs SET due_at = now() WHERE owner IS NULL AND due_at > now()"
PAUSED = "UPDATE broadcasts SET paused_at = now(), paused_for = 'x' WHERE paused_at IS NULL"
RESUMED = "UPDATE broadcasts SET paused_at = NULL, paused_for = NULL"
VARIANTS = """
    SELECT r.wave, r.variant, count(r.email_id) AS copies, count(DISTINCT r.email_id) AS emails
      FROM broadcast_recipients r
     GROUP BY 1, 2
"""
ROUNDS = [
    pytest.param(["copies_written", "winner_chosen", "copies_committed"], id="quick"),
    *(
        pytest.param(points, id="-".join(points), marks=pytest.mark.slow)
        for points in (
            ["snapshot", "copies_committed", "copies_written", "winner_chosen", "copies_written"],
            ["copies_written"] * 4 + ["copies_committed"],
            ["copies_committed", "copies_committed", "winner_chosen", "copies_committed"],
        )
    ),
]


@pytest.mark.parametrize("points", ROUNDS)
async def test_deaths_from_the_start_to_the_rest_of_a_plan(
    database_url: str, tmp_path: Path, points: list[str]
) -> None:
    """One process after the other dies, in canary, test, choice and rest: each recipient has one variant and
    one copy, and the figures that are shown are those of the rows and of the servers."""
    await first_team(database_url)
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        workers.start(f"broadcast.{points[0]}=kill")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            segment_id = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
            async with connected(database_url) as conn:
                await conn.execute(AUDIENCE, UUID(segment_id), MEMBERS)
            wanted = {"from": "a@harbor.example", "subject": "Tides", "text": "High", "send": True}
            body = {**wanted, "segment_id": segment_id, "plan": WHOLE_PLAN}
            broadcast_id = (await client.post("/broadcasts", json=body)).json()["id"]
        async with connected(database_url) as conn:
            for following in (*points[1:], ""):
                async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                    moving = group.create_task(stages_end(database_url))
                    assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
                    moving.cancel()
                # A process that dies before it is ready is taken for one that cannot start.
                await conn.execute(PAUSED)
                workers.start(following and f"broadcast.{following}=kill")
                await conn.execute(RESUMED)
            await asyncio.wait_for(stages_end(database_url), 60)
        await settled(database_url, 60)
        async with connected(database_url) as conn:
            winner = await conn.fetchval("SELECT winner FROM broadcast_plans")
            rows = await conn.fetch(VARIANTS)
        copies: Counter[tuple[bool, int]] = Counter()
        for row in rows:
            assert row["emails"] == row["copies"]
            copies[row["wave"] is None, row["variant"]] += row["copies"]
        quarter = MEMBERS // 4
        assert copies == {(False, 1): quarter, (False, 2): quarter, (True, winner): 2 * quarter}
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            shown = (await client.get(f"/broadcasts/{broadcast_id}/progress")).json()
        assert [shown[name] for name in ("copies", "sent", "delivered")] == [MEMBERS] * 3
        assert [(one["variant"], one["copies"]) for one in shown["variants"]] == [(1, quarter), (2, quarter)]
        variants_of: dict[str, set[str]] = {}
        for arrival in arrivals(far.journal):
            variants_of.setdefault(arrival.recipient, set()).add(arrival.token)
        assert len(variants_of) == MEMBERS
        assert {len(taken) for taken in variants_of.values()} == {1}
        sizes = Counter(subject for taken in variants_of.values() for subject in taken)
        assert sizes == {("High", "Low")[winner - 1]: 3 * quarter, ("High", "Low")[2 - winner]: quarter}
    await reconciled(database_url)


async def stages_end(url: str) -> None:
    """End each stage that waits, until the broadcast is sent."""
    async with connected(url) as conn:
        while await conn.fetchval("SELECT status FROM broadcasts") != "sent":
            await conn.execute(STAGE_OVER)
            await conn.execute(LOOKS_AGAIN)
            await asyncio.sleep(0.05)


async def test_no_copies_are_made_while_an_engine_of_an_earlier_release_is_alive(
    database_url: str, tmp_path: Path
) -> None:
    """It could not read them, so it would put them aside."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path, route="capture") as workers:
        async with connected(database_url) as conn:
            await conn.execute(OTHERS)
            workers.start()
            async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
                segment_id = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
                await conn.execute(AUDIENCE, UUID(segment_id), MEMBERS)
                wanted = {"from": "a@harbor.example", "subject": "Tides", "text": "High", "send": True}
                await client.post("/broadcasts", json={**wanted, "segment_id": segment_id})
                async with asyncio.timeout(30):
                    while await conn.fetchval("SELECT count(*) FROM broadcast_recipients") < MEMBERS:
                        await asyncio.sleep(0.05)
                # Behind this email the engine has looked for work, and for copies to make.
                email = await client.post(
                    "/emails",
                    json={"from": "a@harbor.example", "to": "b@quay.example", "subject": "x", "text": "x"},
                )
                assert email.status_code == 200
                await settled(database_url, 30)
                assert await conn.fetchval(MADE) == 0
                await conn.execute(
                    "UPDATE processes SET seen_at = now() - interval '2 minutes' WHERE host = 'another'"
                )
                async with asyncio.timeout(60):
                    while await conn.fetchval(MADE) < MEMBERS:
                        await asyncio.sleep(0.05)
