"""A hundred thousand members at once, read from a process of its own (segments.md section 4, point 7)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from kit.audience import JOIN, MANY_CONTACTS
from kit.http_client import http_client
from kit.memory import resident
from kit.process import KEY, connected, first_team, worker_processes
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids

MEMBERS = 100_000
MOST_GROWTH = 12_000_000
"""Octets; the answer has more than twenty million."""


async def test_a_hundred_thousand_members_are_listed_and_the_memory_does_not_grow(
    database_url: str, tmp_path: Path
) -> None:
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        pid = workers.start()
        url = f"http://{workers.at[0]}:{workers.at[1]}"
        async with http_client(url, KEY) as client, connected(database_url) as conn:
            segment = UUID((await client.post("/segments", json={"name": "Everybody"})).json()["id"])
            path = f"/segments/{segment}/contacts"
            team_id = await conn.fetchval("SELECT team_id FROM segments")
            made = Ids(SystemClock()).several(MEMBERS)
            now = datetime.now(UTC)
            await conn.execute(MANY_CONTACTS, team_id, made, now)
            await conn.execute(JOIN, team_id, segment, made[: MEMBERS // 20], now)
            assert len((await client.get(path)).json()["data"]) == MEMBERS // 20
            await conn.execute(JOIN, team_id, segment, made[MEMBERS // 20 :], now)
            before = most = resident(pid)
            pieces: list[bytes] = []
            async with client.stream("GET", path) as answer:
                assert "content-length" not in answer.headers
                async for piece in answer.aiter_bytes():
                    if len(pieces) % 20 == 0:
                        most = max(most, resident(pid))
                    pieces.append(piece)
            listed = json.loads(b"".join(pieces))
            assert most - before < MOST_GROWTH
            assert sum(map(len, pieces)) > 15_000_000
            assert listed["has_more"] is False
            assert [item["id"] for item in listed["data"]] == [str(one) for one in reversed(made)]
