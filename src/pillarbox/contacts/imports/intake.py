"""How a file comes in: stored while it is received, looked at, and then its import is made
(contact-imports.md 1).

Nothing of a file is held in memory but its beginning. It is durable in the blob store before the row that
names it is committed; where anything is wrong it is removed again. What a process that died left there is
collected as an orphan.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.contact_properties import columns as property_columns
from pillarbox.contacts import segment_queries
from pillarbox.contacts.imports import queries
from pillarbox.contacts.imports.batch_transaction import Checkpoint, StoredColumns
from pillarbox.contacts.imports.columns import ColumnPositions, columns_of
from pillarbox.contacts.imports.dialect import (
    HEAD,
    NO_DELIMITER,
    CsvHeader,
    HeaderFault,
    Utf8Check,
    encoding_of,
    header_of,
)
from pillarbox.contacts.imports.files import key_of
from pillarbox.contacts.imports.options import LONGEST_FIELD, ImportOptions
from pillarbox.contacts.imports.wire import FIELDS, FILE, options_of
from pillarbox.contacts.store import MembersByConditions
from pillarbox.kernel.http.body import CLOSE
from pillarbox.kernel.http.multipart import MultipartForm, boundary_of
from pillarbox.kernel.http.request import Request
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.wire.problems import (
    Invalid,
    InvalidField,
    MissingField,
    NotFound,
    OutcomeUnknown,
    Problem,
    ServerOverloaded,
    TooLarge,
    UnsupportedBody,
)
from pillarbox.kernel.work import job_queries
from pillarbox.teams.allowances import TooMany

MOST_BYTES: Final = 209_715_200
BODY_LIMIT: Final = MOST_BYTES + 8 * 1024 * 1024
"""The file and the other parts of the form."""

MOST_OPEN: Final = 100
"""Imports of a team that have not ended."""

UPLOADS: Final = 16
UPLOADS_OF_TEAM: Final = 4
"""Files that may come in at the same time in one process: each holds two megabytes."""


class Slots:
    """The uploads that are running in this process, by team."""

    def __init__(self) -> None:
        self._teams: Counter[UUID] = Counter()

    @contextmanager
    def taken(self, team_id: UUID) -> Iterator[None]:
        """Count one upload of the team; 503 where there are too many."""
        if self._teams.total() >= UPLOADS or self._teams[team_id] >= UPLOADS_OF_TEAM:
            refused = ServerOverloaded("Too many files are being uploaded. Try again later.", 10)
            refused.headers.update(CLOSE)
            raise refused
        self._teams[team_id] += 1
        try:
            yield
        finally:
            self._teams[team_id] -= 1
            self._teams += Counter()


@dataclass(slots=True)
class ImportUpload:
    """A file while it is being uploaded: its size so far, its beginning (`head`), and whether it is UTF-8."""

    size: int = 0
    head: bytearray = field(default_factory=bytearray)
    utf8: Utf8Check = field(default_factory=Utf8Check)

    async def passing(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the same octets; 413 where they become too many."""
        async for piece in pieces:
            self.size += len(piece)
            if self.size > MOST_BYTES:
                raise TooLarge(f"The file is larger than {MOST_BYTES} bytes.", CLOSE)
            if len(self.head) < HEAD:
                self.head += piece[: HEAD - len(self.head)]
            self.utf8.take(piece)
            yield piece

    def header(self) -> tuple[str, CsvHeader]:
        """Return the encoding of the whole file, and its header row."""
        encoding, mark = encoding_of(bytes(self.head), is_utf8=self.utf8.is_valid())
        try:
            return encoding, header_of(bytes(self.head), encoding, mark, is_whole=self.size <= len(self.head))
        except HeaderFault as fault:
            raise InvalidField(FILE, str(fault)) from None


@dataclass(frozen=True, slots=True)
class ImportIntake:
    """Takes files."""

    blobs: BlobStore
    ids: Ids
    room: DiskSpace
    wake: Callable[[], None]
    slots: Slots = field(default_factory=Slots)

    async def take(self, request: Request, db: TeamDb) -> UUID:
        """Store the file that the request brings and make its import; its id."""
        boundary = boundary_of(request.raw_header(b"content-type"))
        if boundary is None or request.cycle is None:
            raise ImportUploadRefused("The content type must be `multipart/form-data` with a boundary.")
        encoding = request.raw_header(b"content-encoding")
        if encoding is not None and encoding.strip().lower() not in (b"", b"identity"):
            raise UnsupportedBody("The content encoding is not supported.", CLOSE)
        self.room.check()
        with self.slots.taken(db.team_id):
            form = MultipartForm(request.cycle, boundary, BODY_LIMIT)
            stamp = self.ids.stamp()
            key = key_of(stamp.id)
            try:
                upload, options = await self._received(form, key)
                await faults.point("import.stored")
                await self._made(db, stamp.id, stamp.at, upload, options)
                self.wake()
            except OutcomeUnknown:
                raise
            except BaseException as failure:
                await self._forget(key)
                if isinstance(failure, Problem):
                    failure.headers = {**failure.headers, **CLOSE}
                raise
        return stamp.id

    async def take_pieces(self, db: TeamDb, pieces: AsyncIterator[bytes], options: ImportOptions) -> UUID:
        """Store an import whose file does not come as a form; return its id."""
        stamp = self.ids.stamp()
        key, upload = key_of(stamp.id), ImportUpload()
        try:
            await self.blobs.put(key, upload.passing(pieces))
            if not upload.size:
                raise InvalidField(FILE, "It is empty.")
            await self._made(db, stamp.id, stamp.at, upload, options)
            self.wake()
        except OutcomeUnknown:
            raise
        except BaseException:
            await self._forget(key)
            raise
        return stamp.id

    async def _received(self, form: MultipartForm, key: str) -> tuple[ImportUpload, ImportOptions]:
        """Return the file and the options of the form. Each field is checked when it comes."""
        upload: ImportUpload | None = None
        fields: dict[str, str] = {}
        while (part := await form.next()) is not None:
            if part.name == FILE:
                if upload is not None:
                    raise InvalidField(FILE, "It is given twice.")
                upload = ImportUpload()
                await self.blobs.put(key, upload.passing(form.pieces()))
            elif part.name in FIELDS:
                if part.name in fields:
                    raise InvalidField(part.name, "It is given twice.")
                fields[part.name] = await form.text(LONGEST_FIELD)
                options_of({part.name: fields[part.name]})
        if upload is None:
            raise MissingField(FILE)
        if not upload.size:
            raise InvalidField(FILE, "It is empty.")
        return upload, options_of(fields)

    async def _made(
        self, db: TeamDb, import_id: UUID, now: datetime, upload: ImportUpload, options: ImportOptions
    ) -> None:
        """Check the file against what the team has, and make the import with its properties, or nothing."""
        encoding, header = await in_thread(upload.header)
        columns = columns_of(options.columns, header.cells)
        # The database reads no JSON with a NUL.
        checkpoint = Checkpoint(encoding, header.delimiter.strip(NO_DELIMITER), header.end)
        async with db.transaction() as inside:
            stored = await self.checked(inside, columns, options.segments, options.topics)
            await queries.insert(
                inside,
                import_id,
                "skip" if options.is_skip else "upsert",
                columns=_json(stored),
                segments=_json(options.segments),
                topics=_json(options.topics),
                blob=key_of(import_id),
                size=upload.size,
                checkpoint=_json(checkpoint),
                now=now,
            )
            await self.hasten(inside)

    async def checked(
        self, db: TeamDb, columns: ColumnPositions, segments: Sequence[UUID], topics: Mapping[UUID, str]
    ) -> StoredColumns:
        """Return the columns as an import stores them, with properties that are new; they, the segments and
        the topics stay until the transaction ends. 403 where too many imports have not ended."""
        if await queries.count_open(db) >= MOST_OPEN:
            raise TooMany(MOST_OPEN, "imports that have not ended")
        stored = await self._stored_columns(db, columns)
        await self._check_segments(db, segments)
        if len(await queries.hold_topics(db, list(topics))) < len(topics):
            raise NotFound("Topic")
        return stored

    async def hasten(self, db: TeamDb) -> None:
        """See to it that the imports of the team are done."""
        await job_queries.hasten(db, self.ids.new(), queries.JOB, db.team_id, self.ids.now())

    async def _check_segments(self, db: TeamDb, segments: Sequence[UUID]) -> None:
        held = await queries.hold_segments(db, segments)
        for segment_id in segments:
            if segment_id not in held:
                if await segment_queries.conditions_of(db, segment_id) is not None:
                    raise MembersByConditions
                raise NotFound("Segment")

    async def _stored_columns(self, db: TeamDb, columns: ColumnPositions) -> StoredColumns:
        wanted = {key: kind for key, (_, kind) in columns.properties.items()}
        numbers = await property_columns.numbers_of(db, self.ids, wanted) if wanted else {}
        properties = [(numbers[key], at, kind) for key, (at, kind) in columns.properties.items()]
        return StoredColumns(dict(columns.fields), properties)

    async def _forget(self, key: str) -> None:
        """Remove a file that no import names; one that stays is collected as an orphan."""
        with contextlib.suppress(BlobFailed):
            await self.blobs.delete(key)


class ImportUploadRefused(Invalid):
    """422 before the body was read: the connection is closed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, CLOSE)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
