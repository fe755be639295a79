"""The blobs of a backup: copied to the target where they are not there yet, and listed in its index.

A blob is never changed, so one that an earlier index of the target has, and that is there with that size,
is not read again. Indexes are sorted by key; they are merged, never held in memory.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from pillarbox.backup.backup_manifest import MOST_LISTED
from pillarbox.backup.failure import BackupError
from pillarbox.backup.target import SCRATCH, HashedStream, sentences
from pillarbox.kernel.storage.blobs import BlobFailed, BlobMissing, BlobStore

R = TypeVar("R")

AT_ONCE = 8
BATCH = 256


class IndexEntry(NamedTuple):
    """A line of an index."""

    key: str
    size: int
    sha256: str

    @property
    def line(self) -> bytes:
        return f"{self.key}\t{self.size}\t{self.sha256}\n".encode()


class SnapshotBlob(NamedTuple):
    """A blob that the snapshot names. `size` is None where the row does not say."""

    key: str
    size: int | None


@dataclass(slots=True)
class BlobCopyResult:
    """The counts of a backup's blobs. `missing` counts those that are gone or have another size."""

    blobs: int = 0
    octets: int = 0
    copied: int = 0
    missing: int = 0
    missing_keys: list[str] = field(default_factory=list)

    def miss(self, key: str) -> None:
        self.missing += 1
        if len(self.missing_keys) < MOST_LISTED:
            self.missing_keys.append(key)


def entries(path: Path) -> Iterator[IndexEntry]:
    """Yield the lines of an index; BackupError where one is damaged."""
    before = ""
    with open(path, "rb") as file:
        for line in file:
            try:
                key, size, checksum = line.decode("ascii").removesuffix("\n").split("\t")
                found = IndexEntry(key, int(size), checksum)
            except ValueError:
                raise BackupError("The index of blobs is damaged.") from None
            if key <= before:
                raise BackupError("The index of blobs is damaged.")
            before = key
            yield found


def wanted(file: BinaryIO) -> Iterator[SnapshotBlob]:
    """Yield the lines of `snapshot.list_blobs`."""
    for line in file:
        key, _, size = line.decode().removesuffix("\n").rpartition("\t")
        yield SnapshotBlob(key, int(size) if size else None)


async def copy(
    source: BlobStore,
    target: BlobStore,
    named: Iterable[SnapshotBlob],
    earlier: Iterable[IndexEntry],
    index: BinaryIO,
    *,
    reread: bool,
) -> BlobCopyResult:
    """Bring the named blobs to the target and write their index. `reread` compares those that are there byte
    by byte. Raises BlobFailed where the source or the target cannot be used."""
    done = BlobCopyResult()
    slots = asyncio.Semaphore(AT_ONCE)
    pairs = joined(named, earlier)
    while batch := list(islice(pairs, BATCH)):

        async def one(blob: SnapshotBlob, known: IndexEntry | None) -> tuple[IndexEntry | None, bool]:
            async with slots:
                return await _bring(source, target, blob, known, reread=reread)

        found = await together(one(*pair) for pair in batch)
        for (blob, _), (entry, is_new) in zip(batch, found, strict=True):
            if entry is None:
                done.miss(blob.key)
                continue
            with sentences(SCRATCH):
                index.write(entry.line)
            done.blobs += 1
            done.octets += entry.size
            done.copied += is_new
    return done


def joined(
    named: Iterable[SnapshotBlob], earlier: Iterable[IndexEntry]
) -> Iterator[tuple[SnapshotBlob, IndexEntry | None]]:
    """Yield each named blob with its entry in the earlier index, if it has one; both are sorted by key."""
    others = iter(earlier)
    known = next(others, None)
    for blob in named:
        while known is not None and known.key < blob.key:
            known = next(others, None)
        yield blob, known if known is not None and known.key == blob.key else None


def only_in(removed: Sequence[Path], kept: Sequence[Path]) -> Iterator[str]:
    """Yield the keys that some of the removed indexes have and none of the kept ones."""
    marked = [((entry.key, False) for entry in entries(path)) for path in removed]
    marked += [((entry.key, True) for entry in entries(path)) for path in kept]
    for key, lines in groupby(heapq.merge(*marked), key=lambda line: line[0]):
        if not any(is_kept for _, is_kept in lines):
            yield key


async def _bring(
    source: BlobStore, target: BlobStore, blob: SnapshotBlob, known: IndexEntry | None, *, reread: bool
) -> tuple[IndexEntry | None, bool]:
    """Return the index line of a blob that is in the target now, and whether it was copied; no line where it
    is missing."""
    try:
        if known is not None and not reread and await target.size(blob.key) == known.size:
            return known, False
        if reread and (same := await _same(source, target, blob.key)) is not None:
            return same, False
        content = HashedStream(source.stream(blob.key))
        if blob.size is not None and await source.size(blob.key) != blob.size:
            return None, False
        await target.put(blob.key, content.__aiter__())
    except (BlobMissing, ValueError):
        return None, False
    return IndexEntry(blob.key, *attrgetter("size", "sha256")(content.file)), True


async def _same(source: BlobStore, target: BlobStore, key: str) -> IndexEntry | None:
    """Return the line of a blob whose bytes are the same on both sides."""
    size = await target.size(key)
    if size is None or size != await source.size(key):
        return None
    here, there = await checksum(source, key), await checksum(target, key)
    return here if here == there else None


async def together(works: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """Return the results of all of them. Where one fails the others have ended, too, when this raises: then
    nobody uses the store any more."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def checksum(store: BlobStore, key: str) -> IndexEntry:
    """Return the line of a blob as it is now; raises BlobMissing or BlobFailed."""
    content = HashedStream(store.stream(key))
    async for _ in content:
        pass
    return IndexEntry(key, content.file.size, content.file.sha256)


async def trouble(store: BlobStore, entry: IndexEntry) -> str | None:
    """Return the fault of an indexed blob as the end of a sentence; None where the blob is as indexed."""
    try:
        return None if await checksum(store, entry.key) == entry else "differs"
    except BlobMissing:
        return "is missing"
    except BlobFailed as failure:
        return f"cannot be read ({failure.reason})"
    except ValueError:
        return "has a name that no blob can have"
