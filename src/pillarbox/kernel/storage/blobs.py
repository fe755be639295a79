"""Large bytes outside the database: attachments and raw mail (architecture 2.7; DUR-01, DUR-11).

When `put` returns, the blob survives a power cut; the row that names it is committed after that. So a
crash leaves at worst a blob without a row, which the collector finds with `list` and deletes.

A key is a few words of letters, digits and `._-`, joined by slashes: `attachments/0199a3c2-…`. A blob
appears whole or not at all, and is never changed: writing a key again replaces it.

There are two backends. `FolderBackend` keeps files: each is written under a temporary name in its own folder,
synced, renamed, and the folder synced. `Bucket` is any object store that obstore speaks.

Every operation has a timeout that grows with the size. When a disk or a server hangs, `BlobsSilent` is
raised, and the operation may still complete later.

A failed sync is final (DUR-11): the kernel may have dropped the very pages that it could not write, so a
second sync would lie. After one, a Folder refuses every further `put`, and `writable` is False.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import from_url

from pillarbox.kernel.storage import storage_metrics
from pillarbox.kernel.storage.backend import Backend, BlobFailed, BlobMissing, BlobsSilent, BlobsUnreachable
from pillarbox.kernel.storage.bucket import Bucket
from pillarbox.kernel.storage.folder import FolderBackend

if TYPE_CHECKING:
    from obstore.store import RetryConfig

__all__ = [
    "BlobFailed",
    "BlobMissing",
    "BlobStore",
    "BlobsSilent",
    "BlobsUnreachable",
    "Bucket",
    "FolderBackend",
]

SCHEMES = ("file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
LONGEST_KEY = 250
RETRIES: RetryConfig = {
    "max_retries": 2,
    "retry_timeout": timedelta(seconds=5),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=1),
        "base": 2,
    },
}
"""A request waits for the answer, and its client tries again: the library would go on for minutes."""

_WORD = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
KEY = re.compile(rf"{_WORD}(?:/{_WORD})*")


class BlobStore:
    """The blobs of this installation."""

    __slots__ = ("_backend", "refusal")

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.refusal: str | None = None
        """Why nothing may be stored here for now (`kernel.storage.store_check`)."""

    @classmethod
    def open(cls, url: str) -> BlobStore:
        """Open the store at `file:/path` or at an object store's URL; raise ValueError, which says what is
        wrong with it.

        Object stores take their credentials from the environment that their own tools use.
        """
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise ValueError(f"A blob URL must start with one of {', '.join(s + ':' for s in SCHEMES)}.")
        if parts.scheme == "file":
            if parts.netloc or not parts.path:
                raise ValueError("A file: blob URL must name a folder on this machine.")
            return cls(FolderBackend(Path(unquote(parts.path))))
        try:
            return cls(Bucket(from_url(url, retry_config=RETRIES)))
        except (BaseError, ValueError) as failure:
            raise ValueError(f"The blob URL is not usable: {failure}") from None

    @property
    def writable(self) -> bool:
        """False once a sync has failed: this process can no longer promise that a blob lasts."""
        return self._backend.writable

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, is_store_id: bool = False) -> None:
        """Store `data`; durable on return. Raises BlobFailed, or what the iterable raises."""
        with storage_metrics.timed("put"):
            if self.refusal is not None and not is_store_id:
                raise BlobsUnreachable(self.refusal)
            await self._backend.put(_valid(key), data)

    async def get(self, key: str) -> bytes:
        """Return all bytes of a blob; raise BlobMissing or BlobFailed."""
        with storage_metrics.timed("get"):
            return await self._backend.get(_valid(key))

    async def size(self, key: str) -> int | None:
        """Return how many bytes a blob has; None where there is none of this key. Raise BlobFailed."""
        return await self._backend.size(_valid(key))

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Return the bytes from `start` up to but not including `end`, in chunks; raise as `get`."""
        return storage_metrics.timed_parts("stream", self._backend.stream(_valid(key), start, end))

    async def delete(self, key: str) -> None:
        """Remove a blob; one that is not there is no error."""
        with storage_metrics.timed("delete"):
            await self._backend.delete(_valid(key))

    def list(self, prefix: str, older_than: datetime) -> AsyncIterator[str]:
        """Return the keys under the folder `prefix` ("" is all) that were written before `older_than`."""
        found = self._backend.list(_valid(prefix) if prefix else "", older_than)
        return storage_metrics.timed_parts("list", found)

    async def remove_partial(self, older_than: datetime) -> int:
        """Remove what interrupted writes left behind before `older_than`; how many there were."""
        return await self._backend.remove_partial(older_than)

    async def close(self) -> None:
        """Wait for what is being written."""
        await self._backend.close()


def _valid(key: str) -> str:
    if len(key) > LONGEST_KEY or not KEY.fullmatch(key):
        raise ValueError(
            "a blob key is words of letters, digits, dot, dash and underscore, joined by slashes"
        )
    return key
