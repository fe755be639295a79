"""The files of imports in the blob store, and what is kept of an import when it has ended
(contact-imports.md 4, 8)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.contacts.imports import queries, upload_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic

FOLDER: Final = "imports"
DETAIL_KEPT: Final = timedelta(days=90)
UPLOAD_KEPT: Final = timedelta(days=1)
"""How long a file waits until its columns are mapped."""

BATCH: Final = 1000


def key_of(import_id: UUID) -> str:
    """Return the key of the blob that holds the file of an import."""
    return f"{FOLDER}/{import_id}"


async def remove_file(
    pool: asyncpg.Pool, blobs: BlobStore, team_id: UUID, import_id: UUID, blob: str
) -> bool:
    """Remove the file of an import that has ended; False while a backup is made, which may need it."""
    if blob and not await blob_removal.is_allowed(pool):
        return False
    if blob:
        await blobs.delete(blob)
    await queries.released(TeamDb(pool, team_id), import_id)
    return True


@dataclass(frozen=True, slots=True)
class ImportRetention:
    """Removes what is left of imports that have ended."""

    pool: asyncpg.Pool
    blobs: BlobStore
    clock: Clock

    def periodic(self) -> list[Periodic]:
        return [Periodic("contacts.import_retention", timedelta(hours=1), self.collect)]

    async def collect(self) -> str:
        """Remove files and details; says what was done."""
        files = await self.remove_files() + await self.remove_uploads()
        before = self.clock.now() - DETAIL_KEPT

        async def some() -> int:
            await queries.remove_errors(self.pool, before, BATCH)
            return await queries.remove_details(self.pool, before, BATCH)

        return f"{files} files, details of {await in_batches(some)} imports"

    async def remove_uploads(self) -> int:
        """Remove files that have waited too long for somebody to map their columns; returns how many."""
        blobs = await upload_queries.remove_old(self.pool, self.clock.now() - UPLOAD_KEPT, BATCH)
        for blob in blobs:
            with contextlib.suppress(BlobFailed):
                await self.blobs.delete(blob)
        return len(blobs)

    async def remove_files(self) -> int:
        """Remove the files of imports that have ended whose process could not; returns how many."""
        removed = 0
        for left in await queries.ended_with_file(self.pool, BATCH):
            try:
                removed += await remove_file(self.pool, self.blobs, left.team_id, left.id, left.blob)
            except BlobFailed:
                continue
        return removed
