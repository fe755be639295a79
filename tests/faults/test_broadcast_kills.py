"""Processes, databases and servers that die while a broadcast is sent: each recipient gets its copy once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from faults.test_kills import CONNECTIONS, PROCESSES, free_port
from kit.http_client import http_client
from kit.ledger import arrivals, open_work, uncertain
from kit.process import KEY, Served, connected, reconciled, served, verified
from kit.remote_servers import remote_servers
from repository.running import Watched, children_of

pytestmark = pytest.mark.sweep

RECIPIENTS: Final = 10_000
PATIENCE: Final = 400.0
ROUNDS: Final = [
    pytest.param(["worker", "database", "server"], id="small"),
    pytest.param(
        [random.Random(n).choice(("worker", "database", "server")) for n in range(20)],
        id="large",
        marks=pytest.mark.slow,
    ),
]

PLAN: Final = {
    "canary": {"percent": 5, "minutes": 60},
    "per_hour": 3_600_000,
    "ab_test": {
        "variants": [{"subject": "high"}, {"subject": "low"}, {"text": "Ho"}],
        "percent": 30,
        "winner_by": "clicks",
        "minutes": 60,
    },
}
STAGE_OVER: Final = "UPDATE broadcast_plans SET stage_until = now() WHERE stage_until IS NOT NULL"

PEOPLE: Final = """
    WITH made AS (
        INSERT INTO contacts (team_id, id, address, first_name, unsubscribed, created_at, updated_at)
        SELECT t.id, gen_random_uuid(), 'reader' || n || '@quay' || n % 5 || '.example', n::text, false,
               now(), now()
          FROM teams t, generate_series(1, $2) AS n
        RETURNING team_id, id
    )
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT team_id, $1::text::uuid, id, now() FROM made
"""

STATE: Final = """
    SELECT b.status, b.recipients, count(r.email_id) AS sent, count(r.skipped_for) AS skipped,
           count(DISTINCT r.email_id) AS different,
           count(*) FILTER (WHERE e.last_event = 'delivered') AS delivered
      FROM broadcasts b
      JOIN broadcast_recipients r ON r.team_id = b.team_id AND r.broadcast_id = b.id
      LEFT JOIN emails e ON e.team_id = r.team_id AND e.id = r.email_id
     WHERE b.id = $1::text::uuid
     GROUP BY b.team_id, b.id
"""


class Running:
    """A server with its database that may be killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self.at = f"127.0.0.1:{free_port()}"
        self._folder = folder
        self._settings = {
            "http": self.at,
            "route": f"relay:smtp://127.0.0.1:{port}",
            "processes": str(PROCESSES),
        }
        self._stack = ExitStack()
        self.server: Served
        self.start()

    def start(self) -> None:
        self.server = self._stack.enter_context(served(self._folder / "data", **self._settings))

    def kill(self, what: str, chance: random.Random) -> None:
        """SIGKILL to a worker, to the database, or to everything at once."""
        if what == "worker":
            self.server.kill_a_worker(chance)
        elif what == "database":
            before = sum("postgres.restarted" in line for line in self.server.log.all)
            os.kill(self.server.postmaster(), signal.SIGKILL)
            self.server.log.wait_for("postgres.restarted", count=before + 1)
        else:
            family = Watched(children_of(self.server.process.pid))
            self.server.process.kill()
            # Workers that lose only the server wait ten seconds for the database, which is gone as well.
            family.kill()
            self.server.process.wait()
            assert family.all_ended()
            self.start()

    def close(self) -> None:
        self._stack.close()


@contextmanager
def running(folder: Path, port: int) -> Iterator[Running]:
    made = Running(folder, port)
    try:
        yield made
    finally:
        made.close()


async def made(client: httpx.AsyncClient, path: str, **body: Any) -> str:
    answer = await client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def is_sent(url: str, broadcast: str) -> dict[str, Any]:
    """What is known of the broadcast when it is sent and no copy is open any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with connected(url) as conn:
                    found = await conn.fetchrow(STATE, broadcast)
                    if found and found["status"] == "sent" and not await open_work(conn):
                        # Its last copies may have ended since it was read.
                        return dict(await conn.fetchrow(STATE, broadcast))
            except OSError:
                pass
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_each_recipient_gets_its_copy_once(tmp_path: Path, rounds: list[str]) -> None:
    """DUR-03: at random moments something is killed twice in each broadcast. A copy goes twice only where
    that is
    counted as uncertain, and every recipient has one."""
    chance = random.Random(16)
    kills = Counter(rounds)
    with remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far, running(tmp_path, far.port) as at:
        async with http_client(f"http://{at.at}", KEY) as client:
            segment = await made(client, "/segments", name="Readers")
            url = at.server.database_url
            async with connected(url) as conn:
                await conn.execute(PEOPLE, segment, RECIPIENTS)
            for number, what in enumerate(rounds):
                content = {
                    "subject": f"berth-{number}-{{{{{{FIRST_NAME}}}}}}",
                    "html": "<p>Hi {{{FIRST_NAME}}}</p>",
                }
                broadcast = await made(
                    client,
                    "/broadcasts",
                    segment_id=segment,
                    send=True,
                    **content,
                    **{"from": "news@harbor.example"},
                )
                for _ in range(2):
                    await asyncio.sleep(0.2 + 2 * chance.random())
                    await asyncio.to_thread(at.kill, what, chance)
                found = await is_sent(at.server.database_url, broadcast)
                assert found == {
                    "status": "sent",
                    "recipients": RECIPIENTS,
                    "sent": RECIPIENTS,
                    "skipped": 0,
                    "different": RECIPIENTS,
                    "delivered": RECIPIENTS,
                }
        taken = Counter((one.token, one.recipient) for one in arrivals(far.journal))
        assert len(taken) == RECIPIENTS * len(rounds)
        doubled = {copy for copy, times in taken.items() if times > 1}
        async with connected(at.server.database_url) as conn:
            assert doubled <= await uncertain(conn)
        most = 2 * CONNECTIONS * (kills["worker"] + PROCESSES * (kills["database"] + kills["server"]))
        assert len(doubled) <= most
        await reconciled(at.server.database_url)
        print(f"\n{len(taken)} copies, {len(doubled)} of them twice")
    if len(rounds) > 3:
        verified(tmp_path / "data")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_each_recipient_gets_one_variant_once(tmp_path: Path, seed: int) -> None:
    """Slow sending with a canary and an A/B test, while something is killed at random moments: each
    recipient has one variant, and the variants of the test are of equal size."""
    chance = random.Random(seed)
    with remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far, running(tmp_path, far.port) as at:
        async with http_client(f"http://{at.at}", KEY) as client:
            segment = await made(client, "/segments", name="Readers")
            async with connected(at.server.database_url) as conn:
                await conn.execute(PEOPLE, segment, RECIPIENTS)
            broadcast = await made(
                client,
                "/broadcasts",
                segment_id=segment,
                send=True,
                subject="berth",
                text="Hi",
                plan=PLAN,
                **{"from": "news@harbor.example"},
            )
        for _ in range(8):
            await asyncio.sleep(0.2 + 2 * chance.random())
            await asyncio.to_thread(at.kill, chance.choice(("worker", "database", "server")), chance)
            async with connected(at.server.database_url) as conn:
                await conn.execute(STAGE_OVER)
        async with asyncio.timeout(PATIENCE):
            while not await stage_over(at.server.database_url):
                await asyncio.sleep(0.5)
        found = await is_sent(at.server.database_url, broadcast)
        assert (found["sent"], found["different"]) == (RECIPIENTS, RECIPIENTS)
        async with connected(at.server.database_url) as conn:
            winner = await conn.fetchval("SELECT winner FROM broadcast_plans")
            rows = await conn.fetch(
                "SELECT wave IS NULL AS is_rest, variant, count(*) FROM broadcast_recipients GROUP BY 1, 2"
            )
        sizes = {(row["is_rest"], row["variant"]): row["count"] for row in rows}
        assert sizes == {(False, n): RECIPIENTS // 10 for n in (1, 2, 3)} | {
            (True, winner): RECIPIENTS - 3 * (RECIPIENTS // 10)
        }
        taken = Counter((one.token, one.recipient) for one in arrivals(far.journal))
        assert len({recipient for _, recipient in taken}) == RECIPIENTS
        await reconciled(at.server.database_url)
    verified(tmp_path / "data")


async def stage_over(url: str) -> bool:
    """End a stage that waits; return whether the last one has begun."""
    try:
        async with connected(url) as conn:
            await conn.execute(STAGE_OVER)
            return bool(await conn.fetchval("SELECT stage = 'rest' FROM broadcast_plans"))
    except OSError:
        return False
