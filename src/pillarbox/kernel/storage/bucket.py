"""Blobs in an object store, by obstore."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator
from datetime import datetime
from typing import TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from pillarbox.kernel.storage.backend import (
    CHUNK,
    PART,
    BlobMissing,
    BlobsSilent,
    BlobsUnreachable,
    gathered,
    timeout_of,
)

T = TypeVar("T")

PARTS_AT_ONCE = 12
"""Of an upload in parts, as many as the library sends at the same time."""

CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|ContainerBeingDeleted")
MEANINGS = (
    ("builder error", "the endpoint is not https, and AWS_ALLOW_HTTP is not true"),
    ("error sending request", "no connection"),
    ("169.254.169.254", "no credentials"),
)
"""The meanings of parts of the library's messages; the first that occurs counts."""


class Bucket:
    """Blobs in an object store, which answers a write when it is durable."""

    writable = True

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, key: str, data: bytes | AsyncIterable[bytes]) -> None:
        try:
            if isinstance(data, bytes):
                async with asyncio.timeout(timeout_of(len(data))):
                    await obstore.put_async(self._store, key, data)
            else:
                async with asyncio.timeout(timeout_of()) as limit:
                    await obstore.put_async(self._store, key, _timed(gathered(data), limit))
        except TimeoutError:
            raise BlobsSilent from None
        except (BaseError, OSError) as failure:
            raise _failed(failure) from failure

    async def get(self, key: str) -> bytes:
        return b"".join([chunk async for chunk in self.stream(key, 0, None)])

    async def size(self, key: str) -> int | None:
        try:
            async with asyncio.timeout(timeout_of()):
                found = await obstore.head_async(self._store, key)
        except TimeoutError:
            raise BlobsSilent from None
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as failure:
            raise _failed(failure) from failure
        return int(found["size"])

    async def stream(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        if end is not None and end <= start:
            return
        try:
            async with asyncio.timeout(timeout_of()):
                result = await obstore.get_async(self._store, key, options=_range(start, end))
            chunks = result.stream(min_chunk_size=CHUNK)
            while (chunk := await _next(chunks)) is not None:
                yield bytes(chunk)
        except TimeoutError:
            raise BlobsSilent from None
        except FileNotFoundError as failure:
            if NO_BUCKET.search(str(failure)):
                raise _failed(failure) from failure
            raise BlobMissing(key) from None
        except (BaseError, OSError) as failure:
            raise _failed(failure) from failure

    async def delete(self, key: str) -> None:
        try:
            async with asyncio.timeout(timeout_of()):
                await obstore.delete_async(self._store, key)
        except TimeoutError:
            raise BlobsSilent from None
        except FileNotFoundError:
            return
        except (BaseError, OSError) as failure:
            raise _failed(failure) from failure

    async def list(self, prefix: str, older_than: datetime) -> AsyncIterator[str]:
        try:
            batches = obstore.list(self._store, prefix or None).__aiter__()
            while (batch := await _next(batches)) is not None:
                for found in batch:
                    if found["last_modified"] < older_than:
                        yield found["path"]
        except TimeoutError:
            raise BlobsSilent from None
        except (BaseError, OSError) as failure:
            raise _failed(failure) from failure

    async def remove_partial(self, older_than: datetime) -> int:
        """Remove nothing and return 0: unfinished uploads are invisible, and the bucket's own lifecycle rule
        ends them."""
        return 0

    async def close(self) -> None:
        return None


async def _next(parts: AsyncIterator[T]) -> T | None:
    """Return the next part, in time; None behind the last."""
    async with asyncio.timeout(timeout_of()):
        return await anext(parts, None)


def _range(start: int, end: int | None) -> obstore.GetOptions:
    if end is not None:
        return {"range": (start, end)}
    return {"range": {"offset": start}} if start else {}


async def _timed(parts: AsyncIterator[bytes], limit: asyncio.Timeout) -> AsyncIterator[bytes]:
    """Yield the parts as they come. The store has its time for each of them; a source may take as long as
    it likes."""
    loop = asyncio.get_running_loop()
    limit.reschedule(None)
    async for part in parts:
        limit.reschedule(loop.time() + timeout_of(PARTS_AT_ONCE * len(part)))
        yield part
        limit.reschedule(None)
    limit.reschedule(loop.time() + timeout_of(PARTS_AT_ONCE * PART))


def _failed(failure: Exception) -> BlobsUnreachable:
    return BlobsUnreachable(_brief(failure))


def _brief(failure: Exception) -> str:
    """Return the store's error code or a known meaning, else the class of the failure; its whole text may
    name hosts and keys."""
    text = str(failure)
    if found := CODE.search(text):
        return found[1]
    for part, meaning in MEANINGS:
        if part in text:
            return meaning
    return type(failure).__name__
