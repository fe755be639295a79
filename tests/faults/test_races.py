"""Two who want different things of one email, or the same thing twice, at the same moment."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.ledger import TOKEN, Journal, acknowledged, arrivals, compare, lines_of, open_work, states
from kit.load import LoadClient
from kit.process import KEY, WorkerProcesses, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import RemoteServers, remote_servers

pytestmark = pytest.mark.sweep

SOON = timedelta(seconds=5)


@asynccontextmanager
async def two_workers(
    url: str, folder: Path
) -> AsyncIterator[tuple[WorkerProcesses, LoadClient, RemoteServers]]:
    await first_team(url)
    with (
        remote_servers(folder / "far", {"127.0.0.1": {}}) as far,
        worker_processes(url, folder, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        for place in (0, 1):
            await asyncio.to_thread(workers.start, place=place)
        async with LoadClient(workers.at, KEY, Journal(folder / "ledger")) as courier:
            yield workers, courier, far


@pytest.mark.parametrize(
    ("count", "ahead", "around"), [(100, 5.0, 1.2), pytest.param(2000, 20.0, 2.0, marks=pytest.mark.slow)]
)
async def test_an_email_is_either_canceled_or_sent(
    database_url: str, tmp_path: Path, count: int, ahead: float, around: float
) -> None:
    """DUR-08: all are due in the same second and canceled at random around it; exactly one side wins."""
    chance = random.Random(11)
    async with two_workers(database_url, tmp_path) as (_, courier, far):
        due = datetime.now(UTC) + timedelta(seconds=ahead)
        posted = [courier.post(["{token}@quay.example"], scheduled_at=due.isoformat()) for _ in range(count)]
        emails = [email for email in await asyncio.gather(*posted) if email]
        assert datetime.now(UTC) < due - timedelta(seconds=around), "the load took too long"

        async def cancel(email: str) -> str | None:
            at = due + timedelta(seconds=chance.uniform(-around, around))
            await asyncio.sleep((at - datetime.now(UTC)).total_seconds())
            status, answer = await courier.ask("POST", f"/emails/{email}/cancel")
            assert status in (200, 422), answer
            return email if status == 200 else None

        canceled = set(await asyncio.gather(*(cancel(email) for email in emails))) - {None}
        await settled(database_url, 60)
        async with connected(database_url) as conn:
            known = await states(conn)
            late = await conn.fetchval("SELECT max(at) FROM timeline WHERE kind = 'queued'")
            early = await conn.fetchval("SELECT min(at) FROM timeline WHERE kind = 'queued'")
            assert await open_work(conn) == 0
        tokens = {state.token for state in known if state.id in canceled}
        sent = [arrival.token for arrival in arrivals(far.journal)]
        print(
            f"\n{len(canceled)} canceled, {len(sent)} sent; released {early - due} to {late - due} after due"
        )
        assert tokens.isdisjoint(sent)
        assert len(tokens) + len(sent) == count == len(emails)
        assert len(set(sent)) == len(sent)
        assert {state.state for state in known if state.id in canceled} == {"canceled"}
        assert {state.state for state in known if state.id not in canceled} == {"delivered"}
        assert due <= early
        assert late < due + SOON
    await reconciled(database_url)


@pytest.mark.parametrize(
    ("keys", "clients", "kills"), [(30, 20, 2), pytest.param(200, 100, 20, marks=pytest.mark.slow)]
)
async def test_one_key_is_one_mail(
    database_url: str, tmp_path: Path, keys: int, clients: int, kills: int
) -> None:
    """DUR-06, API-05: many ask with the same keys at once, of two processes that die in between."""
    chance = random.Random(5)
    async with two_workers(database_url, tmp_path) as (workers, courier, far):
        tokens = [f"{TOKEN}shared-{number}" for number in range(keys)]

        async def ask() -> list[str | None]:
            wanted = chance.sample(tokens, keys)
            return [await courier.post_as(token, [f"{token}@quay.example"], key=token) for token in wanted]

        requests = [asyncio.create_task(ask()) for _ in range(clients)]
        for number in range(kills):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(workers.kill, place=number % 2)
            await asyncio.to_thread(workers.start, place=number % 2)
        answers = [email for found in await asyncio.gather(*requests) for email in found]
        await settled(database_url, 60)
        assert Counter(answers).total() == keys * clients
        assert len(set(answers)) == keys
        by_token = {
            (line["token"], line["id"])
            for line in lines_of(courier.journal.path)
            if line["kind"] == "accepted"
        }
        assert len(by_token) == keys
        async with connected(database_url) as conn:
            found = compare(acknowledged(courier.journal.path), arrivals(far.journal), await states(conn))
            assert await conn.fetchval("SELECT count(*) FROM emails") == keys
            assert await open_work(conn) == 0
        print(f"\n{found}; {courier.tally}")
        found.assert_sound(doubled=kills * 20)
    await reconciled(database_url)
