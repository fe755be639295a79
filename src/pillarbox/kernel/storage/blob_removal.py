"""While a backup is made, no blob is deleted: its snapshot may name blobs whose rows have gone since.

The backup holds a lock of the database from before its snapshot until all blobs are copied. Code that deletes
blobs asks `is_allowed` after the commit that removed their rows (or after it has seen that no row names
them). So either the snapshot came later and does not name them, or the lock is seen. A blob that is not
deleted then is collected as an orphan later.

The lock belongs to a session: it ends with the backup, however that ends. It also keeps a second backup of
the same database from running at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.storage import queries
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore

TRIES = 20
PAUSE = 0.1
"""Those who ask hold the lock for the length of their question."""


async def is_allowed(source: Source) -> bool:
    """Return whether blobs may be deleted now."""
    return await queries.may_delete(source)


async def remove(source: Source, store: BlobStore, blobs: Iterable[str | None], part: str) -> None:
    """Delete blobs whose rows are gone, unless a backup is made; `part` says in the log who wanted it."""
    named = [blob for blob in blobs if blob is not None]
    if named and await is_allowed(source):
        await delete(store, named, part)


async def delete(store: BlobStore, blobs: Iterable[str | None], part: str) -> None:
    """Delete blobs that no row has ever named; one that stays is collected as an orphan."""
    for blob in blobs:
        if blob is None:
            continue
        try:
            await store.delete(blob)
        except BlobFailed as trouble:
            get(part).warning(f"{part}.blob_stays", blob=blob, trouble=trouble.reason)


async def hold_off(conn: Connection) -> bool:
    """Let nobody delete blobs until this session ends; False where another backup does so already."""
    for _ in range(TRIES):
        if await queries.forbid_deletion(conn):
            return True
        await asyncio.sleep(PAUSE)
    return False
