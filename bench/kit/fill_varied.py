"""A million emails among which something can be looked for, written by SQL: values that half of them have,
one in ten, one in a thousand, and one alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from bench.kit.fill import IDENTITY, chunks
from bench.kit.server import DOMAIN, Server

OFTEN = f"news.{DOMAIN}"
"""The domain that every other email was sent from."""

RARE = f"seldom.{DOMAIN}"
"""The domain that one in a hundred thousand was sent from."""

SELDOM_KEY, OFTEN_KEY = UUID(int=1), UUID(int=2)
"""The API keys that one email in a thousand was sent by, and all others."""

WORDS = (  # noqa: SIM905 (prose reads better as prose)
    "account invoice delivery month please order thank harbor customer team lantern open update pier "
    "payment review plan message settings details anchor ferry berth crane cargo tide signal buoy"
).split()

# Of two emails one comes from OFTEN and has `winter` in its subject; `autumn` is in the older half alone.
WRITTEN = """
    WITH numbered AS MATERIALIZED (
        SELECT n, $2::timestamptz + n * $3::interval AS at,
               pg_temp.identity($2::timestamptz + n * $3::interval, n) AS id,
               CASE WHEN n % 10 = 3 THEN 'everybody@pier.example'
                    ELSE format('reader.%s@inbox%s.example', n, n % 2000) END AS address,
               CASE WHEN n % 2 = 0 THEN $7::text WHEN n % 100000 = 777 THEN $8::text
                    ELSE $9::text END AS domain,
               CASE WHEN n % 999 = 501 THEN 'bounced' WHEN n % 50000 = 4001 THEN 'complained'
                    WHEN n > $6 - 500 THEN 'queued' ELSE 'delivered' END AS state
          FROM generate_series($4::bigint, $5::bigint) AS n
    ), stored AS (
        INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                            domain_name, last_event, last_event_at, sent_at, tags, source, key_id)
        SELECT $1::uuid, id, at, id, format('<%s@%s>', id, domain),
               format('Harbor <%s@%s>', CASE WHEN n % 5 = 0 THEN 'billing' ELSE 'news' END, domain),
               json_build_array(address),
               format('Your %s %s%s%s%s no. %s', ($10::text[])[1 + n % 28], ($10::text[])[1 + n / 7 % 28],
                      CASE WHEN n % 2 = 0 THEN ' winter' ELSE '' END,
                      CASE WHEN n < $6 / 2 AND n % 3 = 0 THEN ' autumn' ELSE '' END,
                      CASE WHEN n % 1000 = 13 THEN ' pelican' WHEN n = $6 / 3 THEN ' albatross'
                           ELSE '' END, n),
               domain, state, at, at,
               CASE WHEN n % 1000 = 13 THEN '[{"name":"kind","value":"pelican"}]'::json
                    WHEN n % 10 = 3 THEN '[{"name":"kind","value":"pier"}]'::json END,
               CASE WHEN n % 10 = 3 THEN 'smtp' WHEN n % 50000 = 4001 THEN 'automation' END,
               CASE WHEN n % 1000 = 13 THEN $11::uuid ELSE $12::uuid END
          FROM numbered
    ), stored_contents AS (
        INSERT INTO contents (team_id, id, created_at, text)
        SELECT $1::uuid, id, at, 'Your order is on its way.' FROM numbered
    ), stored_recipients AS (
        INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state, sent_at)
        SELECT $1::uuid, id, 0, 'to', address, address, 0, state, at FROM numbered
    ), stored_work AS (
        INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
        SELECT $1::uuid, id, 0, split_part(address, '@', 2), at, true, at FROM numbered WHERE state = 'queued'
    )
    INSERT INTO timeline (team_id, id, email_id, at, kind, position)
    SELECT $1::uuid, pg_temp.identity(at, n * 4 + step), id, at,
           CASE step WHEN 0 THEN 'queued' WHEN 1 THEN 'sent' ELSE state END,
           CASE step WHEN 0 THEN NULL ELSE 0 END
      FROM numbered
     CROSS JOIN generate_series(0, 2) AS steps (step)
     WHERE step = 0 OR state <> 'queued'
"""


async def fill_varied(server: Server, team_id: str, count: int, *, since: datetime, gap: float) -> None:
    """So many emails, `gap` seconds apart."""
    conn = await server.connect()
    try:
        await conn.execute(IDENTITY)
        for low, high in chunks(count):
            await conn.execute(
                WRITTEN,
                UUID(team_id),
                since,
                timedelta(seconds=gap),
                low,
                high,
                count,
                OFTEN,
                RARE,
                DOMAIN,
                WORDS,
                SELDOM_KEY,
                OFTEN_KEY,
            )
    finally:
        await conn.close()
