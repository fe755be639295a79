"""Whether a blob store is the one of this database (docs/decisions/0044).

The store has an id in it, and the database knows that id. A process whose store has another one, or none,
would keep attachments where no other process finds them, and take those of others for lost. It does not
start, and one whose store is changed under it (a file system that is not mounted) stores nothing more.

A store that cannot be reached at the start does not stop it: what needs no blob goes on. Until the ids were
compared nothing is stored there.
"""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID, uuid4

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import TROUBLE, Connection, Source
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.storage import queries
from pillarbox.kernel.storage.backend import BlobFailed, BlobMissing, BlobsSilent, BlobsUnreachable
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import ServerOverloaded

log = get("blob_store")

KEY: Final = "store-id"
PROBE_SECONDS: Final = 5.0
WATCH_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 30.0
"""The pause after a store that did not answer: on a disk that hangs each question takes a thread."""
RETRY_AFTER: Final = 10
ANOTHER: Final = "the blob store of another database"


class BlobStoreRefused(Exception):  # noqa: N818 (a state, reported as a sentence)
    """It is the blob store of another database; the message is one sentence for the operator."""

    def __init__(self, settings: Settings, row_id: UUID | None, store_id: UUID) -> None:
        place = f"in {settings.data / 'blobs'}" if settings.blob_url is None else "of --blob-url"
        has = "has no id" if row_id is None else f"has the id {row_id}"
        super().__init__(
            f"The blob store {place} is not the one of this database: it {has}, and the database's is "
            f"{store_id}; give every machine the same --blob-url, a bucket or a folder that they share "
            "(where it has the blobs of this database all the same, `pillarbox verify --adopt-blob-store` "
            "gives it the id)."
        )


class StoreIdDamaged(BlobsUnreachable):
    """Something else is where the id should be: a file that a crash has emptied, or the answer of a program
    that is no object store."""

    def __init__(self) -> None:
        super().__init__(
            f"{KEY} does not hold an id; where the blobs are those of this database, `pillarbox verify "
            "--adopt-blob-store` writes it anew"
        )


class BlobStoreGone(ServerOverloaded):
    """Nothing can be stored."""

    def __init__(self) -> None:
        super().__init__("The blob store cannot be reached right now. Try again later.", RETRY_AFTER)


async def id_in(blobs: BlobStore) -> UUID | None:
    """Return the id that the store has in it, or None; raise BlobFailed where it cannot be asked, in a
    few seconds."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return UUID(bytes(await blobs.get(KEY)).decode("ascii").strip())
    except BlobMissing:
        return None
    except TimeoutError:
        raise BlobsSilent from None
    except ValueError:
        raise StoreIdDamaged from None


async def known_id(source: Source) -> UUID | None:
    """Return the id of the store of this database; None before one was used."""
    return await queries.store_id(source)


async def compare(conn: Connection, blobs: BlobStore, settings: Settings) -> None:
    """Return where the store is the one of this database, or has become it just now: a database that has none
    takes the first. Raises BlobStoreRefused, or BlobFailed where the store cannot be asked."""
    found, wanted = await id_in(blobs), await known_id(conn)
    if wanted is None:
        found, wanted = await _establish(conn, blobs, found)
    if found != wanted:
        raise BlobStoreRefused(settings, found, wanted)


async def _establish(conn: Connection, blobs: BlobStore, row_id: UUID | None) -> tuple[UUID | None, UUID]:
    """Make the store the one of the database, unless another process was faster; the ids of both."""
    async with conn.transaction():
        await queries.lock_store_id(conn)
        wanted = await known_id(conn)
        if wanted is None:
            wanted = row_id or uuid4()
            if row_id is None:
                await write_id(blobs, wanted)
            await queries.add_store_id(conn, wanted)
            return wanted, wanted
    return await id_in(blobs), wanted


async def adopt(conn: Connection, blobs: BlobStore) -> None:
    """Make the store the one of the database, whatever id it has; raises BlobFailed."""
    wanted = await known_id(conn)
    try:
        found = await id_in(blobs)
    except StoreIdDamaged:
        found = None
    if wanted is not None and found != wanted:
        await write_id(blobs, wanted)


async def write_id(blobs: BlobStore, store_id: UUID) -> None:
    """Give the store an id; raises BlobFailed, in a few seconds."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await blobs.put(KEY, f"{store_id}\n".encode("ascii"), is_store_id=True)
    except TimeoutError:
        raise BlobsSilent from None


async def refuse_other_store(conn: Connection, settings: Settings) -> None:
    """Raise BlobStoreRefused at a start where the store is another one. One that cannot be reached is logged,
    and compared by the processes as soon as it can be."""
    blobs = BlobStore.open(settings.blobs)
    try:
        await compare(conn, blobs, settings)
    except BlobFailed as trouble:
        log.error("blob_store.unreachable", reason=trouble.reason)
    finally:
        await blobs.close()


class StoreWatch:
    """Compares and asks again every few seconds, and lets nothing be stored in the store of another
    database."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, blobs: BlobStore, settings: Settings) -> None:
        self._pool = pool
        self._clock = clock
        self._blobs = blobs
        self._settings = settings
        self._trouble: str | None = None
        self._pause = WATCH_SECONDS
        self._is_confirmed = False

    def check(self) -> None:
        """Raise the 503 of a store that cannot be used."""
        if self._trouble is not None:
            raise BlobStoreGone

    async def look(self) -> None:
        """Find out how it stands now."""
        try:
            async with self._pool.acquire() as conn:
                await compare(conn, self._blobs, self._settings)
        except BlobStoreRefused as refused:
            self._is_confirmed = False
            self._found(str(refused), ANOTHER)
        except BlobFailed as trouble:
            # A store that was confirmed may be back before the next look: whoever writes finds out.
            self._found(trouble.reason, None if self._is_confirmed else trouble.reason)
            self._pause = SILENT_SECONDS if isinstance(trouble, BlobsSilent) else WATCH_SECONDS
        except TROUBLE:
            return
        else:
            self._is_confirmed = True
            self._found(None, None)

    def _found(self, trouble: str | None, refusal: str | None) -> None:
        if trouble != self._trouble:
            if trouble is None:
                log.warning("blob_store.reached")
            else:
                log.error("blob_store.unusable", reason=trouble)
        self._trouble = trouble
        self._blobs.refusal = refusal
        self._pause = WATCH_SECONDS

    async def run(self) -> None:
        """Look every few seconds."""
        failures = LoopFailures("blob_store.watch")
        while True:
            await self._clock.sleep(max(self._pause, failures.pause))
            await failures.attempt(self.look())
