"""SQL of lists of threads (inboxes.md 5.1).

The ids of a page are read from an index, as far as the page goes: each value of `list_class`, and each label,
is one range of it. The rows of the page are read by their ids then, for lists and for search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.inboxes.threads.list_filter import FolderName
from pillarbox.kernel.postgres.database import TeamDb

PLACE = """
    SELECT received_at, id, list_class FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

OLDER = """
    SELECT page.id
      FROM unnest($3::smallint[]) AS c (list_class)
     CROSS JOIN LATERAL (
           SELECT t.id, t.received_at
             FROM inbox_threads t
            WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.list_class = c.list_class
              AND (t.received_at, t.id) < ($4, $5)
            ORDER BY t.received_at DESC, t.id DESC
            LIMIT $6) AS page
     ORDER BY page.received_at DESC, page.id DESC
     LIMIT $6
"""

NEWER = """
    SELECT page.id
      FROM unnest($3::smallint[]) AS c (list_class)
     CROSS JOIN LATERAL (
           SELECT t.id, t.received_at
             FROM inbox_threads t
            WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.list_class = c.list_class
              AND (t.received_at, t.id) > ($4, $5)
            ORDER BY t.received_at, t.id
            LIMIT $6) AS page
     ORDER BY page.received_at, page.id
     LIMIT $6
"""

LABELLED_OLDER = """
    SELECT page.thread_id
      FROM unnest($2::uuid[]) AS k (label_id)
     CROSS JOIN unnest($3::smallint[]) AS c (list_class)
     CROSS JOIN LATERAL (
           SELECT t.thread_id, t.received_at
             FROM inbox_thread_labels t
            WHERE t.team_id = $1 AND t.label_id = k.label_id AND t.list_class = c.list_class
              AND (t.received_at, t.thread_id) < ($4, $5)
            ORDER BY t.received_at DESC, t.thread_id DESC
            LIMIT $6) AS page
     GROUP BY page.received_at, page.thread_id
     ORDER BY page.received_at DESC, page.thread_id DESC
     LIMIT $6
"""

LABELLED_NEWER = """
    SELECT page.thread_id
      FROM unnest($2::uuid[]) AS k (label_id)
     CROSS JOIN unnest($3::smallint[]) AS c (list_class)
     CROSS JOIN LATERAL (
           SELECT t.thread_id, t.received_at
             FROM inbox_thread_labels t
            WHERE t.team_id = $1 AND t.label_id = k.label_id AND t.list_class = c.list_class
              AND (t.received_at, t.thread_id) > ($4, $5)
            ORDER BY t.received_at, t.thread_id
            LIMIT $6) AS page
     GROUP BY page.received_at, page.thread_id
     ORDER BY page.received_at, page.thread_id
     LIMIT $6
"""

ITEMS = """
    SELECT t.id, t.subject, t.folder, t.messages, t.has_attachment, t.drafts, t.unread, t.received_at,
           m.sender, m.to_list, m.cc_list, m.bcc_list,
           (SELECT json_agg(json_build_object('id', l.id, 'name', l.name, 'color', l.color)
                            ORDER BY l.created_at, l.id)
              FROM inbox_thread_labels tl
              JOIN inbox_labels l ON l.team_id = tl.team_id AND l.id = tl.label_id
             WHERE tl.team_id = t.team_id AND tl.thread_id = t.id) AS labels
      FROM unnest($3::uuid[]) WITH ORDINALITY AS k (id, place)
      JOIN inbox_threads t ON t.team_id = $1 AND t.inbox_id = $2 AND t.id = k.id
      JOIN inbox_messages m ON m.team_id = $1 AND m.inbox_id = $2 AND m.id = t.last_message_id
     ORDER BY k.place
"""

KNOWN_LABELS = """
    SELECT id FROM inbox_labels WHERE team_id = $1 AND inbox_id = $2 AND id = ANY ($3::uuid[])
"""

DIGEST = """
    SELECT concat_ws(' ', i.unread, i.drafts, i.updated_at,
                     (SELECT md5(string_agg(concat_ws(' ', n.id, n.messages, n.unread, n.drafts), ','
                                            ORDER BY n.list_class, n.received_at DESC, n.id DESC))
                        FROM generate_series(0, 19) AS c (number)
                       CROSS JOIN LATERAL (
                             SELECT t.id, t.messages, t.unread, t.drafts, t.list_class, t.received_at
                               FROM inbox_threads t
                              WHERE t.team_id = i.team_id AND t.inbox_id = i.id AND t.list_class = c.number
                              ORDER BY t.received_at DESC, t.id DESC
                              LIMIT 5) AS n))
      FROM inboxes i
     WHERE i.team_id = $1 AND i.id = $2
"""

DIGEST_OF_ALL = """
    SELECT md5(string_agg(concat_ws(' ', i.id, i.unread, i.drafts, i.updated_at), ',' ORDER BY i.id))
      FROM (SELECT id, unread, drafts, updated_at
              FROM inboxes
             WHERE team_id = $1
             ORDER BY id DESC
             LIMIT 100) AS i
"""

DIGEST_OF_THREAD = """
    SELECT concat_ws(' ', messages, drafts, folder, assignee)
      FROM inbox_threads
     WHERE team_id = $1 AND id = $2
"""

NEWEST_MESSAGE = """
    SELECT last_message_id FROM inbox_threads WHERE team_id = $1 AND id = $2
"""


class ThreadPosition(NamedTuple):
    """Where a thread stands in lists."""

    received_at: datetime
    id: UUID
    list_class: int


class ListedThread(NamedTuple):
    """A thread as lists show it; the `*_list` columns and `labels` hold the JSON of the wire. `sender` and
    the lists are those of the newest message."""

    id: UUID
    subject: str | None
    folder: FolderName
    messages: int
    has_attachment: bool
    drafts: int
    unread: int
    received_at: datetime
    sender: str
    to_list: str
    cc_list: str | None
    bcc_list: str | None
    labels: str | None


async def place(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> ThreadPosition | None:
    return await db.one(ThreadPosition, PLACE, inbox_id, thread_id)


async def older(
    db: TeamDb, inbox_id: UUID, classes: Sequence[int], now: datetime, thread_id: UUID, limit: int
) -> Sequence[UUID]:
    """Return the threads behind a place of the list, newest first."""
    return await db.values(OLDER, inbox_id, classes, now, thread_id, limit)


async def newer(
    db: TeamDb, inbox_id: UUID, classes: Sequence[int], now: datetime, thread_id: UUID, limit: int
) -> Sequence[UUID]:
    """Return the threads before a place of the list, the nearest first."""
    return await db.values(NEWER, inbox_id, classes, now, thread_id, limit)


async def labelled_older(
    db: TeamDb, labels: Sequence[UUID], classes: Sequence[int], now: datetime, thread_id: UUID, limit: int
) -> Sequence[UUID]:
    """Return older threads that have one of the labels."""
    return await db.values(LABELLED_OLDER, labels, classes, now, thread_id, limit)


async def labelled_newer(
    db: TeamDb, labels: Sequence[UUID], classes: Sequence[int], now: datetime, thread_id: UUID, limit: int
) -> Sequence[UUID]:
    return await db.values(LABELLED_NEWER, labels, classes, now, thread_id, limit)


async def items(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> list[ListedThread]:
    """Return these threads as lists show them, in this order; without those that are gone."""
    return await db.all(ListedThread, ITEMS, inbox_id, ids)


async def known_labels(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of the ids that are labels of the inbox."""
    return set(await db.values(KNOWN_LABELS, inbox_id, ids))


async def digest_of_inbox(db: TeamDb, inbox_id: UUID) -> str:
    """Return a text that is another one after a change of the inbox, or of its newest threads."""
    return str(await db.value(DIGEST, inbox_id))


async def digest_of_all(db: TeamDb) -> str:
    """Return a text that is another one after a change of the counts of one of the newest inboxes."""
    return str(await db.value(DIGEST_OF_ALL))


async def digest_of_thread(db: TeamDb, thread_id: UUID) -> str:
    """Return a text that is another one after a change of the thread."""
    return str(await db.value(DIGEST_OF_THREAD, thread_id))


async def newest_message(db: TeamDb, thread_id: UUID) -> UUID | None:
    """Return the newest message of the thread; None where the team has no such thread."""
    newest: UUID | None = await db.value(NEWEST_MESSAGE, thread_id)
    return newest
