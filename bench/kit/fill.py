"""Emails by the hundred thousand, written by SQL as the product's own statements would have written them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from bench.kit.load import HTML_BYTES, TEXT_BYTES
from bench.kit.server import DOMAIN, SENDER, Server

CHUNK = 50_000

# A UUIDv7 (RFC 9562, 5.7) of time and number, unique for each number below 2^60.
IDENTITY = """
    CREATE OR REPLACE FUNCTION pg_temp.identity(at timestamptz, number bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE AS $$
        SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000'
                || '8' || lpad(to_hex(number), 15, '0'))::uuid
    $$
"""

WRITTEN = """
    WITH numbered AS MATERIALIZED (
        SELECT n, $2::timestamptz + n * $3::interval AS at,
               pg_temp.identity($2::timestamptz + n * $3::interval, n) AS id,
               format('reader.%s@inbox%s.example', n, n % $4::bigint) AS address
          FROM generate_series($5::bigint, $6::bigint) AS n
    ), stored AS (
        INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                            key_id, domain_id, domain_name, last_event, last_event_at, sent_at)
        SELECT $1::uuid, id, at, id, format('<%s@%s>', id, $9::text), $10::text, json_build_array(address),
               format('Your order no. %s', n),
               (SELECT k.id FROM api_keys k WHERE k.team_id = $1::uuid LIMIT 1),
               (SELECT d.id FROM domains d WHERE d.team_id = $1::uuid LIMIT 1), $9::text,
               CASE WHEN $11::boolean THEN 'queued' ELSE 'delivered' END, at,
               CASE WHEN $11::boolean THEN NULL ELSE at END
          FROM numbered
    ), stored_contents AS (
        INSERT INTO contents (team_id, id, created_at, html, text)
        SELECT $1::uuid, id, at, left(repeat(md5(n::text) || ' ', $7::integer / 33 + 1), $7::integer),
               left(repeat(md5(id::text) || ' ', $8::integer / 33 + 1), $8::integer)
          FROM numbered
    ), stored_recipients AS (
        INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state, sent_at)
        SELECT $1::uuid, id, 0, 'to', address, address, 0,
               CASE WHEN $11::boolean THEN 'queued' ELSE 'delivered' END,
               CASE WHEN $11::boolean THEN NULL ELSE at END
          FROM numbered
    ), stored_work AS (
        INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
        SELECT $1::uuid, id, 0, split_part(address, '@', 2), at, true, at FROM numbered WHERE $11::boolean
    )
    INSERT INTO timeline (team_id, id, email_id, at, kind, position)
    SELECT $1::uuid, pg_temp.identity(at, n * 4 + step), id, at, kind, CASE step WHEN 0 THEN NULL ELSE 0 END
      FROM numbered
     CROSS JOIN unnest(ARRAY['queued', 'sent', 'delivered']) WITH ORDINALITY AS kinds (kind, place)
     CROSS JOIN LATERAL (SELECT place - 1 AS step) AS steps
     WHERE step = 0 OR NOT $11::boolean
"""


async def fill(
    server: Server,
    team_id: str,
    count: int,
    *,
    since: datetime,
    gap: float,
    destinations: int = 20,
    waiting: bool = False,
) -> None:
    """So many emails of 4 kB, `gap` seconds apart: delivered ones, or with `waiting` ones that are due."""
    conn = await server.connect()
    try:
        await conn.execute(IDENTITY)
        for low, high in chunks(count):
            await conn.execute(
                WRITTEN,
                UUID(team_id),
                since,
                timedelta(seconds=gap),
                destinations,
                low,
                high,
                HTML_BYTES,
                TEXT_BYTES,
                DOMAIN,
                SENDER,
                waiting,
            )
    finally:
        await conn.close()


def chunks(count: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover 1 to `count`."""
    for low in range(1, count + 1, CHUNK):
        yield low, min(count, low + CHUNK - 1)
