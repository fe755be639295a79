"""SQL of the labels of an inbox."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

JOB_REMOVE: Final = "inbox.label.remove"
"""Takes a deleted label off its threads; its subject is the label."""

OF_INBOX: Final = """
    SELECT id, name, color, created_at
      FROM inbox_labels
     WHERE team_id = $1 AND inbox_id = $2
     ORDER BY created_at, id
"""

COUNT: Final = """
    SELECT count(*) FROM inbox_labels WHERE team_id = $1 AND inbox_id = $2
"""

INSERT: Final = """
    INSERT INTO inbox_labels (team_id, id, inbox_id, name, name_key, color, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""

CHANGE: Final = """
    UPDATE inbox_labels
       SET name = coalesce($4, name), name_key = coalesce($5, name_key), color = coalesce($6, color)
     WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

DELETE: Final = """
    DELETE FROM inbox_labels WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""


class Label(NamedTuple):
    """A label of an inbox."""

    id: UUID
    name: str
    color: str
    created_at: datetime


async def of_inbox(db: TeamDb, inbox_id: UUID) -> list[Label]:
    """Return the labels of an inbox, the oldest first."""
    return await db.all(Label, OF_INBOX, inbox_id)


async def count(db: TeamDb, inbox_id: UUID) -> int:
    return int(await db.value(COUNT, inbox_id))


async def insert(db: TeamDb, inbox_id: UUID, label: Label, key: str) -> None:
    await db.run(INSERT, label.id, inbox_id, label.name, key, label.color, label.created_at)


async def change(
    db: TeamDb, inbox_id: UUID, label_id: UUID, name: str | None, key: str | None, color: str | None
) -> bool:
    """Change what is not None; False where the inbox has no such label."""
    return await db.run(CHANGE, inbox_id, label_id, name, key, color) == 1


async def delete(db: TeamDb, inbox_id: UUID, label_id: UUID) -> bool:
    """Remove a label; False where the inbox has no such label."""
    return await db.run(DELETE, inbox_id, label_id) == 1
