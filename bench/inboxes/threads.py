"""Whether threads are listed as fast among a million as among a thousand.

The first page, a page at a random place, and each filter where it leaves out nearly everything: p99, with a
thousand threads and with a million (`bench/kit/growth.py` says how). Threads are written by SQL: half of them
are labelled `often`, unread threads and the label `old` are only among the oldest.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bench.kit.growth import Growth, compare
from bench.kit.results import Report
from bench.kit.server import Server, serving

FEW = 1000
MANY = 1_000_000
MANY_SHORT = 50_000
SAMPLES = 1000

KINDS = {
    "first page": "threads?limit=20",
    "page at a random place": "threads?limit=20&after={id}",
    "unread, first page": "threads?limit=20&read=false",
    "unread, page at a random place": "threads?limit=20&read=false&after={id}",
    "read, page at a random place": "threads?limit=20&read=true&after={id}",
    "one label of many threads, random place": "threads?limit=20&label={often}&after={id}",
    "one label of few threads, first page": "threads?limit=20&label={old}",
    "one label, unread, first page": "threads?limit=20&label={often}&read=false",
    "all folders, random place": "threads?limit=20&folders=inbox,archive,spam,sent,trash&after={id}",
    "with sent, unread, first page": "threads?limit=20&folders=sent&read=false",
    "emails of a thread": "threads/{id}/emails",
}

MAKE_INBOX = """
    INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
    VALUES ($1::uuid, $1::uuid, 'bench', $1::text || '@harbor.example', $1::uuid, now(), now())
"""

MAKE_LABELS = """
    INSERT INTO inbox_labels (team_id, id, inbox_id, name, name_key, color, created_at)
    SELECT $1::uuid, gen_random_uuid(), $1::uuid, name, name, '#E93D82', now()
      FROM unnest(ARRAY['often', 'old']) AS name
"""

MAKE_THREADS = """
    INSERT INTO inbox_threads (team_id, id, inbox_id, subject, folder, messages, inbound, unread,
                               has_attachment, last_message_id, received_at, purge_at, created_at)
    SELECT $1::uuid, id, $1::uuid, 'Refund for order ' || n, folder, CASE WHEN n % 5 = 0 THEN 2 ELSE 1 END, 1,
           CASE WHEN n <= $3 / 100 THEN 1 ELSE 0 END, n % 4 = 0, id, at,
           CASE WHEN folder = 'trash' THEN at + interval '30 days' END, at
      FROM (SELECT n, at,
                   (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
                       || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid AS id,
                   (ARRAY['archive', 'spam', 'sent', 'trash', 'archive', 'inbox', 'inbox', 'inbox', 'inbox',
                          'inbox'])[n % 10 + 1] AS folder
              FROM (SELECT n, $2::timestamptz + n * interval '2 seconds' AS at
                      FROM generate_series(1, $3::int) AS n) AS numbered) AS made
"""

MAKE_MESSAGES = """
    INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender, sender_key,
                                to_list, subject, message_id, attachments, is_read, is_automatic, searched)
    SELECT team_id, inbox_id, id, id, 'inbound', received_at, 'Iris Vale <iris@customer.example>',
           'iris@customer.example', '["help@harbor.example"]', subject, '<' || id || '@customer.example>', 0,
           unread = 0, false, repeat(subject || ' ', 20)
      FROM inbox_threads
     WHERE team_id = $1::uuid
"""

LABEL_THREADS = """
    INSERT INTO inbox_thread_labels (team_id, thread_id, label_id, list_class, received_at)
    SELECT t.team_id, t.id, l.id, t.list_class, t.received_at
      FROM (SELECT team_id, id, list_class, received_at, row_number() OVER (ORDER BY id) AS n
              FROM inbox_threads WHERE team_id = $1::uuid) AS t
      JOIN inbox_labels l ON l.team_id = t.team_id
       AND CASE l.name WHEN 'often' THEN n % 2 = 0 ELSE n <= $2::int / 100 END
"""

SAMPLE = """
    SELECT t.id, t.inbox_id,
           (SELECT id FROM inbox_labels WHERE team_id = $1::uuid AND name = 'often') AS often,
           (SELECT id FROM inbox_labels WHERE team_id = $1::uuid AND name = 'old') AS old
      FROM (SELECT id, inbox_id FROM inbox_threads WHERE team_id = $1::uuid AND folder = 'inbox'
             ORDER BY md5(id::text) LIMIT $2) AS t
"""


def measure(report: Report) -> None:
    many = MANY_SHORT if report.short else MANY
    with serving(report, report.folder / "threads", roles="api", processes=1) as server:
        compare(report, server, Growth("threads", FEW, many, grow=grow, paths=paths))


def grow(server: Server, team_id: str, count: int) -> None:
    """Fill and settle: a vacuum, as autovacuum would have done by and by."""
    since = datetime.now(UTC) - timedelta(days=60)
    server.sql(MAKE_INBOX, team_id)
    server.sql(MAKE_LABELS, team_id)
    server.sql(MAKE_THREADS, team_id, since, count)
    server.sql(MAKE_MESSAGES, team_id)
    server.sql(LABEL_THREADS, team_id, count)
    for table in ("inboxes", "inbox_labels", "inbox_threads", "inbox_messages", "inbox_thread_labels"):
        server.sql(f"VACUUM (ANALYZE) {table}")


def paths(server: Server, team_id: str) -> dict[str, list[str]]:
    """Some requests of each kind."""
    rows = server.sql(SAMPLE, team_id, SAMPLES)
    return {
        kind: [f"/inboxes/{row['inbox_id']}/{path.format(**row)}" for row in rows]
        for kind, path in KINDS.items()
    }
