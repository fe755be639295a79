"""Shapes of the import endpoints (contact-imports.md); field order is the contract's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, get_args
from uuid import UUID

from msgspec import Meta, Struct
from msgspec.structs import fields

from pillarbox.contacts.imports import options
from pillarbox.contacts.imports.columns import DEFAULT_MAP, ColumnMap, HeaderMap
from pillarbox.contacts.imports.options import ImportOptions
from pillarbox.contacts.imports.queries import ImportCounts, ListedError
from pillarbox.contacts.imports.upload_queries import ImportRecord
from pillarbox.contacts.wire import Choices, Segments, Topics
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import parse, read_by, word_reader
from pillarbox.kernel.wire.instants import IsoTime
from pillarbox.kernel.wire.shapes import from_row

Status = Literal["queued", "in_progress", "completed", "failed"]
STATUSES = ("queued", "in_progress", "completed", "failed")

FILE: Final = "file"

OnConflict = Literal["upsert", "skip"]
File = Annotated[
    str, Meta(extra_json_schema={"format": "binary", "description": "CSV, at most 209715200 bytes."})
]


class NewImport(Struct, kw_only=True):
    """The parts of the form; those that are objects or arrays are JSON."""

    file: Annotated[File, read_by(options.no_text, absent=True)]
    column_map: Annotated[HeaderMap, shown_as(ColumnMap), read_by(options.header_map)] | None = None
    on_conflict: Annotated[OnConflict, read_by(word_reader(get_args(OnConflict)))] = "upsert"
    segments: Annotated[list[UUID], shown_as(Segments), read_by(options.segments)] | None = None
    topics: Annotated[Choices, shown_as(Topics), read_by(options.choices)] | None = None

    def options(self) -> ImportOptions:
        segments = list(dict.fromkeys(self.segments or ()))
        columns = self.column_map or DEFAULT_MAP
        return ImportOptions(columns, self.on_conflict == "skip", segments, self.topics or {})


FIELDS: Final = tuple(field.encode_name for field in fields(NewImport) if field.encode_name != FILE)
"""The parts besides the file."""


def options_of(form: Mapping[str, str]) -> ImportOptions:
    """Return the options that the fields of a form ask for; an empty field is as good as none."""
    given = {name: text.strip() for name, text in form.items() if text.strip()}
    return parse(NewImport, given).options()


class ImportRef(Struct, kw_only=True):
    object: Literal["contact_import"]
    id: UUID


class Counts(Struct, kw_only=True):
    """Data rows of the file so far; `total` is the sum of the others."""

    total: int
    created: int
    updated: int
    skipped: int
    failed: int


class Import(Struct, kw_only=True):
    object: Literal["contact_import"]
    id: UUID
    status: Status
    created_at: IsoTime
    completed_at: IsoTime | None
    counts: Counts


class RowError(Struct, kw_only=True):
    """A data row that was not applied, or in which the file ended."""

    id: UUID
    row: int
    email: str | None
    reason: str


class ImportUndoRef(Struct, kw_only=True):
    object: Literal["contact_import"]
    id: UUID


class ImportUndoState(Struct, kw_only=True):
    """How far an import is undone: contacts that were removed, and those that somebody changed since."""

    object: Literal["contact_import_undo"]
    id: UUID
    requested_at: IsoTime | None
    completed_at: IsoTime | None
    removed: int
    kept: int


def shown_undo(record: ImportRecord) -> ImportUndoState:
    return from_row(
        ImportUndoState,
        record,
        object="contact_import_undo",
        requested_at=record.undo_requested_at,
        completed_at=record.undone_at,
        removed=record.undo_removed,
        kept=record.undo_kept,
    )


def shown(import_counts: ImportCounts) -> Import:
    total = import_counts.created + import_counts.updated + import_counts.skipped + import_counts.failed
    return from_row(
        Import,
        import_counts,
        object="contact_import",
        counts=Counts(
            total=total,
            created=import_counts.created,
            updated=import_counts.updated,
            skipped=import_counts.skipped,
            failed=import_counts.failed,
        ),
    )


def shown_error(listed_error: ListedError) -> RowError:
    return from_row(RowError, listed_error, row=listed_error.row_number)
