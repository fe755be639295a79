"""Blobs in an object store, by obstore."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from datetime import datetime

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from pillarbox.kernel.blob_backend import CHUNK, BlobFailed, BlobMissing, gathered


class Bucket:
    """Blobs in an object store, which answers a write when it is durable."""

    writable = True

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, key: str, data: bytes | AsyncIterable[bytes]) -> None:
        source = data if isinstance(data, bytes) else gathered(data)
        try:
            await obstore.put_async(self._store, key, source)
        except (BaseError, OSError) as failure:
            raise BlobFailed(_brief(failure)) from failure

    async def get(self, key: str) -> bytes:
        return b"".join([chunk async for chunk in self.stream(key, 0, None)])

    async def stream(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        if end is not None and end <= start:
            return
        try:
            result = await obstore.get_async(self._store, key, options=_range(start, end))
            async for chunk in result.stream(min_chunk_size=CHUNK):
                yield bytes(chunk)
        except FileNotFoundError:
            raise BlobMissing(key) from None
        except (BaseError, OSError) as failure:
            raise BlobFailed(_brief(failure)) from failure

    async def delete(self, key: str) -> None:
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as failure:
            raise BlobFailed(_brief(failure)) from failure

    async def list(self, prefix: str, older_than: datetime) -> AsyncIterator[str]:
        try:
            async for batch in obstore.list(self._store, prefix or None):
                for found in batch:
                    if found["last_modified"] < older_than:
                        yield found["path"]
        except (BaseError, OSError) as failure:
            raise BlobFailed(_brief(failure)) from failure

    async def remove_partial(self, older_than: datetime) -> int:
        """Nothing: unfinished uploads are invisible, and the bucket's own lifecycle rule ends them."""
        return 0

    async def close(self) -> None:
        return None


def _range(start: int, end: int | None) -> obstore.GetOptions:
    if end is not None:
        return {"range": (start, end)}
    return {"range": {"offset": start}} if start else {}


def _brief(failure: Exception) -> str:
    """The class of the failure; its text may name hosts and keys."""
    return type(failure).__name__
