"""Content that many emails share: each of them is rendered from it (docs/decisions/0076)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from pillarbox.emails.broadcast_copies import content_queries
from pillarbox.emails.broadcast_copies.content_queries import SharedContentRow
from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContent:
    """The content that emails share, with its placeholders."""

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
    row = SharedContentRow(
        id=content.id,
        created_at=content.created_at,
        sender=content.sender,
        subject=content.subject,
        reply_to_list=replies,
        preview_text=content.preview_text,
        html=content.html,
        text=content.text,
    )
    await content_queries.insert_shared(db, row)


async def remove(db: TeamDb, content_id: UUID) -> None:
    """Delete it, where no email needs it any more."""
    await content_queries.delete(db, content_id)


async def empty(db: TeamDb, content_id: UUID) -> bool:
    """Delete its bodies alone, as those of other mail; False where there are none."""
    return await content_queries.empty(db, content_id)
