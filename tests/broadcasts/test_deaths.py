"""A process that dies, or loses its database, while the recipients of a broadcast are written."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from uuid import UUID

from kit.http_client import http_client
from kit.process import KEY, connected, first_team, reconciled, worker_processes

MEMBERS = 200

AUDIENCE = """
    WITH member AS (
        INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
        SELECT t.id, gen_random_uuid(), 'c' || n || '@quay.example', false, now(), now()
          FROM teams t, generate_series(1, $2) AS n
        RETURNING team_id, id
    )
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT team_id, $1, id, now() FROM member
"""


async def test_a_death_leaves_no_recipient_and_the_next_process_writes_each_once(
    database_url: str, tmp_path: Path
) -> None:
    await first_team(database_url)
    with worker_processes(database_url, tmp_path, route="capture") as workers:
        workers.start("broadcast.snapshot=kill")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            segment_id = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
            async with connected(database_url) as conn:
                await conn.execute(AUDIENCE, UUID(segment_id), MEMBERS)
            wanted = {"from": "a@harbor.example", "subject": "Tides", "text": "High", "send": True}
            answer = await client.post("/broadcasts", json={**wanted, "segment_id": segment_id})
            assert answer.status_code == 201, answer.text
        assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
        async with connected(database_url) as conn:
            assert await conn.fetchval("SELECT count(*) FROM broadcast_recipients") == 0
            assert await conn.fetchval("SELECT status FROM broadcasts") == "queued"
        workers.start()
        async with asyncio.timeout(60), connected(database_url) as conn:
            while await conn.fetchval("SELECT status FROM broadcasts") != "sent":
                await asyncio.sleep(0.05)
            assert await conn.fetchval("SELECT count(*) FROM broadcast_recipients") == MEMBERS
            assert await conn.fetchval("SELECT recipients FROM broadcasts") == MEMBERS
    await reconciled(database_url)
