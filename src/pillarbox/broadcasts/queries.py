"""SQL of the broadcasts as their team sees them. A segment that was deleted, or a topic, reads as none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.broadcasts.content import BroadcastContent
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.work.collectors import changed
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

JOB_START: Final = "broadcast.start"
JOB_WATCH: Final = "broadcast.watch"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBroadcast:
    """A broadcast in a list."""

    id: UUID
    name: str | None
    segment_id: UUID | None
    topic_id: UUID | None
    status: str
    created_at: datetime
    scheduled_at: datetime | None
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A broadcast of a team."""

    id: UUID
    content: BroadcastContent
    status: str
    created_at: datetime
    scheduled_at: datetime | None = None
    queued_at: datetime | None = None
    sent_at: datetime | None = None
    key_id: UUID | None = None


def _broadcast(
    *, name: str | None, segment_id: UUID | None, topic_id: UUID | None, sender: str, subject: str,
    reply_to_list: str | None, preview_text: str | None, html: str | None, text: str | None, **more: Any,
) -> Broadcast:  # fmt: skip
    replies = None if reply_to_list is None else msgspec.json.decode(reply_to_list, type=tuple[str, ...])
    content = BroadcastContent(
        name=name,
        segment_id=segment_id,
        topic_id=topic_id,
        sender=sender,
        subject=subject,
        reply_to=replies,
        preview_text=preview_text,
        html=html,
        text=text,
    )
    return Broadcast(content=content, **more)


def _columns(content: BroadcastContent) -> Sequence[object]:
    """Return the content's fields as arguments of a statement, in the order of its columns."""
    replies = None if content.reply_to is None else msgspec.json.encode(content.reply_to).decode()
    return (
        content.name,
        content.segment_id,
        content.topic_id,
        content.sender,
        content.subject,
        replies,
        content.preview_text,
        content.html,
        content.text,
    )


async def insert(db: TeamDb, new: Broadcast) -> None:
    await db.run(
        """
        INSERT INTO broadcasts (team_id, id, status, created_at, scheduled_at, queued_at, key_id, name,
                                segment_id, topic_id, sender, subject, reply_to_list, preview_text, html,
                                text)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::text::json, $14, $15, $16)
        """,
        new.id,
        new.status,
        new.created_at,
        new.scheduled_at,
        new.queued_at,
        new.key_id,
        *_columns(new.content),
    )


async def page(db: TeamDb, page: Page) -> list[ListedBroadcast]:
    return await db.all(
        ListedBroadcast,
        """
        SELECT id, name, status, created_at, scheduled_at, sent_at,
               (SELECT s.id FROM segments s WHERE s.team_id = $1 AND s.id = page.segment_id) AS segment_id,
               (SELECT t.id FROM topics t
                 WHERE t.team_id = $1 AND t.id = page.topic_id AND t.deleted_at IS NULL) AS topic_id
          FROM ((SELECT *
                   FROM broadcasts WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
                UNION ALL
                (SELECT *
                   FROM broadcasts WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)) AS page
        """,
        *page.args,
    )


async def get(db: TeamDb, broadcast_id: UUID) -> Broadcast | None:
    return await db.one(
        _broadcast,
        """
        SELECT b.id, b.name, b.sender, b.subject, b.reply_to_list, b.preview_text, b.html, b.text, b.status,
               b.created_at, b.scheduled_at, b.queued_at, b.sent_at, b.key_id,
               (SELECT s.id FROM segments s WHERE s.team_id = $1 AND s.id = b.segment_id) AS segment_id,
               (SELECT t.id FROM topics t
                 WHERE t.team_id = $1 AND t.id = b.topic_id AND t.deleted_at IS NULL) AS topic_id
          FROM broadcasts b
         WHERE b.team_id = $1 AND b.id = $2
        """,
        broadcast_id,
    )


async def hold(db: TeamDb, broadcast_id: UUID) -> None:
    """Lock the broadcast until the transaction ends. Read its content afterwards, by a statement of its own:
    one that waited would still see the segment and topic of before."""
    await db.run("SELECT FROM broadcasts WHERE team_id = $1 AND id = $2 FOR NO KEY UPDATE", broadcast_id)


async def rename(db: TeamDb, broadcast_id: UUID, name: str | None) -> None:
    await db.run("UPDATE broadcasts SET name = $3 WHERE team_id = $1 AND id = $2", broadcast_id, name)


async def update(db: TeamDb, broadcast_id: UUID, content: BroadcastContent, *, other_topic: bool) -> None:
    """Write the content of a broadcast that is held. Its topic stays unless it is to have another one: a
    topic that was deleted reads as none, and what contacts chose of it still counts for mail that is
    scheduled."""
    await db.run(
        """
        UPDATE broadcasts
           SET name = $3, segment_id = $4, topic_id = CASE WHEN $12 THEN $5 ELSE topic_id END, sender = $6,
               subject = $7, reply_to_list = $8::text::json, preview_text = $9, html = $10, text = $11
         WHERE team_id = $1 AND id = $2
        """,
        broadcast_id,
        *_columns(content),
        other_topic,
    )


async def queue(
    db: TeamDb,
    broadcast_id: UUID,
    *,
    scheduled_at: datetime | None,
    queued_at: datetime | None,
    key_id: UUID | None,
) -> bool:
    """Move a draft to `queued`, or to `scheduled` where `queued_at` is None; False where it is no draft. A
    topic that was deleted is removed from it."""
    return bool(
        await db.run(
            """
            UPDATE broadcasts b
               SET status = CASE WHEN $4::timestamptz IS NULL THEN 'scheduled' ELSE 'queued' END,
                   scheduled_at = $3, queued_at = $4, key_id = $5,
                   topic_id = (SELECT t.id FROM topics t
                                WHERE t.team_id = $1 AND t.id = b.topic_id AND t.deleted_at IS NULL)
             WHERE b.team_id = $1 AND b.id = $2 AND b.status = 'draft'
            """,
            broadcast_id,
            scheduled_at,
            queued_at,
            key_id,
        )
    )


async def cancel(db: TeamDb, broadcast_id: UUID) -> str | None:
    """Move `scheduled` to a draft, `queued` to `canceled`; return the new state, or None in any other."""
    found: str | None = await db.value(
        """
        UPDATE broadcasts
           SET status = CASE status WHEN 'scheduled' THEN 'draft' ELSE 'canceled' END,
               scheduled_at = CASE status WHEN 'scheduled' THEN NULL ELSE scheduled_at END,
               paused_at = NULL, paused_for = NULL
         WHERE team_id = $1 AND id = $2 AND status IN ('scheduled', 'queued')
        RETURNING status
        """,
        broadcast_id,
    )
    return found


async def is_given_up(db: TeamDb, broadcast_id: UUID) -> bool:
    """Return whether it is being sent, and its job has ended its process so often that it is tried once a
    day."""
    found = await db.value(
        """
        SELECT true
          FROM broadcasts b
          JOIN jobs j ON j.team_id = b.team_id AND j.subject_id = b.id AND j.kind = ANY ($3::text[])
         WHERE b.team_id = $1 AND b.id = $2 AND b.status = 'queued' AND j.owner IS NULL
           AND j.attempt > j.tries AND j.begun >= $4
         LIMIT 1
        """,
        broadcast_id,
        (JOB_START, JOB_WATCH),
        MOST_BEGUN,
    )
    return found is True


async def remove(db: TeamDb, broadcast_id: UUID) -> None:
    await db.run("DELETE FROM broadcasts WHERE team_id = $1 AND id = $2", broadcast_id)


async def segment_exists(db: TeamDb, segment_id: UUID) -> bool:
    found = await db.value("SELECT true FROM segments WHERE team_id = $1 AND id = $2", segment_id)
    return found is True


async def is_metered(db: TeamDb) -> bool:
    """Return whether the team has a quota."""
    found = await db.value(
        """
        SELECT daily_quota IS NOT NULL OR monthly_quota IS NOT NULL
          FROM (SELECT id AS team_id, daily_quota, monthly_quota FROM teams) AS t
         WHERE t.team_id = $1
        """
    )
    return found is True


# After a restore, of all teams ----------------------------------------------------------------------


async def pause_all(conn: Connection, reason: str, now: datetime) -> None:
    """Pause every broadcast that is being sent."""
    await conn.execute(
        """
        UPDATE broadcasts SET paused_at = $1, paused_for = $2 WHERE status = 'queued' AND paused_at IS NULL
        """,
        now,
        reason,
    )


async def resume_all(conn: Connection, reason: str, now: datetime) -> None:
    """Resume every broadcast that was paused for this reason."""
    await conn.execute(
        """
        UPDATE broadcasts SET paused_at = NULL, paused_for = NULL, resumed_at = $1 WHERE paused_for = $2
        """,
        now,
        reason,
    )


async def release_restored_jobs(conn: Connection, due_after: datetime | None) -> int:
    """Let the jobs that were put aside be due again, or those alone that begin after an instant; return how
    many."""
    status = await conn.execute(
        """
        UPDATE jobs SET due_at = restored_due_at, restored_due_at = NULL
         WHERE restored_due_at IS NOT NULL AND owner IS NULL AND kind = ANY ($1::text[])
           AND ($2::timestamptz IS NULL OR kind = $3 AND restored_due_at > $2)
        """,
        (JOB_START, JOB_WATCH),
        due_after,
        JOB_START,
    )
    return changed(status)


async def give_up_restored(conn: Connection) -> int:
    """Make drafts again of scheduled broadcasts whose jobs were put aside, and cancel those that are being
    sent; return how many."""
    status = await conn.execute(
        """
        UPDATE broadcasts b
           SET status = CASE b.status WHEN 'scheduled' THEN 'draft' ELSE 'canceled' END,
               scheduled_at = CASE b.status WHEN 'scheduled' THEN NULL ELSE b.scheduled_at END,
               paused_at = NULL, paused_for = NULL
          FROM jobs j
         WHERE j.restored_due_at IS NOT NULL AND j.owner IS NULL AND j.kind = ANY ($1::text[])
           AND b.team_id = j.team_id AND b.id = j.subject_id AND b.status IN ('scheduled', 'queued')
        """,
        (JOB_START, JOB_WATCH),
    )
    return changed(status)
