"""Files that people bring on a screen: stored, looked at, mapped, and then imported (contact-imports.md 9).

A file waits as a row of its own until somebody has mapped its columns. XLSX is turned into CSV while it is
received; what is stored and read later is CSV.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.contact_properties.columns import refuse_keys
from pillarbox.contacts.imports import upload_queries
from pillarbox.contacts.imports.batch_transaction import Checkpoint
from pillarbox.contacts.imports.columns import ColumnPositions
from pillarbox.contacts.imports.dialect import NO_DELIMITER
from pillarbox.contacts.imports.files import key_of
from pillarbox.contacts.imports.intake import ImportIntake, ImportUpload
from pillarbox.contacts.imports.preview import FilePreview, preview_of
from pillarbox.contacts.imports.spreadsheets import MAGIC, OLD_MAGIC, SpreadsheetFault, Spreadsheets
from pillarbox.contacts.imports.upload_queries import ImportRecord, NewUpload, WaitingUpload
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.storage.blobs import BlobFailed
from pillarbox.kernel.wire.problems import Invalid, InvalidField, NotFound, OutcomeUnknown
from pillarbox.teams.allowances import TooMany

MOST_WAITING: Final = 20
"""Files of a team that wait to be mapped."""

LONGEST_NOTE: Final = 2000
LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WizardChoices:
    """The choices of a person for a file: its columns, what happens to contacts that exist, where contacts
    belong, and where these people come from."""

    columns: ColumnPositions
    is_skip: bool
    segments: Sequence[UUID]
    topics: Mapping[UUID, str]
    consent_note: str


@dataclass(frozen=True, slots=True)
class ImportUploads:
    """Takes files for the wizard, and starts their imports."""

    intake: ImportIntake
    spreadsheets: Spreadsheets = field(default_factory=Spreadsheets)

    async def take(self, db: TeamDb, pieces: AsyncIterator[bytes], name: str, created_by: str) -> UUID:
        """Store a file and return its id; 422 where it has no header row, 403 where too many wait."""
        intake = self.intake
        intake.room.check()
        if await upload_queries.count(db) >= MOST_WAITING:
            raise TooMany(MOST_WAITING, "files that wait to be imported")
        stamp = intake.ids.stamp()
        key, upload = key_of(stamp.id), ImportUpload()
        try:
            with intake.slots.taken(db.team_id):
                await intake.blobs.put(key, upload.passing(self._as_csv(pieces)))
            if not upload.size:
                raise InvalidField("file", "It is empty.")
            encoding, header = await in_thread(upload.header)
            preview = await in_thread(preview_of, bytes(upload.head), encoding, header)
            checkpoint = Checkpoint(encoding, header.delimiter.strip(NO_DELIMITER), header.end)
            await upload_queries.insert(
                db,
                NewUpload(
                    id=stamp.id,
                    blob=key,
                    size=upload.size,
                    checkpoint=_json(checkpoint),
                    preview=_json(preview).replace("\\u0000", ""),
                    file_name=shown_name(name),
                    created_by=created_by,
                ),
                stamp.at,
            )
        except OutcomeUnknown:
            raise
        except BaseException:
            await self._forget(key)
            raise
        return stamp.id

    async def start(self, db: TeamDb, upload_id: UUID, choices: WizardChoices) -> UUID:
        """Make the import of a file, with properties that are new, and return its id; 404 where the file does
        not wait any more."""
        if not choices.consent_note:
            raise Invalid("Say where these people come from.")
        if len(choices.consent_note) > LONGEST_NOTE:
            raise Invalid(f"The note may have at most {LONGEST_NOTE} characters.")
        refuse_keys(list(choices.columns.properties), "properties")
        stamp = self.intake.ids.stamp()
        async with db.transaction() as inside:
            stored = await self.intake.checked(inside, choices.columns, choices.segments, choices.topics)
            started = await upload_queries.start(
                inside,
                upload_id,
                stamp.id,
                "skip" if choices.is_skip else "upsert",
                columns=_json(stored),
                segments=_json(choices.segments),
                topics=_json(choices.topics),
                consent_note=choices.consent_note,
                now=stamp.at,
            )
            if not started:
                raise NotFound("Uploaded file")
            await self.intake.hasten(inside)
            after_commit(inside.connection, self.intake.wake)
        return stamp.id

    async def discard(self, db: TeamDb, upload_id: UUID) -> None:
        """Remove a file that waits; 404 where it does not."""
        blob = await upload_queries.remove(db, upload_id)
        if blob is None:
            raise NotFound("Uploaded file")
        await self._forget(blob)

    async def _as_csv(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the octets of a CSV file as they come, those of a spreadsheet as CSV."""
        head = b""
        while len(head) < len(MAGIC) and (piece := await anext(pieces, None)) is not None:
            head += piece
        rest = _behind(head, pieces)
        if head.startswith(OLD_MAGIC):
            raise SpreadsheetFault("Files of old spreadsheets cannot be read. Save it as XLSX or CSV.")
        async for piece in self.spreadsheets.csv_of(rest) if head.startswith(MAGIC) else rest:
            yield piece

    async def _forget(self, key: str) -> None:
        """Remove a file that no row names; one that stays is collected as an orphan."""
        with contextlib.suppress(BlobFailed):
            await self.intake.blobs.delete(key)


async def waiting(db: TeamDb, upload_id: UUID) -> tuple[WaitingUpload, FilePreview]:
    """Return a file that waits with what is shown of it; 404 where it does not wait."""
    found = await upload_queries.find(db, upload_id)
    if found is None:
        raise NotFound("Uploaded file")
    return found, msgspec.json.decode(found.preview, type=FilePreview)


async def record_of(db: TeamDb, import_id: UUID) -> ImportRecord:
    """Return what is shown of an import besides its counts."""
    found = await upload_queries.record(db, import_id)
    if found is None:
        raise NotFound("Contact import")
    return found


async def records_of(db: TeamDb, import_ids: list[UUID]) -> dict[UUID, ImportRecord]:
    """Return the records of these imports by their ids."""
    return {one.id: one for one in await upload_queries.records(db, import_ids)}


def shown_name(name: str) -> str:
    """Return a file name as lists show it: the last part of a path, in one line."""
    last = re.split(r"[\\/]", name)[-1]
    return re.sub(r"[\x00-\x1f\x7f]+", " ", last).strip()[:LONGEST_NAME]


async def _behind(head: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if head:
        yield head
    async for piece in pieces:
        yield piece


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
