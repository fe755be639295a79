"""SQL of files that wait until their columns are mapped, and of what the wizard keeps of imports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUpload:
    """A file that was stored. What is JSON here is text."""

    id: UUID
    blob: str
    size: int
    checkpoint: str
    preview: str
    file_name: str
    created_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingUpload:
    """A file that waits until its columns are mapped."""

    id: UUID
    size: int
    preview: str
    file_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """The parts of an import besides its counts: where it comes from, how far it is, and its undoing."""

    id: UUID
    file_name: str | None
    created_by: str | None
    consent_note: str | None
    on_conflict: str
    size: int
    position: int | None
    reason: str | None
    undo_requested_at: datetime | None
    undone_at: datetime | None
    undo_removed: int
    undo_kept: int


async def insert(db: TeamDb, upload: NewUpload, now: datetime) -> None:
    await db.run(
        """
        INSERT INTO contact_imports
               (team_id, id, status, on_conflict, columns, segments, topics, blob, size, checkpoint, preview,
                file_name, created_by, created_at)
        VALUES ($1, $2, 'uploaded', 'skip', '{}', '[]', '{}', $3, $4, $5::text::json, $6::text::json, $7, $8,
                $9)
        """,
        upload.id,
        upload.blob,
        upload.size,
        upload.checkpoint,
        upload.preview,
        upload.file_name,
        upload.created_by,
        now,
    )


async def count(db: TeamDb) -> int:
    """Return how many files of the team wait to be mapped."""
    found: int = await db.value(
        "SELECT count(*) FROM contact_imports WHERE team_id = $1 AND status = 'uploaded'"
    )
    return found


async def find(db: TeamDb, upload_id: UUID) -> WaitingUpload | None:
    """Return a file that waits to be mapped."""
    return await db.one(
        WaitingUpload,
        """
        SELECT id, size, preview::text, file_name, created_at
          FROM contact_imports
         WHERE team_id = $1 AND id = $2 AND status = 'uploaded'
        """,
        upload_id,
    )


async def start(
    db: TeamDb,
    upload_id: UUID,
    import_id: UUID,
    on_conflict: str,
    *,
    columns: str,
    segments: str,
    topics: str,
    consent_note: str,
    now: datetime,
) -> bool:
    """Make an import of a file that waits; False where it does not wait any more. The import has an id of its
    own, since imports are done in the order of ids."""
    status = await db.run(
        """
        UPDATE contact_imports
           SET id = $3, status = 'queued', on_conflict = $4, columns = $5::text::json,
               segments = $6::text::json, topics = $7::text::json, consent_note = $8, preview = NULL,
               created_at = $9
         WHERE team_id = $1 AND id = $2 AND status = 'uploaded'
        """,
        upload_id,
        import_id,
        on_conflict,
        columns,
        segments,
        topics,
        consent_note,
        now,
    )
    return status == 1


async def remove(db: TeamDb, upload_id: UUID) -> str | None:
    """Remove a file that waits; return its blob, None where it does not wait."""
    blob: str | None = await db.value(
        """
        DELETE FROM contact_imports WHERE team_id = $1 AND id = $2 AND status = 'uploaded' RETURNING blob
        """,
        upload_id,
    )
    return blob


async def remove_old(pool: asyncpg.Pool, before: datetime, limit: int) -> list[str]:
    """Remove the rows of files, of all teams, that have waited since then; return their blobs."""
    rows = await pool.fetch(
        """
        DELETE FROM contact_imports i
         USING (SELECT team_id, id
                  FROM contact_imports
                 WHERE status = 'uploaded' AND created_at < $1
                 LIMIT $2) AS old
         WHERE i.team_id = old.team_id AND i.id = old.id AND i.status = 'uploaded'
        RETURNING i.blob
        """,
        before,
        limit,
    )
    return [row["blob"] for row in rows if row["blob"]]


async def record(db: TeamDb, import_id: UUID) -> ImportRecord | None:
    """Return what is shown of an import besides its counts."""
    return await db.one(
        ImportRecord,
        """
        SELECT id, file_name, created_by, consent_note, on_conflict, size,
               (checkpoint->>'offset')::bigint AS position, reason, undo_requested_at, undone_at,
               undo_removed, undo_kept
          FROM contact_imports
         WHERE team_id = $1 AND id = $2 AND status <> 'uploaded'
        """,
        import_id,
    )


async def records(db: TeamDb, import_ids: list[UUID]) -> list[ImportRecord]:
    """Return the records of these imports."""
    return await db.all(
        ImportRecord,
        """
        SELECT id, file_name, created_by, consent_note, on_conflict, size,
               (checkpoint->>'offset')::bigint AS position, reason, undo_requested_at, undone_at,
               undo_removed, undo_kept
          FROM contact_imports
         WHERE team_id = $1 AND id = ANY ($2::uuid[])
        """,
        import_ids,
    )
