"""The interface of a blob store; `blobs` documents what the rest of the program may rely on."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from datetime import datetime
from typing import Protocol

PART = 1024 * 1024
CHUNK = 256 * 1024


class BlobMissing(Exception):  # noqa: N818
    """There is no blob of this key."""


class BlobFailed(Exception):  # noqa: N818
    """The operation failed; the state of the blob is unknown. `reason` names no path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BlobsUnreachable(BlobFailed):
    """The store cannot be reached, or refuses us."""


class BlobsSilent(BlobsUnreachable):
    """The store did not answer in time: a disk or a server hangs."""

    def __init__(self) -> None:
        super().__init__("no answer in time")


SECONDS = 10.0
SLOWEST = 2 * 1024 * 1024
"""How long a store may take to answer, and so many octets in each second more."""


def timeout_of(octets: int = 0) -> float:
    """Return the seconds after which so much ought to be read or written."""
    return SECONDS + octets / SLOWEST


class Backend(Protocol):
    """The operations of a store of blobs; keys are valid when they get here."""

    @property
    def writable(self) -> bool: ...

    async def put(self, key: str, data: bytes | AsyncIterable[bytes]) -> None: ...

    async def get(self, key: str) -> bytes: ...

    async def size(self, key: str) -> int | None: ...

    def stream(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]: ...

    async def delete(self, key: str) -> None: ...

    def list(self, prefix: str, older_than: datetime) -> AsyncIterator[str]: ...

    async def remove_partial(self, older_than: datetime) -> int: ...

    async def close(self) -> None: ...


async def gathered(data: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes in pieces of about a megabyte, so that small chunks do not cost a thread each."""
    waiting: list[bytes] = []
    size = 0
    async for chunk in data:
        waiting.append(chunk)
        size += len(chunk)
        if size >= PART:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
