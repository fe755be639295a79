"""How long `GET /emails/metrics` takes, cache off, with a hundred million events over 90 days and 50 domains,
beside the bare statement over the rollups, and how much longer the same question takes when it is put to the
events themselves.

The rollups of 100,000,000 and of 1,000,000 events are generated in SQL, in the order of time, as folding
writes them; so are the events of the raw question, a tenth of them, in a table as slim as can be. The busy
quarter hour has a million events in `timeline`, folded as the product folds them, and a question that begins
in its middle.

What an answer costs depends on how many rollups it reads, not on how many events these count, and a run
with `--short` has as many rollups as a long one: only the numbers in them are smaller, and the events of
the raw question are fewer.

Days that are over are remembered, each proved by its version: by the process, and as stored pieces by the
database. So there are three counts for a query. One is put again and again. "For the first time" the process
that answers knows nothing of the team: its memory is filled with answers to another team before each
question. That is measured with no piece stored, so that all is counted and written anew, and with the pieces
that a question of another, longer range has left in the database.

Beside them stand two statements, asked by asyncpg on one connection, prepared, their rows fetched and
dropped, in turns with the questions of the same figure. The bare statement is the one that counts where
nothing is known (`read.changed` makes the SQL and its arguments); it becomes faster as the product does. The
plain statement, in UTC, selects the same rollups as they are (`ROLLUPS`), and stays the same whatever the
product does. Neither makes an answer, and there is no HTTP around them.
"""

from __future__ import annotations

import asyncio
import http.client
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from bench.kit import load, tools
from bench.kit.fill import IDENTITY
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving
from pillarbox.kernel.wire.query import Query
from pillarbox.metrics import question, read
from pillarbox.metrics.definitions import METRICS
from pillarbox.timeline import rollups

DAYS, DOMAINS = 90, 50
MANY, FEW = 100_000_000, 1_000_000
BUSY = 1_000_000
CONNECTIONS = 1
FIRST = 40
"""Questions of which nothing is known, of each kind."""
OTHERS = 5
"""Answers of 90 days, 2.3 MB each: more than the 8 MB that a process remembers."""
STORED, TRIES = 40, 40
"""Pieces at least that the longer question stores; a team stores one answer in ten seconds."""

QUARTERS = """
    INSERT INTO rollups
    SELECT $1::uuid, 1, q, md5('domain' || d)::uuid, format('d%s.example', d),
           '00000000-0000-0000-0000-000000000000', v.n, v.n, v.n * 9 / 10, v.n / 20, 0, v.n / 50,
           v.n / 40, v.n / 40, 0, v.n, v.n / 3, v.n / 2, v.n / 5, 0, 0
      FROM generate_series($2::timestamptz, $3::timestamptz - interval '1 second', interval '15 minutes') AS q
     CROSS JOIN generate_series(1, $4::int) AS d
     CROSS JOIN LATERAL (SELECT (random() * 2 * $5::float8)::bigint AS n WHERE q IS NOT NULL) AS v
"""

HIGHER = """
    INSERT INTO rollups
    SELECT team_id, $2::smallint, date_trunc($3, start, 'UTC'), domain_id, domain_name, broadcast_id,
           sum(received), sum(sent), sum(delivered), sum(delivery_delayed), sum(failed), sum(suppressed),
           sum(bounced_transient), sum(bounced_permanent), sum(bounced_undetermined), sum(opened),
           sum(clicked), sum(unique_opened), sum(unique_clicked), sum(complained), sum(unsubscribed)
      FROM rollups
     WHERE team_id = $1::uuid AND level = 1
     GROUP BY 1, 2, 3, 4, 5, 6
     ORDER BY 1, 2, 3, 4, 5, 6
"""

ROLLUPS = """
    SELECT start, domain_id, domain_name, broadcast_id, received, sent, delivered, delivery_delayed, failed,
           suppressed, bounced_transient, bounced_permanent, bounced_undetermined, opened, clicked,
           unique_opened, unique_clicked, complained, unsubscribed
      FROM rollups
     WHERE team_id = $1 AND level = 3 AND start >= $2 AND start < $3
"""

EVENTS = """
    CREATE UNLOGGED TABLE raw_events AS
    SELECT $1::timestamptz + n * ($2::timestamptz - $1::timestamptz) / $3::bigint AS at,
           md5('domain' || (n % $4::int + 1))::uuid AS domain_id,
           (ARRAY['received', 'sent', 'delivered', 'opened'])[n % 4 + 1] AS kind
      FROM generate_series(0::bigint, $3::bigint - 1) AS n
"""

RAW = """
    SELECT date_trunc('day', at, 'UTC'), domain_id, count(*) FILTER (WHERE kind = 'received'),
           count(*) FILTER (WHERE kind = 'sent'), count(*) FILTER (WHERE kind = 'delivered'),
           count(*) FILTER (WHERE kind = 'opened')
      FROM raw_events
     WHERE at >= $1 AND at < $2
     GROUP BY 1, 2
"""

BUSY_EMAILS = """
    WITH numbered AS MATERIALIZED (
        SELECT n, $2::timestamptz + n * interval '15 minutes' / $3::bigint AS at,
               pg_temp.identity($2::timestamptz + n * interval '15 minutes' / $3::bigint, n) AS id
          FROM generate_series(0::bigint, $3::bigint - 1) AS n
    ), stored AS (
        INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                            domain_name, last_event, last_event_at)
        SELECT $1::uuid, id, at, id, 'm', 's', '[]', 's', 'd1.example', 'opened', at FROM numbered
    ), stored_recipients AS (
        INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state, opened_at)
        SELECT $1::uuid, id, 0, 'to', 'a', 'a', 0, 'opened', at FROM numbered
    ), counted AS (
        INSERT INTO metric_increments (team_id, id, start, domain_name, received, sent, delivered, opened,
                                       unique_opened)
        SELECT $1::uuid, pg_temp.identity(min(at), $3::bigint * 9 + min(n)),
               date_bin('10 seconds', at, 'epoch'::timestamptz),
               'd1.example', count(*), count(*), count(*), count(*), count(*)
          FROM numbered
         GROUP BY 3
    )
    INSERT INTO timeline (team_id, id, email_id, at, kind, position)
    SELECT $1::uuid, pg_temp.identity(at, n * 4 + step), id, at, kind, CASE step WHEN 0 THEN NULL ELSE 0 END
      FROM numbered
     CROSS JOIN unnest(ARRAY['queued', 'sent', 'delivered', 'opened']) WITH ORDINALITY AS kinds (kind, place)
     CROSS JOIN LATERAL (SELECT place - 1 AS step) AS steps
     ORDER BY at
"""


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    with serving(report, report.folder / "data", roles="api") as server:
        end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        many = MANY // 100 if report.short else MANY
        few = (str(server.sql("SELECT id FROM teams")[0][0]), KEY)
        lot = server.make_team("lot")
        busy = server.make_team("busy")
        other = server.make_team("other")
        asyncio.run(grow(server, {few[0]: FEW, lot[0]: many, other[0]: FEW}, end))
        daily = f"/emails/metrics?{_days(end, 30)}&dimensions=period,domain"
        india = f"{daily}&timezone=Asia/Kolkata"
        longer = f"/emails/metrics?{_days(end, 45)}&dimensions=period,domain"
        unknown = Unknown(server, other[1], end)
        utc = 0.0
        for zone, path, stored, limit in (
            ("UTC", daily, longer, 10),
            ("Kolkata", india, f"{longer}&timezone=Asia/Kolkata", 40),
        ):
            name = f"30 days by day and domain, {zone}, for the first time"
            took, bare, plain = unknown.first(lot, path)
            utc = utc or took
            report.result(f"{name}, no piece stored, p50", took, "ms", at_most(limit))
            report.result("the bare statement, rows dropped, p50", bare, "ms")
            report.result("the question ÷ the bare statement", took / bare, "×", at_most(2))
            if zone == "UTC":
                report.result("the plain statement, rows dropped, p50", plain, "ms")
                report.result("the question ÷ the plain statement", took / plain, "×", at_most(2))
            unknown.store(lot, stored)
            took, bare, _ = unknown.first(lot, path, stored=True)
            report.result(f"{name}, pieces of another range stored, p50", took, "ms", at_most(limit))
            report.result("the question ÷ the bare statement", took / bare, "×", at_most(2))
            report.result("the same asked again, p50", asked(report, server, lot[1], path), "ms")
        report.result(
            "30 days for the first time, 100 million events ÷ 1 million",
            utc / unknown.first(few, daily).question,
            "×",
            at_most(1.5),
        )
        hours = (
            f"start_date={(end - timedelta(days=DAYS)).date()}&granularity=hourly&dimensions=period,domain"
        )
        refused = unknown.first(lot, f"/emails/metrics?{hours}", status=422)
        report.result("refusing 100,000 rows, p50", refused.question, "ms")
        beside = raw(report, server, end, many // 10)
        report.result("the same from the events, a tenth of them", beside, "ms")
        report.result("the events ÷ the rollups", beside / utc, "×", at_least(100))
        quarter = end - timedelta(hours=9)
        asyncio.run(send_many(server, busy[0], quarter, BUSY // (40 if report.short else 4)))
        begins = quarter + timedelta(minutes=7, seconds=33, microseconds=123456)
        odd = f"/emails/metrics?start_date={begins.isoformat().replace('+00:00', 'Z')}"
        report.result(
            "from the middle of a quarter hour with 1 million events, p50",
            asked(report, server, busy[1], odd),
            "ms",
            at_most(150),
        )


async def grow(server: Server, teams: dict[str, int], end: datetime) -> None:
    start = end - timedelta(days=DAYS)
    conn = await server.connect()
    try:
        for team_id, events in teams.items():
            share = events / (DAYS * 96 * DOMAINS) / 4.5
            await conn.execute(QUARTERS, team_id, start, end, DOMAINS, share, timeout=600)
            for level, unit in ((2, "hour"), (3, "day")):
                await conn.execute(HIGHER, team_id, level, unit, timeout=600)
        await conn.execute("VACUUM (ANALYZE) rollups", timeout=600)
    finally:
        await conn.close()


async def send_many(server: Server, team_id: str, quarter: datetime, emails: int) -> None:
    """Four events of each email within a quarter hour, folded."""
    pool = await asyncpg.create_pool(server.database_url, min_size=1, max_size=1, command_timeout=600)
    try:
        await pool.execute(IDENTITY)
        await pool.execute(BUSY_EMAILS, team_id, quarter, emails)
        for table in ("emails", "recipients", "timeline"):
            await pool.execute(f"VACUUM (ANALYZE) {table}")
        await rollups.fold(pool, datetime.now(UTC))
    finally:
        await pool.close()


def raw(report: Report, server: Server, end: datetime, events: int) -> float:
    """Milliseconds for the same 30 days counted from events; the median of three."""

    async def ask() -> float:
        conn = await server.connect()
        try:
            await conn.execute(EVENTS, end - timedelta(days=DAYS), end, events, DOMAINS, timeout=900)
            await conn.execute("VACUUM (ANALYZE) raw_events", timeout=600)
            found = []
            for _ in range(3):
                started = time.monotonic()
                await conn.fetch(RAW, end - timedelta(days=30), end, timeout=600)
                found.append((time.monotonic() - started) * 1000)
            await conn.execute("DROP TABLE raw_events")
            return statistics.median(found)
        finally:
            await conn.close()

    report.note(f"the raw question reads {events:,} events")
    return asyncio.run(ask())


class Medians(NamedTuple):
    """Milliseconds of a question, of the bare statement and of the plain one (docs/decisions/0024)."""

    question: float
    bare: float
    plain: float


class Unknown:
    """Questions of which the process that answers knows nothing: before each, its memory is filled with
    answers to another team, on the same connection and so in the same process."""

    def __init__(self, server: Server, key: str, end: datetime) -> None:
        self._server = server
        self._key = key
        path = f"/emails/metrics?{_days(end, DAYS)}&dimensions=period,domain&metrics="
        self._others = [path + ",".join([*METRICS[n:], *METRICS[:n]]) for n in range(OTHERS)]

    def first(self, team: tuple[str, str], path: str, *, stored: bool = False, status: int = 200) -> Medians:
        """The p50 of the question and of the statements, in turns; unless `stored` no piece is there."""
        return asyncio.run(self._first(team, path, stored, status))

    async def _first(self, team: tuple[str, str], path: str, stored: bool, status: int) -> Medians:
        conn = await self._server.connect()
        client = self._server.connection()
        took: list[float] = []
        beside: list[list[float]] = [[], []]
        try:
            statements = await _statements(conn, UUID(team[0]), path) if status == 200 else ()
            for _ in range(FIRST):
                for other in self._others:
                    _ask(client, self._key, other, 200)
                if not stored:
                    await conn.execute("DELETE FROM metric_pieces WHERE team_id = $1", UUID(team[0]))
                started = time.monotonic()
                _ask(client, team[1], path, status)
                took.append((time.monotonic() - started) * 1000)
                for statement, found in zip(statements, beside, strict=False):
                    started = time.monotonic()
                    await conn.fetch(*statement)
                    found.append((time.monotonic() - started) * 1000)
        finally:
            client.close()
            await conn.close()
        return Medians(statistics.median(took), *(statistics.median(found or [0]) for found in beside))

    def store(self, team: tuple[str, str], path: str) -> None:
        """Ask until the pieces of that answer are stored."""
        client = self._server.connection()
        count = "SELECT count(*) FROM metric_pieces WHERE team_id = $1"
        try:
            for _ in range(TRIES):
                for other in self._others:
                    _ask(client, self._key, other, 200)
                _ask(client, team[1], path, 200)
                time.sleep(1.5)
                if self._server.number(count, UUID(team[0])) >= STORED:
                    return
            raise RuntimeError(f"the pieces of {path} were not stored")
        finally:
            client.close()


def _ask(client: http.client.HTTPConnection, key: str, path: str, status: int) -> None:
    client.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = client.getresponse()
    answer.read()
    if answer.status != status:
        raise RuntimeError(f"{path} was answered with {answer.status}")


async def _statements(
    conn: asyncpg.Connection, team_id: UUID, path: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The statement over the rollups that counts all that this question asks, and the one that selects its
    UTC days; each with its arguments."""
    statements: list[tuple[Any, ...]] = []

    class Noting:
        async def fetch(self, *statement: Any) -> list[asyncpg.Record]:
            statements.append(statement)
            return list(await conn.fetch(*statement))

    wanted = question.read(Query(path.partition("?")[2].encode()), datetime.now(UTC), 0)
    periods = read.cut(wanted)
    pool: Any = Noting()
    await read.changed(pool, team_id, wanted, periods, [None] * len(periods))
    (statement,) = statements
    return statement, (ROLLUPS, team_id, wanted.range.start, wanted.range.reach)


def _days(end: datetime, days: int) -> str:
    return f"start_date={(end - timedelta(days=days)).date()}&end_date={(end - timedelta(days=1)).date()}"


def asked(report: Report, server: Server, key: str, path: str) -> float:
    """The p50 of a question asked again and again."""
    requests = load.reads(report.folder / "question.txt", [path])
    load.wrk(server, requests, connections=CONNECTIONS, seconds=1, threads=1, key=key)
    answered = load.wrk(
        server, requests, connections=CONNECTIONS, seconds=2 if report.short else 6, threads=1, key=key
    )
    if answered.trouble:
        report.fault(f"{path}: {answered.trouble}")
    return answered.p50


if __name__ == "__main__":
    ended("metrics", measure, __doc__)
