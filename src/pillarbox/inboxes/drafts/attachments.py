"""Attachments of drafts: what is given by `path` is downloaded at once, large ones are blobs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.inboxes.drafts import queries
from pillarbox.inboxes.drafts.queries import NewFile
from pillarbox.inboxes.sending.originals import MOST_ATTACHED, ForwardTooLarge
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import InvalidAttachment, Problem
from pillarbox.kernel.work.team_turns import IsGone, TeamTurns

FOLDER: Final = "drafts"
"""The folder of their blobs."""
INLINE: Final = 256 * 1024
DOWNLOAD_SECONDS: Final = 15.0
"""For all files of one request."""
REDIRECTS: Final = 5

SERVER_ERROR: Final = 500

HELD_AT_ONCE: Final = 96 * 1024 * 1024
REFUSAL: Final = "Too many large attachments are being handled. Try again in a moment."


class NotDownloaded(InvalidAttachment):
    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"Invalid `attachments[{index}].path` field. It could not be downloaded. {reason}")


class DraftFiles:
    """Stores and reads attachments of drafts. What they take in memory is bounded; teams take turns."""

    def __init__(self, ids: Ids, outbound: Outbound, blobs: BlobStore) -> None:
        self._ids = ids
        self._outbound = outbound
        self._blobs = blobs
        self._turns = TeamTurns(HELD_AT_ONCE, REFUSAL)

    @asynccontextmanager
    async def stored(
        self, team_id: UUID, accepted: Sequence[NewAttachment], is_gone: IsGone
    ) -> AsyncIterator[list[NewFile]]:
        """Store these attachments and yield their rows, for the block to commit. Where that is refused their
        blobs are deleted."""
        async with self._turns.of(team_id, _held(accepted), is_gone):
            files: list[NewFile] = []
            try:
                await self._store(accepted, files)
                yield files
            except Problem as refused:
                # Only where it is sure that nothing was committed.
                if refused.status < SERVER_ERROR:
                    await blob_removal.delete(self._blobs, (file.blob for file in files), "inboxes")
                raise

    @asynccontextmanager
    async def read(
        self, db: TeamDb, draft_id: UUID, size: int, is_gone: IsGone
    ) -> AsyncIterator[list[NewAttachment]]:
        """Yield the attachments of a draft, of `size` octets together, as the door for outgoing mail takes
        them."""
        if not size:
            yield []
            return
        async with self._turns.of(db.team_id, 2 * size, is_gone):
            yield [
                NewAttachment(
                    filename=file.filename,
                    content_type=file.content_type,
                    cid=None,
                    data=await self._octets(file),
                    url=None,
                )
                for file in await queries.files(db, draft_id)
            ]

    async def forget(self, source: Source, blobs: Sequence[str | None]) -> None:
        """Delete blobs that no row names any more; one that stays is collected as an orphan."""
        await blob_removal.remove(source, self._blobs, blobs, "inboxes")

    async def _store(self, accepted: Sequence[NewAttachment], files: list[NewFile]) -> None:
        left = MOST_ATTACHED
        ends = time.monotonic() + DOWNLOAD_SECONDS
        for index, one in enumerate(accepted):
            data = one.data
            if data is None:
                data = await self._download(index, one.url or "", left, ends - time.monotonic())
            left -= len(data)
            if left < 0:
                raise ForwardTooLarge
            files.append(await self._file(one, data))

    async def _file(self, new_attachment: NewAttachment, data: bytes) -> NewFile:
        file_id = self._ids.new()
        if len(data) <= INLINE:
            return NewFile(
                id=file_id,
                filename=new_attachment.filename,
                content_type=new_attachment.content_type,
                size=len(data),
                data=data,
                blob=None,
            )
        blob = f"{FOLDER}/{file_id}"
        await self._blobs.put(blob, data)
        return NewFile(
            id=file_id,
            filename=new_attachment.filename,
            content_type=new_attachment.content_type,
            size=len(data),
            data=None,
            blob=blob,
        )

    async def _download(self, index: int, url: str, limit: int, seconds: float) -> bytes:
        if seconds <= 0:
            raise NotDownloaded(index, "The files took too long.")
        try:
            limits = HttpLimits(max_bytes=limit, total=seconds, redirects=REDIRECTS)
            answer = await self._outbound.fetch("GET", url, limits)
        except FetchError as failure:
            if failure.kind == "too_large":
                raise ForwardTooLarge from None
            raise NotDownloaded(index, str(failure)) from None
        if not 200 <= answer.status < 300:
            raise NotDownloaded(index, f"The server answered {answer.status}.")
        if not answer.body:
            raise NotDownloaded(index, "The file is empty.")
        return answer.body

    async def _octets(self, file: NewFile) -> bytes:
        return file.data or b"" if file.blob is None else await self._blobs.get(file.blob)


def _held(accepted: Sequence[NewAttachment]) -> int:
    """Return how many octets of memory the attachments take. Downloaded ones may be as large as all together
    may be."""
    if any(one.url is not None for one in accepted):
        return MOST_ATTACHED
    return sum([len(one.data or b"") for one in accepted])
