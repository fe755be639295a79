"""Shapes of the import endpoints (contact-imports.md); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.contacts.imports.queries import ImportCounts, ListedError
from pillarbox.contacts.wire import Segments, Topics
from pillarbox.kernel.wire.instants import IsoTime, iso_style

Status = Literal["queued", "in_progress", "completed", "failed"]
STATUSES = ("queued", "in_progress", "completed", "failed")

File = Annotated[
    str, Meta(extra_json_schema={"format": "binary", "description": "CSV, at most 209715200 bytes."})
]


class PropertyColumn(Struct):
    """The header text of a property's column."""

    column: str
    type: Literal["string", "number", "boolean"] = "string"


class ColumnMap(Struct):
    """Header texts of the file by field."""

    email: str = "email"
    first_name: str | None = None
    last_name: str | None = None
    unsubscribed: str | None = None
    properties: dict[str, PropertyColumn] | None = None


class NewImport(Struct):
    """The parts of the form; those that are objects or arrays are JSON."""

    file: File
    column_map: ColumnMap | None = None
    on_conflict: Literal["upsert", "skip"] = "upsert"
    segments: Segments | None = None
    topics: Topics | None = None


class ImportRef(Struct):
    object: Literal["contact_import"]
    id: UUID


class Counts(Struct):
    """Data rows of the file so far; `total` is the sum of the others."""

    total: int
    created: int
    updated: int
    skipped: int
    failed: int


class Import(Struct):
    object: Literal["contact_import"]
    id: UUID
    status: Status
    created_at: IsoTime
    completed_at: IsoTime | None
    counts: Counts


class RowError(Struct):
    """A data row that was not applied, or in which the file ended."""

    id: UUID
    row: int
    email: str | None
    reason: str


def shown(import_counts: ImportCounts) -> Import:
    total = import_counts.created + import_counts.updated + import_counts.skipped + import_counts.failed
    return Import(
        "contact_import",
        import_counts.id,
        import_counts.status,  # type: ignore[arg-type]
        iso_style(import_counts.created_at),
        None if import_counts.completed_at is None else iso_style(import_counts.completed_at),
        Counts(
            total, import_counts.created, import_counts.updated, import_counts.skipped, import_counts.failed
        ),
    )


def shown_error(listed_error: ListedError) -> RowError:
    return RowError(listed_error.id, listed_error.row_number, listed_error.email, listed_error.reason)
