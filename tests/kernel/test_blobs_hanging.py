"""A disk or an object store that hangs: an error in bounded time, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from obstore.store import S3Store

from kit.clock import ManualClock
from pillarbox.kernel.http.failures import problem_for
from pillarbox.kernel.storage import backend
from pillarbox.kernel.storage.blobs import BlobsSilent, BlobStore, Bucket, FolderBackend
from pillarbox.kernel.storage.disk_space import DiskFull, DiskSpace, Space
from pillarbox.kernel.storage.folder import THREADS

SECONDS = 0.2
SLACK = 3.0
PLENTY = Space(100 << 30, 50 << 30)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "SECONDS", SECONDS)


class HangingDisk:
    """A disk whose syncs end when it is released."""

    def __init__(self, root: Path) -> None:
        self.works = threading.Event()
        self.works.set()
        self.store = BlobStore(FolderBackend(root, sync=self._sync))

    def _sync(self, file: int) -> None:
        self.works.wait()
        os.fsync(file)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[HangingDisk]:
    made = HangingDisk(tmp_path / "blobs")
    yield made
    made.works.set()


async def silent_in_time(work: object) -> None:
    began = time.monotonic()
    with pytest.raises(BlobsSilent):
        await work  # type: ignore[misc]
    assert time.monotonic() - began < SECONDS + SLACK


async def test_a_disk_that_hangs_keeps_nobody_waiting_and_works_again(disk: HangingDisk) -> None:
    await disk.store.put("a/before", b"1")
    disk.works.clear()
    await asyncio.gather(*[silent_in_time(disk.store.put(f"a/{n}", b"2")) for n in range(THREADS)])
    # All its threads hang: nobody waits with them, nor in the threads that everybody uses.
    began = time.monotonic()
    with pytest.raises(BlobsSilent):
        await disk.store.put("a/late", b"3")
    assert time.monotonic() - began < SECONDS
    assert await asyncio.wait_for(asyncio.to_thread(lambda: 4), SLACK) == 4
    disk.works.set()
    async with asyncio.timeout(10):
        while True:
            try:
                await disk.store.put("a/after", b"5")
                break
            except BlobsSilent:
                await asyncio.sleep(0.01)
    assert await disk.store.get("a/before") == b"1"
    assert await disk.store.get("a/after") == b"5"
    await disk.store.close()


async def test_what_is_written_in_parts_is_tidied_up_once_the_disk_lets_go(
    disk: HangingDisk, tmp_path: Path
) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"1"

    await disk.store.put("a/before", b"1")
    disk.works.clear()
    await silent_in_time(disk.store.put("a/parts", parts()))
    disk.works.set()
    async with asyncio.timeout(10):
        while list(tmp_path.rglob(".partial-*")):
            await asyncio.sleep(0.01)


async def test_a_blob_that_cannot_be_opened_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes into: opening it hangs, as on a server that is gone."""
    folder = FolderBackend(tmp_path)
    path = folder.path("a/b")
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    try:
        await silent_in_time(BlobStore(folder).get("a/b"))
        await silent_in_time(anext(BlobStore(folder).stream("a/b")))
    finally:
        # A writer lets both of them go on.
        os.close(os.open(path, os.O_RDWR))
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        await asyncio.sleep(0.05)
        os.close(writer)
    await folder.close()


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Takes connections and says nothing."""
    ends: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: ends.append(writer), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for end in ends:
            end.transport.abort()


def bucket_at(port: int) -> BlobStore:
    return BlobStore(
        Bucket(
            S3Store(
                "berths",
                endpoint=f"http://127.0.0.1:{port}",
                access_key_id="a",
                secret_access_key="b",
                region="us-east-1",
                client_options={"allow_http": True},
            )
        )
    )


async def test_an_object_store_that_says_nothing_is_not_waited_for() -> None:
    async with silent_server() as port:
        store = bucket_at(port)
        await silent_in_time(store.put("a/b", b"1"))
        await silent_in_time(store.get("a/b"))
        await silent_in_time(store.delete("a/b"))


async def test_an_upload_in_parts_has_a_time_for_each_and_its_source_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend, "SLOWEST", 1 << 40)
    monkeypatch.setattr(backend, "SECONDS", SECONDS)

    async def slow() -> AsyncIterator[bytes]:
        for _ in range(8):
            await asyncio.sleep(SECONDS / 2)
            yield b"x" * (1 << 20)

    async with silent_server() as port:
        with pytest.raises(BlobsSilent):
            await bucket_at(port).put("a/b", slow())


def test_it_is_a_503_that_says_so() -> None:
    problem = problem_for(BlobsSilent(), "id")
    assert (problem.status, problem.name) == (503, "service_unavailable")
    assert problem.headers == {"retry-after": "10"}
    assert "storage" in problem.message


async def test_a_disk_that_does_not_report_its_free_space_counts_as_full() -> None:
    """And the event loop does not stand still with it."""
    clock, works = ManualClock(), threading.Event()
    works.set()

    def measure(_: Path) -> Space:
        works.wait()
        return PLENTY

    room = DiskSpace(clock, [Path("/a")], measure)
    room.check()
    works.clear()
    began = time.monotonic()
    for _ in range(10):
        clock.advance(1)
        assert room.is_short in (True, False)
    assert time.monotonic() - began < 1
    with pytest.raises(DiskFull):
        room.check()
    works.set()
    async with asyncio.timeout(10):
        while room.is_short:
            clock.advance(1)
            await asyncio.sleep(0.01)
