"""SQL of contents that many emails share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContentRow:
    """A content that emails share. `reply_to_list` is JSON text."""

    id: UUID
    created_at: datetime
    sender: str
    subject: str
    reply_to_list: str | None
    preview_text: str | None
    html: str | None
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyContent:
    """The content of a broadcast's copies, with its placeholders. `reply_to_list` is JSON text."""

    sender: str
    reply_to_list: str | bytes | None
    subject: str
    preview_text: str | None
    html: str | None
    text: str | None


async def insert_shared(db: TeamDb, content: SharedContentRow) -> None:
    """Store a content that emails share."""
    await db.run(
        """
        INSERT INTO contents (team_id, id, created_at, sender, subject, reply_to_list, preview_text, html,
                              text)
        VALUES ($1, $2, $3, $4, $5, $6::text::json, $7, $8, $9)
        """,
        content.id,
        content.created_at,
        content.sender,
        content.subject,
        content.reply_to_list,
        content.preview_text,
        content.html,
        content.text,
    )


async def delete(db: TeamDb, content_id: UUID) -> None:
    """Delete a content."""
    await db.run("DELETE FROM contents WHERE team_id = $1 AND id = $2", content_id)


async def empty(db: TeamDb, content_id: UUID) -> bool:
    """Delete the bodies of a content; return False where it has none."""
    emptied = await db.run(
        """
        UPDATE contents SET html = NULL, text = NULL, preview_text = NULL
         WHERE team_id = $1 AND id = $2 AND (html IS NOT NULL OR text IS NOT NULL)
        """,
        content_id,
    )
    return emptied > 0


async def of_copies(conn: Connection, team_id: UUID, content_id: UUID) -> CopyContent | None:
    """Return the content that copies of a broadcast share."""
    row = await conn.fetchrow(
        """
        SELECT sender, reply_to_list, subject, preview_text, html, text
          FROM contents
         WHERE team_id = $1 AND id = $2
        """,
        team_id,
        content_id,
    )
    return None if row is None else CopyContent(**row)
