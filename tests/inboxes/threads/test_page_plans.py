"""What a page of threads reads does not grow with the inbox, whatever the filter leaves out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from kit.query_plans import plan, rows_read
from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.inboxes.messages import queries as message_queries
from pillarbox.inboxes.threads import list_queries, purge_queries, queries
from pillarbox.inboxes.threads.list_filter import list_classes
from pillarbox.inboxes.threads.lists import END_OF_TIME
from pillarbox.kernel.wire.paging import NEWEST

MANY = 20_000
MOST = 101
"""Rows of a page and one more."""

CLASSES = 20

FILL = """
    INSERT INTO inbox_threads (team_id, id, inbox_id, subject, folder, messages, inbound, unread,
                               has_attachment, last_message_id, received_at, purge_at, created_at)
    SELECT $1, id, $2, 'x', folder, CASE WHEN n % 3 = 0 THEN 2 ELSE 1 END, 1,
           CASE WHEN n < 50 THEN 1 ELSE 0 END, false, id, at, CASE WHEN folder = 'trash' THEN at END, at
      FROM (SELECT n, (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid AS id,
                   '2026-01-01'::timestamptz + n * interval '1 second' AS at,
                   CASE n % 50 WHEN 1 THEN 'trash' WHEN 2 THEN 'spam' WHEN 3 THEN 'sent' WHEN 4 THEN 'archive'
                               ELSE 'inbox' END AS folder
              FROM generate_series(1, $3::integer) AS n) AS made
"""

FILL_MESSAGES = """
    INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender, sender_key,
                                to_list, attachments, is_read, is_automatic, searched)
    SELECT team_id, inbox_id, id, id, 'inbound', received_at, 'x', 'x', '[]', 0, true, false, ''
      FROM inbox_threads
"""

FILL_LABEL = """
    INSERT INTO inbox_labels (team_id, id, inbox_id, name, name_key, color, created_at)
    VALUES ($1, $3, $2, $3::uuid::text, $3::uuid::text, '#000000', now())
"""

LABEL = """
    INSERT INTO inbox_thread_labels
    SELECT team_id, id, $2, list_class, received_at FROM inbox_threads
     WHERE team_id = $1 AND received_at < '2026-01-01'::timestamptz + $3::integer * interval '1 second'
"""


async def test_a_page_reads_a_page(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    team, inbox, often, old = uuid4(), uuid4(), uuid4(), uuid4()
    await conn.execute(FILL, team, inbox, MANY)
    await conn.execute(FILL_MESSAGES)
    for label, most in ((often, MANY), (old, 30)):
        await conn.execute(FILL_LABEL, team, inbox, label)
        await conn.execute(LABEL, team, label, most)
    await conn.execute("VACUUM ANALYZE")
    middle = UUID(f"{MANY // 2:012x}70008000{MANY // 2:012x}")
    at = await conn.fetchval("SELECT received_at FROM inbox_threads WHERE id = $1", middle)
    here, start = (at, middle, MOST), (END_OF_TIME, NEWEST, MOST)
    inbox_only, unread = list_classes([ThreadFolder.INBOX]), list_classes([ThreadFolder.INBOX], read=False)
    everywhere = list_classes(list(ThreadFolder), with_sent=True)
    page = await conn.fetch(list_queries.OLDER, team, inbox, inbox_only, *here)
    ids = [row["id"] for row in page]
    asked: dict[str, tuple[str, tuple[Any, ...]]] = {
        "first page": (list_queries.OLDER, (inbox, inbox_only, *start)),
        "page behind": (list_queries.OLDER, (inbox, inbox_only, *here)),
        "page before": (list_queries.NEWER, (inbox, inbox_only, *here)),
        "unread ones, which are the oldest": (list_queries.OLDER, (inbox, unread, *start)),
        "unread ones before": (list_queries.NEWER, (inbox, unread, *here)),
        "all folders": (list_queries.OLDER, (inbox, everywhere, *here)),
        "a label of all": (list_queries.LABELLED_OLDER, ([often], inbox_only, *here)),
        "a label of all, unread": (list_queries.LABELLED_OLDER, ([often], unread, *start)),
        "a label of all, before": (list_queries.LABELLED_NEWER, ([often], inbox_only, *here)),
        "a label of the oldest": (list_queries.LABELLED_OLDER, ([old], inbox_only, *start)),
        "two labels, everywhere": (list_queries.LABELLED_OLDER, ([old, often], everywhere, *start)),
        "rows of a page": (list_queries.ITEMS, (inbox, ids)),
        "the place of a thread": (list_queries.PLACE, (inbox, middle)),
        "a thread": (queries.GET, (inbox, middle)),
        "its messages": (
            message_queries.PAGE,
            (inbox, middle, datetime(1, 1, 1, tzinfo=UTC), middle, None, None, 21),
        ),
        "what is due": (purge_queries.DUE, (END_OF_TIME, at, middle, MOST)),
    }
    try:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await conn.execute(f"SET plan_cache_mode = {mode}")
            for name, (sql, args) in asked.items():
                most = 2 * CLASSES * MOST if "everywhere" in name or "all folders" in name else 4 * MOST
                read = max(rows_read(await plan(conn, sql, (team, *args))))
                assert read <= most, (mode, name, read)
    finally:
        await conn.close()
