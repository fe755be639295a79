"""Content that many emails share: each of them is rendered from it (docs/decisions/0076)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContent:
    """What the emails share, with its placeholders."""

    id: UUID
    created_at: datetime
    sender: str
    subject: str
    reply_to: Sequence[str] | None
    preview_text: str | None
    html: str | None
    text: str | None


async def insert(db: TeamDb, content: SharedContent) -> None:
    """Store it, in the transaction that decides that there will be such emails."""
    replies = None if content.reply_to is None else msgspec.json.encode(content.reply_to).decode()
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
        replies,
        content.preview_text,
        content.html,
        content.text,
    )


async def remove(db: TeamDb, content_id: UUID) -> None:
    """Delete it, where no email needs it any more."""
    await db.run("DELETE FROM contents WHERE team_id = $1 AND id = $2", content_id)


async def empty(db: TeamDb, content_id: UUID) -> bool:
    """Delete its bodies alone, as those of other mail; False where there are none."""
    return bool(
        await db.run(
            """
            UPDATE contents SET html = NULL, text = NULL, preview_text = NULL
             WHERE team_id = $1 AND id = $2 AND (html IS NOT NULL OR text IS NOT NULL)
            """,
            content_id,
        )
    )
