"""SQL that undoes imports: contacts that an import made and nobody changed since are removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPosition:
    """An import that is being undone: from when to when it ran, and the contact behind which it goes on."""

    started_at: datetime
    completed_at: datetime
    undo_after: UUID | None


async def request(db: TeamDb, import_id: UUID, now: datetime) -> bool:
    """Note that an import that has ended is to be undone; False where it was noted before, or it runs."""
    status = await db.run(
        """
        UPDATE contact_imports
           SET undo_requested_at = $3
         WHERE team_id = $1 AND id = $2 AND status IN ('completed', 'failed') AND undo_requested_at IS NULL
        """,
        import_id,
        now,
    )
    return status == 1


async def lock_position(db: TeamDb, import_id: UUID) -> UndoPosition | None:
    """Return how far an import is undone, locked; None where there is nothing more to do."""
    return await db.one(
        UndoPosition,
        """
        SELECT coalesce(started_at, created_at) AS started_at, completed_at, undo_after
          FROM contact_imports
         WHERE team_id = $1 AND id = $2 AND undo_requested_at IS NOT NULL AND undone_at IS NULL
           FOR NO KEY UPDATE
        """,
        import_id,
    )


async def next_made(db: TeamDb, import_id: UUID, after: UUID, until: UUID, limit: int) -> list[UUID]:
    """Return the next contacts that the import made, in the order of ids. Their ids hold the time."""
    return list(
        await db.values(
            """
            SELECT id
              FROM contacts
             WHERE team_id = $1 AND id > $3 AND id < $4 AND import_id = $2
             ORDER BY id
             LIMIT $5
            """,
            import_id,
            after,
            until,
            limit,
        )
    )


async def lock_unchanged(db: TeamDb, import_id: UUID, contact_ids: Sequence[UUID]) -> list[UUID]:
    """Lock those of these contacts that nobody changed since the import, in the order of addresses."""
    return list(
        await db.values(
            """
            SELECT c.id
              FROM contacts c
             WHERE c.team_id = $1 AND c.id = ANY ($3::uuid[]) AND c.import_id = $2
               AND c.updated_at = c.imported_at
             ORDER BY c.address COLLATE "C"
               FOR UPDATE
            """,
            import_id,
            contact_ids,
        )
    )


async def without_later_choices(db: TeamDb, contact_ids: Sequence[UUID]) -> list[UUID]:
    """Return those of these contacts, which are locked, that chose nothing of topics since the import."""
    return list(
        await db.values(
            """
            SELECT c.id
              FROM contacts c
             WHERE c.team_id = $1 AND c.id = ANY ($2::uuid[])
               AND NOT EXISTS (SELECT FROM topic_choices t
                                WHERE t.team_id = $1 AND t.contact_id = c.id AND t.chosen_at > c.imported_at)
            """,
            contact_ids,
        )
    )


async def remove(db: TeamDb, contact_ids: Sequence[UUID]) -> None:
    """Delete contacts that are locked, with all that is kept of them."""
    await db.run(
        """
        WITH left_segments AS (
            DELETE FROM segment_members WHERE team_id = $1 AND contact_id = ANY ($2::uuid[])
        ), forgotten AS (
            DELETE FROM topic_choices WHERE team_id = $1 AND contact_id = ANY ($2::uuid[])
        ), engaged AS (
            DELETE FROM contact_engagement WHERE team_id = $1 AND contact_id = ANY ($2::uuid[])
        ), had_events AS (
            DELETE FROM contact_events WHERE team_id = $1 AND contact_id = ANY ($2::uuid[])
        ), terms AS (
            DELETE FROM contact_terms WHERE team_id = $1 AND contact_id = ANY ($2::uuid[])
        )
        DELETE FROM contacts WHERE team_id = $1 AND id = ANY ($2::uuid[])
        """,
        contact_ids,
    )


async def advance(db: TeamDb, import_id: UUID, after: UUID, removed: int, kept: int) -> None:
    """Count a batch, and note the contact behind which the next one begins."""
    await db.run(
        """
        UPDATE contact_imports
           SET undo_after = $3, undo_removed = undo_removed + $4, undo_kept = undo_kept + $5
         WHERE team_id = $1 AND id = $2
        """,
        import_id,
        after,
        removed,
        kept,
    )


async def end(db: TeamDb, import_id: UUID, now: datetime) -> None:
    """Note that the import is undone."""
    await db.run(
        """
        UPDATE contact_imports
           SET undone_at = $3
         WHERE team_id = $1 AND id = $2 AND undo_requested_at IS NOT NULL AND undone_at IS NULL
        """,
        import_id,
        now,
    )
