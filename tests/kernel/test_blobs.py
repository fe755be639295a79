"""Blobs (architecture 2.7; DUR-01, DUR-11): the same promises from every backend."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

from pillarbox.kernel.storage.blobs import BlobFailed, BlobMissing, BlobStore, Bucket, FolderBackend

LATER = datetime.now(UTC) + timedelta(hours=1)
EARLIER = LATER - timedelta(hours=2)
LARGE = bytes(range(256)) * 12_000  # 3 MB


def memory(path: Path) -> BlobStore:
    return BlobStore(Bucket(MemoryStore()))


def local(path: Path) -> BlobStore:
    return BlobStore(Bucket(LocalStore(path)))


def folder(path: Path) -> BlobStore:
    return BlobStore.open(f"file:{path}/blobs")


every_backend = pytest.mark.parametrize("store", [folder, memory, local])
Make = Callable[[Path], BlobStore]


async def pieces(data: bytes, size: int = 70_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def gather(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def keys(blobs: BlobStore, prefix: str = "", older_than: datetime = LATER) -> list[str]:
    return sorted([key async for key in blobs.list(prefix, older_than)])


def files(path: Path) -> list[str]:
    return sorted(found.name for found in path.rglob("*") if found.is_file())


@every_backend
async def test_what_is_put_can_be_had(store: Make, tmp_path: Path) -> None:
    blobs = store(tmp_path)
    for key, data in (("a/empty", b""), ("a/small", b"\x00\xff"), ("raw/b/large.eml", LARGE)):
        await blobs.put(key, data)
        assert await blobs.get(key) == data
    await blobs.close()


@every_backend
async def test_what_is_streamed_in_can_be_had(store: Make, tmp_path: Path) -> None:
    blobs = store(tmp_path)
    await blobs.put("a/large", pieces(LARGE))
    await blobs.put("a/empty", pieces(b""))
    assert await blobs.get("a/large") == LARGE
    assert await blobs.get("a/empty") == b""


@every_backend
@pytest.mark.parametrize(
    ("start", "end"),
    [(0, None), (0, 1), (5, 10), (1_000_000, 2_000_001), (2_999_999, None), (10, 10), (3_071_999, 3_072_000)],
)
async def test_a_range_can_be_read(store: Make, tmp_path: Path, start: int, end: int | None) -> None:
    """Downloads with `Range` (conventions section 14)."""
    blobs = store(tmp_path)
    await blobs.put("a/large", LARGE)
    chunks = [chunk async for chunk in blobs.stream("a/large", start, end)]
    assert b"".join(chunks) == LARGE[start:end]
    assert all(chunks)


@every_backend
async def test_writing_a_key_again_replaces_it(store: Make, tmp_path: Path) -> None:
    blobs = store(tmp_path)
    await blobs.put("a/b", b"first")
    await blobs.put("a/b", b"second")
    assert await blobs.get("a/b") == b"second"
    assert await keys(blobs) == ["a/b"]


@every_backend
async def test_the_size_of_a_blob_is_known_without_reading_it(store: Make, tmp_path: Path) -> None:
    blobs = store(tmp_path)
    await blobs.put("a/large", LARGE)
    await blobs.put("a/empty", b"")
    assert await blobs.size("a/large") == len(LARGE)
    assert await blobs.size("a/empty") == 0
    assert await blobs.size("a/none") is None


@every_backend
async def test_a_blob_that_is_not_there_is_missing(store: Make, tmp_path: Path) -> None:
    blobs = store(tmp_path)
    with pytest.raises(BlobMissing):
        await blobs.get("a/b")
    with pytest.raises(BlobMissing):
        await gather(blobs.stream("a/b", 3, 9))
    await blobs.delete("a/b")


@every_backend
async def test_a_deleted_blob_is_gone(store: Make, tmp_path: Path) -> None:
    blobs = store(tmp_path)
    await blobs.put("a/b", b"x")
    await blobs.delete("a/b")
    await blobs.delete("a/b")
    with pytest.raises(BlobMissing):
        await blobs.get("a/b")
    assert await keys(blobs) == []


@every_backend
async def test_the_collector_sees_what_is_old_enough(store: Make, tmp_path: Path) -> None:
    """Blobs without a row after a crash are found and removed."""
    blobs = store(tmp_path)
    wanted = [f"attachments/{number}" for number in range(40)]
    for key in [*wanted, "raw/1", "attachments-of-another/1"]:
        await blobs.put(key, b"x")
    assert await keys(blobs, "attachments") == sorted(wanted)
    assert len(await keys(blobs)) == 42
    assert await keys(blobs, "attachments", EARLIER) == []
    assert await keys(blobs, "nothing") == []


@every_backend
@pytest.mark.parametrize(
    "key",
    ["", "/", "/a", "a/", "a//b", "../a", "a/../b", "a/.hidden", ".", "a b", "a\x00", "ä", "a\n", "a" * 251],
)
async def test_a_key_cannot_leave_the_store(store: Make, tmp_path: Path, key: str) -> None:
    blobs = store(tmp_path)
    with pytest.raises(ValueError, match="blob key"):
        await blobs.put(key, b"x")
    with pytest.raises(ValueError, match="blob key"):
        await blobs.get(key)
    with pytest.raises(ValueError, match="blob key"):
        await blobs.delete(key)
    with pytest.raises(ValueError, match="blob key"):
        blobs.stream(key)


@every_backend
async def test_a_source_that_breaks_off_leaves_nothing(store: Make, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield LARGE
        raise RuntimeError("the sender went away")

    blobs = store(tmp_path)
    with pytest.raises((RuntimeError, BlobFailed)):
        await blobs.put("a/b", broken())
    assert await keys(blobs) == []
    with pytest.raises(BlobMissing):
        await blobs.get("a/b")


async def test_a_cancelled_stream_leaves_no_file(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield LARGE
        reached.set()
        await asyncio.Event().wait()

    blobs = folder(tmp_path)
    writing = asyncio.create_task(blobs.put("a/b", endless()))
    await reached.wait()
    assert len(files(tmp_path)) == 1
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert files(tmp_path) == []


async def test_a_reader_that_leaves_early_closes_its_file(tmp_path: Path) -> None:
    blobs = folder(tmp_path)
    await blobs.put("a/b", LARGE)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        stream = blobs.stream("a/b")
        assert await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


class Disk:
    """The real disk, with a note of what is synced; fails with `error` from the given sync on."""

    def __init__(self, fails_at: int = 10**6, error: int = errno.EIO) -> None:
        self.synced: list[str] = []
        self.fails_at = fails_at
        self.error = error

    def sync(self, file: int) -> None:
        if len(self.synced) >= self.fails_at:
            raise OSError(self.error, os.strerror(self.error))
        os.fsync(file)
        self.synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))


async def test_a_blob_is_on_disk_before_put_returns(tmp_path: Path) -> None:
    """DUR-01: the folders above, the file under its temporary name, the folder that holds its name."""
    disk = Disk()
    store = FolderBackend(tmp_path / "blobs", disk.sync)
    shard = store.path("a/b").parent.name
    await store.put("a/b", b"x")
    assert disk.synced[:3] == [tmp_path.name, "blobs", "a"]
    assert disk.synced[3].startswith(".partial-")
    assert disk.synced[4:] == [shard]
    disk.synced.clear()
    await store.put("a/b", pieces(LARGE))
    assert disk.synced[0].startswith(".partial-")
    assert disk.synced[1:] == [shard]


async def test_another_process_syncs_the_folders_that_it_finds(tmp_path: Path) -> None:
    """DUR-01: that a folder exists does not mean that it would survive."""
    await FolderBackend(tmp_path / "blobs").put("a/b", b"x")
    disk = Disk()
    await FolderBackend(tmp_path / "blobs", disk.sync).put("a/b", b"x")
    assert disk.synced[:3] == [tmp_path.name, "blobs", "a"]


@pytest.mark.parametrize("fails_at", range(5))
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("data", [b"x", LARGE])
async def test_a_failed_sync_is_final(tmp_path: Path, fails_at: int, error: int, data: bytes) -> None:
    """DUR-11: no success after a failed sync, not even when the disk says that it is well again."""
    disk = Disk(fails_at, error)
    blobs = BlobStore(FolderBackend(tmp_path / "blobs", disk.sync))
    with pytest.raises(BlobFailed, match=errno.errorcode[error]):
        await blobs.put("a/b", data if data == b"x" else pieces(data))
    assert not blobs.writable
    disk.fails_at = 10**6
    with pytest.raises(BlobFailed, match="earlier"):
        await blobs.put("a/c", b"x")
    assert not [name for name in files(tmp_path) if name.startswith(".partial-")]


async def test_reading_goes_on_after_a_failed_sync(tmp_path: Path) -> None:
    disk = Disk()
    blobs = BlobStore(FolderBackend(tmp_path / "blobs", disk.sync))
    await blobs.put("a/b", b"x")
    disk.fails_at = 0
    with pytest.raises(BlobFailed):
        await blobs.put("a/b", b"y")
    assert await blobs.get("a/b") == b"x"


FULL = """
import asyncio, resource, signal, sys
from pathlib import Path
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

async def main():
    blobs = BlobStore.open("file:" + sys.argv[1])
    try:
        await blobs.put("a/large", bytes(200_000))
    except BlobFailed as failure:
        print(failure.reason, blobs.writable)
    await blobs.put("a/small", bytes(1000))
    print(len(await blobs.get("a/small")))

asyncio.run(main())
"""


def test_a_write_that_does_not_fit_fails_and_leaves_nothing(tmp_path: Path) -> None:
    """DUR-11: no half blob; smaller ones still fit."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["EFBIG", "True", "1000"]
    assert files(tmp_path) == ["small"]


async def test_what_a_crash_left_half_written_is_removed_later(tmp_path: Path) -> None:
    blobs = folder(tmp_path)
    await blobs.put("a/b", b"x")
    left = next((tmp_path / "blobs").rglob("b")).parent / ".partial-0123456789abcdef"
    left.write_bytes(b"half")
    assert await keys(blobs) == ["a/b"]
    assert await blobs.remove_partial(EARLIER) == 0
    assert await blobs.remove_partial(LATER) == 1
    assert files(tmp_path) == ["b"]


async def test_files_belong_to_us_alone(tmp_path: Path) -> None:
    """SEC-09."""
    blobs = folder(tmp_path)
    await blobs.put("a/b", b"x")
    for path in [tmp_path / "blobs", *(tmp_path / "blobs").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0


async def test_many_writers_at_once(tmp_path: Path) -> None:
    blobs = folder(tmp_path)
    await asyncio.gather(*[blobs.put(f"a/{number}", b"%d" % number) for number in range(300)])
    assert len(await keys(blobs)) == 300
    assert await blobs.get("a/123") == b"123"
    assert len(list((tmp_path / "blobs" / "a").iterdir())) > 100


async def test_a_folder_that_someone_removed_is_made_again(tmp_path: Path) -> None:
    store = FolderBackend(tmp_path)
    await store.put("a/b", b"x")
    store.path("a/b").unlink()
    store.path("a/b").parent.rmdir()
    await store.put("a/b", b"y")
    assert await store.get("a/b") == b"y"


@pytest.mark.parametrize(
    "url",
    ["", "blobs", "http://harbor.example/", "ftp://x/y", "file:", "file://host/path", "memory:///", "s3:"],
)
def test_a_url_that_is_no_store_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match=r"blob URL.*\.|usable"):
        BlobStore.open(url)


def test_urls_of_object_stores_open_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert BlobStore.open("s3://bucket/prefix").writable


async def test_a_file_url_may_be_escaped(tmp_path: Path) -> None:
    await BlobStore.open(f"file://{tmp_path}/two%20words").put("a/b", b"x")
    assert (tmp_path / "two words").is_dir()
