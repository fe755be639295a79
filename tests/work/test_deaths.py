"""Work whose processes die: by SIGKILL, again and again (DUR-13). A death is no fault of what was beside it,
and who owns what is given up is told."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.automation_rows import chain, step
from kit.http_client import http_client
from kit.manual_world import clock_of
from kit.process import KEY, WorkerProcesses, connected, first_team, reconciled, worker_processes
from kit.world import World, mail
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.work.jobs import Job, JobFinished, Jobs

pytestmark = pytest.mark.sweep

BROUGHT_FORWARD = (
    "UPDATE jobs SET due_at = now() WHERE owner IS NULL AND due_at > now() AND kind <> ALL ($1::text[])",
    "UPDATE automation_work SET due_at = now() WHERE owner IS NULL AND due_at > now()",
)
"""What waits five minutes, because two processes died, is due now."""


@asynccontextmanager
async def without_pauses(url: str) -> AsyncIterator[None]:
    """Nothing waits longer than a moment."""

    async def bring_forward() -> None:
        async with connected(url) as conn:
            periodic = await conn.fetch("SELECT kind FROM jobs WHERE team_id = $1", UUID(int=0))
            while True:
                await conn.execute(BROUGHT_FORWARD[0], [row["kind"] for row in periodic])
                await conn.execute(BROUGHT_FORWARD[1])
                await asyncio.sleep(0.05)

    task = asyncio.create_task(bring_forward())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def dies(workers: WorkerProcesses, fault: str, times: int) -> None:
    """The running process dies, and so do others, so many in all; another one goes on."""
    for left in reversed(range(times)):
        assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
        workers.start(fault if left else "")


async def value_of(url: str, query: str, wanted: Any) -> None:
    """Wait until the database says so."""
    async with asyncio.timeout(40), connected(url) as conn:
        while (found := await conn.fetchval(query)) != wanted:
            assert found is None or str(found) not in ("completed", "failed"), found
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("times", "status"), [(3, "completed"), (4, "failed")])
async def test_an_import_goes_on_after_three_deaths_and_fails_after_the_next(
    database_url: str, tmp_path: Path, times: int, status: str
) -> None:
    fault = "import.batch_written=kill@1"
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start(fault)
        async with (
            http_client("http://{}:{}".format(*workers.at), KEY) as client,
            without_pauses(database_url),
        ):
            file = {"file": ("people.csv", b"email\nada@quay.example\n")}
            import_id = (await client.post("/contacts/imports", files=file)).json()["id"]
            await dies(workers, fault, times)
            await value_of(database_url, "SELECT status FROM contact_imports", status)
            errors = (await client.get(f"/contacts/imports/{import_id}/errors")).json()["data"]
            assert [one["reason"] for one in errors] == (["internal_error"] if status == "failed" else [])
    await reconciled(database_url)


@pytest.mark.parametrize(("times", "status"), [(3, "completed"), (4, "failed")])
async def test_a_run_goes_on_after_three_deaths_and_fails_after_the_next(
    database_url: str, tmp_path: Path, times: int, status: str
) -> None:
    fault = "automations.written=kill@1"
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start(fault)
        async with (
            http_client("http://{}:{}".format(*workers.at), KEY) as client,
            without_pauses(database_url),
        ):
            graph = chain(
                step("start", "trigger", event_name="user.signed_up"),
                step("note", "contact_update", first_name="Ada"),
            )
            made = await client.post("/automations", json={"name": "A", "status": "enabled", **graph})
            assert made.status_code == 201, made.text
            await client.post("/events/send", json={"event": "user.signed_up", "email": "ada@quay.example"})
            await dies(workers, fault, times)
            await value_of(database_url, "SELECT status FROM automation_runs", status)
    await reconciled(database_url)


async def test_an_event_whose_processes_die_is_put_aside_and_the_next_one_is_told(
    database_url: str, tmp_path: Path
) -> None:
    fault = "events.told=kill@1"
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start(fault)
        async with (
            http_client("http://{}:{}".format(*workers.at), KEY) as client,
            without_pauses(database_url),
        ):
            graph = chain(
                step("start", "trigger", event_name="user.signed_up"),
                step("note", "contact_update", first_name={"var": "event.n"}),
            )
            await client.post("/automations", json={"name": "A", "status": "enabled", **graph})
            events = [
                {"event": "user.signed_up", "email": "ada@quay.example", "payload": {"n": n}} for n in "12"
            ]
            await client.post("/events/send", json=events)
            await dies(workers, fault, 4)
            await value_of(database_url, "SELECT first_name FROM contacts", "2")
            async with connected(database_url) as conn:
                assert await conn.fetchval("SELECT reason FROM events") == "process_died"


async def test_an_email_whose_file_ends_its_processes_fails(database_url: str, tmp_path: Path) -> None:
    asked = asyncio.Queue[None]()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.put_nowait(None)

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await first_team(database_url)
    with worker_processes(database_url, tmp_path, allow_private="127.0.0.0/8") as workers:
        workers.start()
        async with (
            http_client("http://{}:{}".format(*workers.at), KEY) as client,
            without_pauses(database_url),
        ):
            file = {"filename": "a.pdf", "path": f"http://127.0.0.1:{port}/a.pdf"}
            sent = await client.post("/emails", json=mail(attachments=[file]))
            assert sent.status_code == 200, sent.text
            for _ in range(4):
                async with asyncio.timeout(40):
                    await asked.get()
                await asyncio.to_thread(workers.kill)
                workers.start()
            await value_of(database_url, "SELECT last_event FROM emails", "failed")
            assert (await client.get(f"/emails/{sent.json()['id']}")).json()["last_event"] == "failed"
    server.close()
    await reconciled(database_url)


async def test_jobs_that_were_beside_one_that_ends_processes_are_not_given_up(pillarbox: World) -> None:
    """DUR-13. Ten jobs begin together; with one of them each process dies. It is alone later, others end."""
    pool, clock, done = pillarbox.pool, clock_of(pillarbox), set[UUID]()
    deadly = UUID(int=3)
    beside = asyncio.Event()

    async def work(job: Job) -> JobFinished:
        if job.subject_id == deadly:
            beside.set()
            await asyncio.Event().wait()
        await beside.wait()
        await asyncio.sleep(0)
        done.add(job.subject_id)
        return JobFinished()

    ids = pillarbox.app.need(Ids)
    insert = (
        "INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)"
        " VALUES ($1, $2, 'x', $3, $4, $4)"
    )
    for number in range(10):
        await pool.execute(insert, UUID(int=9), ids.new(), UUID(int=number), clock.now())
    together = []
    for number in range(6):
        process = Jobs(pool, clock, UUID(int=500 + number), {"x": work})
        beside.clear()
        for _ in range(3):
            clock.advance(200)
            together.append(await process.look())
            if process._tasks:
                # The others end; the deadly one is begun and waits.
                await asyncio.wait(process._tasks, timeout=0.3)
        for task in list(process._tasks):  # the process dies
            task.cancel()
    assert together[0] == 10
    left = await pool.fetch("SELECT subject_id, begun FROM jobs WHERE kind = 'x' AND begun > 2")
    assert {row["subject_id"] for row in left} == {deadly}
