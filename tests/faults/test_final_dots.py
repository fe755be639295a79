"""Only what was offered the final dot counts as uncertain after a death (architecture 6.2)."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from broadcasts.test_deaths import AUDIENCE
from kit.http_client import http_client
from kit.ledger import arrivals
from kit.process import KEY, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import remote_servers
from pillarbox.delivery.queue import final_dots
from pillarbox.delivery.queue.final_dots import SLOTS, FinalDots

pytestmark = pytest.mark.sweep

CONNECTIONS = 100
"""Sessions that a process opens to a relay at most."""

MEMBERS = 3000
UNCERTAIN = """
    SELECT DISTINCT r.address
      FROM timeline t
      JOIN recipients r ON r.team_id = t.team_id AND r.email_id = t.email_id AND r.position = t.position
     WHERE (t.detail ->> 'uncertain')::boolean
"""
Key = tuple[UUID, UUID, int]


def key() -> Key:
    return uuid4(), uuid4(), 3


def test_the_file_has_what_was_offered_and_not_settled(tmp_path: Path) -> None:
    process = uuid4()
    dots, kept, done = FinalDots(tmp_path, process), key(), key()
    dots.open()
    for one in (kept, done, kept):
        dots.note(one)
    dots.forget(done)
    dots.forget(key())
    assert final_dots.read(tmp_path, process) == {kept}
    dots.close()
    assert final_dots.read(tmp_path, process) == {kept}, "its outcome is not known"
    final_dots.remove(tmp_path, process)
    assert final_dots.read(tmp_path, process) is None


def test_a_process_that_ends_in_order_leaves_no_file(tmp_path: Path) -> None:
    dots = FinalDots(tmp_path, uuid4())
    dots.open()
    dots.note(one := key())
    dots.forget(one)
    dots.close()
    assert not list(tmp_path.iterdir())


def test_what_does_not_fit_makes_all_uncertain(tmp_path: Path) -> None:
    process = uuid4()
    dots = FinalDots(tmp_path, process)
    dots.open()
    for _ in range(SLOTS + 1):
        dots.note(key())
    assert final_dots.read(tmp_path, process) is None


def test_a_file_that_is_cut_says_nothing(tmp_path: Path) -> None:
    process = uuid4()
    dots = FinalDots(tmp_path, process)
    dots.open()
    [path] = tmp_path.iterdir()
    os.truncate(path, 100)
    assert final_dots.read(tmp_path, process) is None


@pytest.mark.parametrize("ends", ["go on", "are canceled"])
async def test_a_death_among_many_copies_marks_those_alone_that_may_have_gone_out(
    database_url: str, tmp_path: Path, ends: str
) -> None:
    """OUT-08: no more than there are connections, and no double without a mark; canceled ones say so too."""
    await first_team(database_url)
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        workers.start()
        async with (
            http_client("http://{}:{}".format(*workers.at), KEY) as client,
            connected(database_url) as conn,
        ):
            segment_id = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
            await conn.execute(AUDIENCE, UUID(segment_id), MEMBERS)
            wanted = {"from": "a@harbor.example", "subject": "Tides", "text": "High", "send": True}
            broadcast = await client.post("/broadcasts", json={**wanted, "segment_id": segment_id})
            async with asyncio.timeout(60):
                while len(list(arrivals(far.journal))) < MEMBERS // 6:
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(workers.kill)
            held = await conn.fetchval("SELECT count(*) FROM deliveries WHERE owner IS NOT NULL")
            taken = {one.recipient for one in arrivals(far.journal)}
            open_then = {
                row["address"]
                for row in await conn.fetch(
                    "SELECT address FROM recipients WHERE state = ANY ($1)", ["queued", "sent"]
                )
            }
        workers.start()
        if ends == "are canceled":
            async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
                answer = await client.post(f"/broadcasts/{broadcast.json()['id']}/cancel")
                assert answer.status_code == 200, answer.text
        await settled(database_url, 120)
        async with connected(database_url) as conn:
            marked = {row["address"] for row in await conn.fetch(UNCERTAIN)}
        doubled = {
            who for who, times in Counter(one.recipient for one in arrivals(far.journal)).items() if times > 1
        }
        in_doubt = taken & open_then
        print(f"\nheld {held}, marked {len(marked)}, in doubt {len(in_doubt)}, twice {len(doubled)}")
        assert doubled <= marked
        assert in_doubt <= marked
        assert len(marked) <= CONNECTIONS < held
    await reconciled(database_url)
