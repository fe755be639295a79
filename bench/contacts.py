"""Whether contacts are read as fast among a million as among a thousand, and how fast all of them are sent.

Pages, a look-up by address and the segments of a contact, p99, with a thousand contacts and with a million
(`bench/kit/growth.py` says how). Then the whole list in one answer: contacts a second, the memory of all
processes meanwhile, and how long other requests wait for the process that sends it. The contacts are written
by SQL, with names, three properties and segments.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from bench.kit import tools
from bench.kit.growth import Growth, compare
from bench.kit.processes import memory_mb, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import Server, serving

FEW = 1000
MANY = 1_000_000
MANY_SHORT = 100_000
SAMPLES = 1000
SEGMENTS = 20
PIECE = 1 << 20
MARK = b'"unsubscribed":'

KINDS = {
    "list, first page": "/contacts?limit=100",
    "list, page at a random place": "/contacts?limit=100&after={id}",
    "list of a segment, page at a random place": "/contacts?limit=100&segment_id={segment}&after={id}",
    "look-up by address": "/contacts/{address}",
    "segments of a contact": "/contacts/{id}/segments",
}

MAKE_SEGMENTS = """
    INSERT INTO segments (team_id, id, name, created_at)
    SELECT $1::uuid, gen_random_uuid(), 'Segment ' || n, now() FROM generate_series(1, $2::int) AS n
"""

MAKE_PROPERTIES = """
    INSERT INTO contact_properties (team_id, id, number, key, type, created_at)
    SELECT $1::uuid, gen_random_uuid(), n, 'key_' || n, 'string', now() FROM generate_series(1, 3) AS n
"""

MAKE_CONTACTS = """
    INSERT INTO contacts (team_id, id, address, first_name, last_name, unsubscribed, properties, created_at,
                          updated_at)
    SELECT $1::uuid,
           (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
               || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
           'person.' || n || '@inbox' || n % 2000 || '.example', 'First' || n % 500, 'Last' || n % 5000,
           n % 50 = 0, jsonb_build_object('1', 'pro', '2', 'city ' || n % 300, '3', 'no. ' || n), at, at
      FROM (SELECT n, $2::timestamptz + n * interval '2 milliseconds' AS at
              FROM generate_series(1, $3::int) AS n) AS made
"""

MAKE_MEMBERS = """
    WITH s AS MATERIALIZED (SELECT array_agg(id) AS ids FROM segments WHERE team_id = $1::uuid)
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT $1::uuid, s.ids[k], c.id, now()
      FROM s
     CROSS JOIN (SELECT id, row_number() OVER () AS n FROM contacts WHERE team_id = $1::uuid) AS c
     CROSS JOIN unnest(ARRAY[c.n % $2::int + 1, c.n * 7 % $2::int + 1]) AS k
    ON CONFLICT DO NOTHING
"""

SAMPLE = """
    SELECT c.id, c.address,
           (SELECT id FROM segments s WHERE s.team_id = $1::uuid ORDER BY id LIMIT 1) AS segment
      FROM contacts c
     WHERE c.team_id = $1::uuid
     ORDER BY random()
     LIMIT $2
"""


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    many = MANY_SHORT if report.short else MANY
    with serving(report, report.folder / "data", roles="api", processes=1) as server:
        big = compare(report, server, Growth("contacts", FEW, many, grow=grow, paths=paths))
        whole_list(report, server, big[1], many)


def grow(server: Server, team_id: str, count: int) -> None:
    """Fill and settle: a vacuum, as autovacuum would have done by and by."""
    server.sql(MAKE_SEGMENTS, team_id, SEGMENTS)
    server.sql(MAKE_PROPERTIES, team_id)
    since = datetime.now(UTC) - timedelta(days=30)
    server.sql(MAKE_CONTACTS, team_id, since, count)
    server.sql(MAKE_MEMBERS, team_id, SEGMENTS)
    for table in ("contacts", "segments", "segment_members", "contact_properties"):
        server.sql(f"VACUUM (ANALYZE) {table}")


def paths(server: Server, team_id: str) -> dict[str, list[str]]:
    """Some requests of each kind."""
    rows = server.sql(SAMPLE, team_id, SAMPLES)
    return {
        kind: [
            path.format(id=row["id"], address=quote(row["address"]), segment=row["segment"]) for row in rows
        ]
        for kind, path in KINDS.items()
    }


def whole_list(report: Report, server: Server, key: str, many: int) -> None:
    """All contacts in one answer, three times, while another client asks for something small."""
    fetched(server, key)
    idle, rates, waits, peak = memory_now(server), [], [], 0.0
    for _ in range(3):
        with asking(server, key) as seen:
            rows, seconds = fetched(server, key)
        if rows != many:
            report.fault(f"the list has {rows:,} contacts of {many:,}")
        rates.append(rows / seconds)
        waits += seen.waited
        peak = max(peak, seen.peak)
    report.result("whole list", statistics.median(rates), "contacts/s", at_least(100_000))
    report.result("memory of all processes meanwhile, over idle", peak - idle, "MB", at_most(20))
    waits.sort()
    report.result("another request meanwhile, median", statistics.median(waits) * 1000, "ms")
    report.result("another request meanwhile, p99", waits[int(len(waits) * 0.99)] * 1000, "ms")


def fetched(server: Server, key: str) -> tuple[int, float]:
    """How many items the whole list has, and how long it took to come."""
    conn = server.connection()
    began = time.perf_counter()
    conn.request("GET", "/contacts", headers={"authorization": f"Bearer {key}"})
    answer = conn.getresponse()
    rows, rest = 0, b""
    while piece := answer.read(PIECE):
        rows += (rest + piece).count(MARK)
        rest = (rest + piece)[1 - len(MARK) :]
    took = time.perf_counter() - began
    conn.close()
    return rows, took


@dataclass(slots=True)
class Seen:
    """What another client sees: how long each of its answers took, and the most memory."""

    waited: list[float] = field(default_factory=list)
    peak: float = 0.0


@contextmanager
def asking(server: Server, key: str) -> Iterator[Seen]:
    """Asks for one contact again and again meanwhile."""
    seen = Seen()
    is_over = threading.Event()

    def ask() -> None:
        conn = server.connection()
        while not is_over.wait(0.01):
            began = time.perf_counter()
            conn.request("GET", "/contacts?limit=1", headers={"authorization": f"Bearer {key}"})
            conn.getresponse().read()
            seen.waited.append(time.perf_counter() - began)
            if len(seen.waited) % 20 == 0:
                seen.peak = max(seen.peak, memory_now(server))
        conn.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


def memory_now(server: Server) -> float:
    """What our processes hold and what PostgreSQL's have for themselves, in MB."""
    found = tree(server.process.pid)
    ours = sum(memory_mb(pid) for pid in (found.supervisor, *found.workers))
    return ours + sum(memory_mb(pid, "RssAnon") for pid in found.postgres)


if __name__ == "__main__":
    ended("contacts", measure, __doc__)
