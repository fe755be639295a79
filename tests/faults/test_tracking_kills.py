"""A server that dies while links are followed: what was answered is there, once (emails.md 8)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg
import httpx
import pytest

from kit.http_client import http_client
from kit.process import KEY, connected, served, verified
from kit.world import mail
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, link_token
from pillarbox.kernel.settings.table import KEY_RING_FILE
from repository.running import Watched, children_of

pytestmark = pytest.mark.sweep

READERS: Final = 16
EMAILS: Final = 40
ANSWERS: Final = 600
CLICKS: Final = """
    SELECT email_id, count(*) AS clicks FROM timeline WHERE kind = 'clicked' GROUP BY email_id
"""
COUNTED: Final = """
    SELECT (SELECT count(*) FROM timeline WHERE kind = 'clicked') AS events,
           (SELECT coalesce(sum(clicked), 0) FROM metric_increments)
           + (SELECT coalesce(sum(clicked), 0) FROM rollups WHERE level = 1) AS counted
"""


async def links_of(url: str, data: Path, emails: list[str]) -> dict[str, str]:
    """A path for each email."""
    pool = await open_pool(url, limit=1)
    try:
        ring = KeyRing.parse((data / KEY_RING_FILE).read_text())
        key = await LinkKeys(pool, SystemClock(), ring).maker(datetime.now(UTC))
        team = await pool.fetchval("SELECT id FROM teams")
    finally:
        await pool.close()
    tokens = [
        link_token(TrackedRecipient(team, UUID(one), 0), 0, "https://shop.example/", key) for one in emails
    ]
    return {f"/t/c/{token}": email for token, email in zip(tokens, emails, strict=True)}


async def delivered(conn: asyncpg.Connection, count: int) -> None:
    async with asyncio.timeout(60):
        while await conn.fetchval("SELECT count(*) FROM emails WHERE last_event = 'delivered'") < count:
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_what_was_answered_is_there_after_a_crash(tmp_path: Path) -> None:
    data = tmp_path / "data"
    answered: Counter[str] = Counter()
    enough = asyncio.Event()
    with served(data) as running:
        host, port = running.ready()
        base = f"http://{host}:{port}"
        async with http_client(base, KEY) as client:
            batch = await client.post("/emails/batch", json=[mail() for _ in range(EMAILS)])
            assert batch.status_code == 200, batch.text
            emails = [one["id"] for one in batch.json()["data"]]
        async with connected(running.database_url) as conn:
            await delivered(conn, EMAILS)
        links = await links_of(running.database_url, data, emails)

        async def follow(client: httpx.AsyncClient, first: int) -> None:
            paths = list(links)
            for number in range(first, 1_000_000):
                path = paths[number % EMAILS]
                try:
                    answer = await client.get(path)
                except httpx.HTTPError:
                    return
                assert answer.status_code == 302
                answered[links[path]] += 1
                if answered.total() >= ANSWERS:
                    enough.set()

        async with http_client(base) as client:
            readers = [asyncio.create_task(follow(client, number)) for number in range(READERS)]
            await enough.wait()
            family = Watched(children_of(running.process.pid))
            # The workers first: without a database they would go on to answer, and say that events are lost.
            for worker in running.workers():
                os.kill(worker, signal.SIGKILL)
            running.process.kill()
            running.process.wait()
            family.all_ended()
            await asyncio.gather(*readers)
    with served(data) as running:
        async with connected(running.database_url) as conn:
            written = {str(row["email_id"]): row["clicks"] for row in await conn.fetch(CLICKS)}
            counted = await conn.fetchrow(COUNTED)
        assert answered.total() >= ANSWERS
        assert {email for email in emails if written.get(email, 0) < answered[email]} == set()
        # Each reader had one request on its way.
        assert sum(written.values()) <= answered.total() + READERS
        assert counted["events"] == counted["counted"]
    verified(data)
