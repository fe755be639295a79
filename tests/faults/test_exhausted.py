"""What runs out, and comes back: the disk, the blob folder, descriptors, the database.

Whoever asks meanwhile is refused with 503 and a time to come again, before anything acknowledged is lost;
what was there already can be read, and service returns by itself (DUR-10).
"""

from __future__ import annotations

import asyncio
import base64
import os
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kit.commands import command
from kit.database_link import database_link
from kit.disk import MIB, small_disk
from kit.http_client import http_client
from kit.ledger import Comparison, Journal, acknowledged, arrivals, compare, open_work, states, uncertain
from kit.load import LoadClient, to_each
from kit.manual_world import manual_world
from kit.process import KEY, connected, ended, first_team, reconciled, served, settled, worker_processes
from kit.remote_servers import RemoteServers, remote_servers
from kit.world import Team, mail
from pillarbox.mail.smtp.client import SmtpConnection
from pillarbox.mail.smtp.opening import ConnectFailed

pytestmark = pytest.mark.sweep

PATIENCE = 30.0
CONNECTIONS = 20
PROCESSES = 2
DISK_MIB = 400
DESTINATIONS = [f"quay{number}.example" for number in range(5)]


def refused(answer: httpx.Response) -> bool:
    """Whether the answer is the refusal that asks a client to try again; any other failure is an error."""
    if answer.status_code == 200:
        return False
    assert answer.status_code == 503, answer.text
    assert answer.json()["name"] == "service_unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    return True


async def until(wanted: Callable[[httpx.Response], bool], client: httpx.AsyncClient) -> float:
    """Post mails until an answer is as wanted; the seconds that it took."""
    started = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while not wanted(await client.post("/emails", json=mail(subject=f"Probe {uuid4()}"))):
            await asyncio.sleep(0.1)
    return time.monotonic() - started


async def compared(url: str, ledger: Path, far: RemoteServers, seconds: float = PATIENCE) -> Comparison:
    """What the three witnesses say once nothing is open any more."""
    await settled(url, seconds)
    async with connected(url) as conn:
        found = compare(acknowledged(ledger), arrivals(far.journal), await states(conn))
        assert await open_work(conn) == 0
        assert found.doubled.keys() <= await uncertain(conn), "a second delivery that nobody counted"
    await reconciled(url)
    print(f"\n{found}")
    return found


def enclosed(size: int) -> dict[str, Any]:
    """An attachment of so many bytes."""
    return {"filename": "chart.bin", "content": base64.b64encode(bytes(size)).decode()}


# The disk -------------------------------------------------------------------------------------------


async def test_little_room_refuses_new_mail_and_harms_nothing_else(tmp_path: Path) -> None:
    """DUR-10: what is there is sent, read and canceled; with space again new mail is taken."""
    with (
        small_disk(tmp_path / "disk", DISK_MIB) as disk,
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
    ):
        route = f"relay:smtp://127.0.0.1:{far.port}"
        with served(disk.folder / "data", processes="1", route=route) as running:
            host, port = running.ready()
            async with (
                http_client(f"http://{host}:{port}", KEY) as client,
                LoadClient((host, port), KEY, Journal(tmp_path / "ledger")) as courier,
            ):
                later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
                waiting = await courier.post(["{token}@quay.example"], scheduled_at=later)
                sent = await courier.post_many(40, 200, to_each(DESTINATIONS))
                disk.fill(leaving=40 * MIB)
                await until(refused, client)
                for _ in range(5):
                    assert refused(await client.post("/emails", json=mail()))
                assert refused(await client.post("/emails/batch", json=[mail(), mail()]))
                assert refused(await client.get("/health"))
                assert (await client.get(f"/emails/{sent[0]}")).status_code == 200
                assert (await client.post(f"/emails/{waiting}/cancel")).status_code == 200
                disk.fill()
                # The database cannot even export a snapshot.
                words = (
                    "backup",
                    str(tmp_path / "target"),
                    "--without-keys",
                    "--data",
                    str(disk.folder / "data"),
                )
                done = await asyncio.to_thread(command, *words)
                assert done.returncode == 1
                assert done.stderr.startswith("pillarbox: The database cannot be used: could not write")
                assert done.stderr.count("\n") == 1
                disk.relieve()
                assert await until(lambda answer: not refused(answer), client) < 5
                assert (await client.get("/health")).status_code == 200
            found = await compared(running.database_url, tmp_path / "ledger", far)
            found.assert_sound(strays=50)
            assert found.accepted == 41


@pytest.mark.parametrize(("mails", "seconds"), [(250, 1.0), pytest.param(6000, 30.0, marks=pytest.mark.slow)])
async def test_a_disk_that_is_full_to_the_last_byte_loses_nothing(
    tmp_path: Path, mails: int, seconds: float
) -> None:
    """DUR-10, DUR-11: whatever the database does, it comes back, and what was acknowledged is there."""
    with (
        small_disk(tmp_path / "disk", DISK_MIB) as disk,
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
    ):
        route = f"relay:smtp://127.0.0.1:{far.port}"
        with served(disk.folder / "data", processes=str(PROCESSES), route=route) as running:
            async with LoadClient(running.ready(), KEY, Journal(tmp_path / "ledger")) as courier:
                load = asyncio.create_task(courier.post_many(mails, 150, to_each(DESTINATIONS)))
                await asyncio.sleep(0.5)
                disk.fill()
                while not courier.tally.retried:
                    disk.fill()
                    await asyncio.sleep(0.05)
                await asyncio.sleep(seconds)
                assert not load.done()
                disk.relieve()
                await load
            print(courier.tally)
            found = await compared(running.database_url, tmp_path / "ledger", far, 90)
            found.assert_sound()
            assert found.accepted == mails


# Blobs ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def with_blobs_at(database_url: str, folder: Path, blobs: Path) -> AsyncIterator[Team]:
    """A team whose large attachments go to that folder."""
    async with manual_world(database_url, folder, blob_url=f"file:{blobs}") as pillarbox:
        yield await pillarbox.team()


async def test_blobs_that_cannot_be_written_refuse_what_needs_them(database_url: str, tmp_path: Path) -> None:
    """DUR-10, DUR-11: a read-only folder; mails without large attachments are taken all the same."""
    large = mail(attachments=[enclosed(300 * 1024)])
    with small_disk(tmp_path / "disk", 64) as disk:
        async with with_blobs_at(database_url, tmp_path, disk.folder / "blobs") as team:
            assert not refused(await team.post("/emails", large))
            disk.set_read_only(True)
            assert refused(await team.post("/emails", large))
            assert not refused(await team.post("/emails", mail()))
            disk.set_read_only(False)
            assert not refused(await team.post("/emails", large))
            assert await team.db.value("SELECT count(*) FROM emails WHERE team_id = $1") == 3


async def test_a_full_blob_folder_keeps_no_halves(database_url: str, tmp_path: Path) -> None:
    """DUR-10: 16 MB; the attachment that does not fit leaves nothing behind, a smaller one still fits."""
    with small_disk(tmp_path / "disk", 16) as disk:
        async with with_blobs_at(database_url, tmp_path, disk.folder / "blobs") as team:
            before = disk.free
            assert refused(await team.post("/emails", mail(attachments=[enclosed(20 * MIB)])))
            assert before - disk.free < MIB
            assert not refused(await team.post("/emails", mail(attachments=[enclosed(5 * MIB)])))
            assert await team.db.value("SELECT count(*) FROM emails WHERE team_id = $1") == 1


# Descriptors ----------------------------------------------------------------------------------------


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def test_a_process_without_free_descriptors_loses_no_mail(database_url: str, tmp_path: Path) -> None:
    """DUR-10: idle clients hold all that the process may open; its mail waits and no recipient bounces."""
    await first_team(database_url)
    large = {"attachments": [enclosed(300 * 1024)]}
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
        ExitStack() as clients,
    ):
        pid = await asyncio.to_thread(workers.start)
        host, port = workers.at
        async with (
            http_client(f"http://{host}:{port}", KEY, timeout=10) as client,
            LoadClient(workers.at, KEY, Journal(tmp_path / "ledger")) as courier,
        ):
            await courier.post_many(20, 200, to_each(DESTINATIONS))
            limit = descriptors_of(pid) + 8
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
            for _ in range(64):
                clients.enter_context(socket.create_connection(workers.at))
            while descriptors_of(pid) < limit:
                await asyncio.sleep(0.02)
            load = asyncio.create_task(courier.post_many(60, 100, to_each(DESTINATIONS), **large))
            await asyncio.sleep(1.5)
            clients.close()
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
            await load
            assert (await client.get("/health")).status_code == 200
        print(courier.tally)
        await ended(database_url, 2 * PATIENCE, hurries=1000)
        found = await compared(database_url, tmp_path / "ledger", far)
        found.assert_sound()
        assert (found.accepted, found.arrived) == (80, 80)
        async with connected(database_url) as conn:
            replies = await conn.fetch("SELECT detail FROM timeline WHERE detail::text LIKE '%open files%'")
        assert all("this machine" in row["detail"] for row in replies), replies[0]


async def test_a_session_without_a_descriptor_is_no_fault_of_the_host() -> None:
    """OUT-11: nothing is learned about a server to which this process can open no connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        failed = await SmtpConnection.open(
            ("127.0.0.1", 9), server_name="localhost", hello="mx.harbor.example"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert isinstance(failed, ConnectFailed)
    assert failed.is_ours
    assert (failed.reply.enhanced, failed.reply.text) == (
        "4.3.0",
        "this machine could open no connection: Too many open files",
    )


# The database ---------------------------------------------------------------------------------------


async def test_without_its_database_a_process_refuses(database_url: str, tmp_path: Path) -> None:
    """DUR-10: 503 with Retry-After on every route, also for a key that is not cached."""
    await first_team(database_url)
    async with database_link(database_url) as wire:
        with (
            remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far,
            worker_processes(wire.url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
        ):
            await asyncio.to_thread(workers.start)
            host, port = workers.at
            stranger = KEY[:-1] + "y"
            async with (
                http_client(f"http://{host}:{port}", KEY) as client,
                http_client(f"http://{host}:{port}", stranger) as other,
            ):
                kept = (await client.post("/emails", json=mail())).json()["id"]
                wire.cut()
                asked = [
                    client.post("/emails", json=mail()),
                    client.post("/emails", json=mail(), headers={"idempotency-key": "berth 12"}),
                    client.post("/emails/batch", json=[mail()]),
                    client.get(f"/emails/{kept}"),
                    client.get("/emails"),
                    client.get("/health"),
                    other.get("/emails"),
                ]
                for answer in await asyncio.gather(*asked):
                    assert refused(answer)
                await wire.open()
                assert await until(lambda answer: not refused(answer), client) < 5
                assert (await client.get(f"/emails/{kept}")).status_code == 200
                assert (await other.get("/emails")).status_code == 403
            await settled(database_url, PATIENCE)
            assert len(arrivals(far.journal)) == 2
    await reconciled(database_url)
