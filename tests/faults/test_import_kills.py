"""Processes that die while a file of contacts is imported: every row is applied and counted once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.http_client import http_client
from kit.process import KEY, connected, first_team, reconciled, served, verified, worker_processes
from kit.world import mail
from pillarbox.contacts.imports.speed import FEW_ROWS
from pillarbox.kernel.work.claim_queries import LEASE

pytestmark = pytest.mark.sweep

SMALL, LARGE = 27_500, 200_000
"""Rows: in batches of 4,000, of which the last is not full."""

TEN = [
    f"import.batch_{'written' if number % 2 else 'committed'}=kill@{1 + number % 4}" for number in range(10)
]
KILLS = [
    pytest.param(["import.batch_written=kill@2", "import.batch_committed=kill@1"], id="twice"),
    pytest.param(TEN, marks=pytest.mark.slow, id="ten times"),
]


def people(rows: int) -> Iterator[str]:
    """Every tenth row is one that fails, every tenth an address that was there before."""
    yield "email,first_name\n"
    for number in range(rows):
        if number % 10 == 3:
            yield "no address,\n"
        else:
            yield f"reader.{number - (number % 10 == 7)}@quay.example,Reader {number}\n"


async def posted(client: httpx.AsyncClient, rows: int) -> str:
    file = ("people.csv", "".join(people(rows)).encode())
    answer = await client.post("/contacts/imports", files={"file": file})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def ended(url: str, import_id: str) -> dict[str, Any]:
    """The import when it has ended, by the database."""
    async with asyncio.timeout(LEASE.total_seconds() - 20), connected(url) as conn:
        one = "SELECT * FROM contact_imports WHERE id = $1::text::uuid"
        while (found := await conn.fetchrow(one, import_id))["status"] not in ("completed", "failed"):
            await asyncio.sleep(0.05)
    return dict(found)


async def row_of(url: str, import_id: str) -> int:
    """The rows of the file that are done."""
    query = "SELECT (checkpoint->>'row')::int FROM contact_imports WHERE id = $1::text::uuid"
    async with connected(url) as conn:
        return int(await conn.fetchval(query, import_id))


async def held_by_the_dead(url: str) -> bool:
    """Whether the lease of the import still has most of its time."""
    query = "SELECT leased_until > now() + interval '20 seconds' FROM jobs WHERE kind = 'contacts.import'"
    async with connected(url) as conn:
        return bool(await conn.fetchval(query))


async def is_right(url: str, import_id: str, rows: int) -> None:
    """Counts and contacts are those of a file of so many rows that was imported once. `ended` waits for less
    than the lease of a process that died."""
    found = await ended(url, import_id)
    tenth = rows // 10
    assert found["status"] == "completed", found["reason"]
    assert (found["created"], found["updated"], found["failed"]) == (8 * tenth, tenth, tenth)
    assert json.loads(found["checkpoint"])["row"] == rows
    async with connected(url) as conn:
        assert await conn.fetchval("SELECT count(*) FROM contacts") == 8 * tenth
        errors = await conn.fetch("SELECT row_number FROM contact_import_errors ORDER BY id")
        assert [row[0] for row in errors] == [1 + 3 + 10 * number for number in range(min(1000, tenth))]
        names = "SELECT count(*) FROM contacts WHERE first_name = 'Reader ' || (split_part(address, '@', 1))"
        assert await conn.fetchval(names) == 0
        job = "SELECT count(*) FROM jobs WHERE kind = 'contacts.import'"
        async with asyncio.timeout(30):
            while await conn.fetchval(job):
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("kills", KILLS)
async def test_a_worker_that_dies_in_the_middle_of_a_file(
    database_url: str, tmp_path: Path, kills: list[str]
) -> None:
    """CSV-02, DUR-03: before a batch is committed, and behind it; more often in a row than another job may
    end its process. Nobody waits for a lease: the next process sees that its holder is dead."""
    rows = SMALL if len(kills) < 10 else LARGE
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start(kills[0])
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            import_id = await posted(client, rows)
            for fault in [*kills[1:], ""]:
                assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
                assert await held_by_the_dead(database_url)
                workers.start(fault)
            await is_right(database_url, import_id, rows)
    await reconciled(database_url)


async def test_a_worker_that_dies_while_an_import_gives_way_to_mail(
    database_url: str, tmp_path: Path
) -> None:
    """DUR-03. The batches are small, one after it is large where the mail has ended: each row is applied and
    counted once."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start("import.batch_written=kill@3")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            assert (await client.post("/emails", json=mail())).status_code == 200
            import_id = await posted(client, SMALL)
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            assert await row_of(database_url, import_id) == 2 * FEW_ROWS
            workers.start("import.batch_committed=kill@2")
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            workers.start()
            await is_right(database_url, import_id, SMALL)
    await reconciled(database_url)


async def test_a_worker_that_dies_while_an_import_is_undone(database_url: str, tmp_path: Path) -> None:
    """CSV-02, DUR-03: before a batch of removed contacts is committed, and behind it: each is removed and
    counted once, and one that somebody changed stays."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start("import.undo_written=kill@2")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            import_id = await posted(client, 2_000)
            await ended(database_url, import_id)
            changed = await client.patch("/contacts/reader.0@quay.example", json={"first_name": "Other"})
            assert changed.status_code == 200, changed.text
            assert (await client.post(f"/contacts/imports/{import_id}/undo")).status_code == 202
            for fault in ("import.undo_committed=kill@1", ""):
                assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
                workers.start(fault)
            path = f"/contacts/imports/{import_id}/undo"
            async with asyncio.timeout(30):
                while (state := (await client.get(path)).json())["completed_at"] is None:
                    await asyncio.sleep(0.05)
            assert (state["removed"], state["kept"]) == (8 * 200 - 1, 1)
            assert [one["email"] for one in (await client.get("/contacts")).json()["data"]] == [
                "reader.0@quay.example"
            ]
    await reconciled(database_url)


async def test_a_worker_that_dies_before_an_import_is_made(database_url: str, tmp_path: Path) -> None:
    """CSV-02: the file is there, and no row names it: no import, and no answer. `verify` collects such
    files."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start("import.stored=kill")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            with pytest.raises(httpx.TransportError):
                await posted(client, 10)
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            workers.start()
            assert (await client.get("/contacts/imports")).json()["data"] == []
    await reconciled(database_url)


async def test_the_process_that_reads_the_file_dies(database_url: str, tmp_path: Path) -> None:
    """The worker starts another one and goes on."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        worker = workers.start("import.batch_committed=delay:0.3@1,import.batch_committed=delay:0.3@3")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            import_id = await posted(client, SMALL)
            killed: set[int] = set()
            async with asyncio.timeout(60):
                while len(killed) < 2:
                    for pid in readers_of(worker) - killed:
                        killed.add(pid)
                        os.kill(pid, signal.SIGKILL)
                    await asyncio.sleep(0.05)
            await is_right(database_url, import_id, SMALL)
        assert readers_of(worker) == set()
    await reconciled(database_url)


def readers_of(worker: int) -> set[int]:
    """The processes below a worker that read a file and have begun with it."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == worker and b"imports.reader_process" in line:
                found.add(int(entry.name))
    return found


@pytest.mark.parametrize("rows", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
async def test_a_server_that_dies_in_the_middle_of_a_file(tmp_path: Path, rows: int) -> None:
    """DUR-01, DUR-03: all of it at once, with its database; the next start goes on. Nothing of it is left."""
    fault = "import.batch_committed=delay:0.5%1"
    with served(tmp_path, fault=fault, processes="1") as running:
        async with http_client("http://{}:{}".format(*running.ready()), KEY) as client:
            import_id = await posted(client, rows)
            path = f"/contacts/imports/{import_id}"
            while not (await client.get(path)).json()["counts"]["total"]:
                await asyncio.sleep(0.02)
        readers = {pid for worker in running.workers() for pid in readers_of(worker)}
        family = [running.process.pid, running.postmaster(), *running.workers()]
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        running.process.wait()
        async with asyncio.timeout(30):
            while any(Path(f"/proc/{pid}").exists() for pid in readers):
                await asyncio.sleep(0.05)
    with served(tmp_path, processes="1") as again:
        await is_right(again.database_url, import_id, rows)
    verified(tmp_path)
