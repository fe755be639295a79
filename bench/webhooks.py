"""Webhooks: how fast a backlog drains, what the send path loses, how late events are, and a million waiting.

The receiver, the database and the dispatcher share the machine. Signing and the rows of the log are part of
every result, and the receiver's count of events is held against the database's.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from bench.deliver import wait_until_delivered
from bench.kit import load, tools
from bench.kit.fill import IDENTITY, chunks
from bench.kit.processes import Meter, shares, tree
from bench.kit.receivers import http_receiver
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving
from bench.kit.sinks import smtp_sink
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids, untagged
from pillarbox.teams.bootstrap import create_team
from pillarbox.webhooks.dispatch import claims, queries, queue_metrics
from pillarbox.webhooks.dispatch.claims import START, WEBHOOKS_PER_PAGE
from pillarbox.webhooks.dispatch.queries import LEASE
from pillarbox.webhooks.dispatch.scheduler import MOST_CLAIMED
from pillarbox.webhooks.kinds import KINDS

DRAIN, DRAIN_SHORT = 60_000, 3_000
MAILS, MAILS_SHORT = 30_000, 1_500
PENDING, PENDING_SHORT = 1_000_000, 20_000
HANGING = 100
EVENTS, EVENTS_SHORT = 300, 40
FAN_OUT, FAN_OUT_SHORT = 50, 10
PAUSE = 0.05
ONE = {
    "from": "onboarding@resend.dev",
    "to": "delivered@resend.dev",
    "subject": "Tide report",
    "text": "High water at noon.",
}
KIND = "email.delivered"
EMAIL_KINDS = [kind for kind in KINDS if kind.startswith("email.")]
LOOPBACK = ("--webhooks-allow-http", "true", "--allow-private", "127.0.0.0/8")
OPEN_TO_LOOPBACK = (*LOOPBACK, "--most-webhooks", str(HANGING + 1))
SECONDS = 900.0

HAPPENED = """
    SELECT count(*)
      FROM timeline t
      JOIN webhooks w ON w.team_id = t.team_id AND t.at >= w.since
     WHERE t.kind IN ('sent', 'delivered')
"""

# As `publish` writes them, with a body of about 500 bytes each.
FILL = """
    WITH numbered AS MATERIALIZED (
        SELECT n, $2::timestamptz + n * $3::interval AS at,
               pg_temp.identity($2::timestamptz + n * $3::interval, n) AS id
          FROM generate_series($4::bigint, $5::bigint) AS n
    ), events AS (
        INSERT INTO webhook_events (team_id, id, kind, at, payload)
        SELECT team_id, n.id, 'email.delivered', n.at,
               convert_to(format('{"type":"email.delivered","created_at":"%s","data":{"email_id":"%s","text":"%s"}}',
                                 n.at, n.id, repeat('x', 380)), 'UTF8')
          FROM numbered n
         CROSS JOIN (SELECT team_id FROM webhooks WHERE team_id = $1 LIMIT 1) AS team
    )
    INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at)
    SELECT w.team_id, w.id, n.id, 'email.delivered', n.at, w.epoch, n.at
      FROM numbered n
      JOIN webhooks w ON w.team_id = $1
"""


def measure(report: Report) -> None:
    drain(report)
    lag(report, hanging=0)
    lag(report, hanging=HANGING)
    send_path(report)
    beside_a_large_fan_out(report)
    a_million(report)


# A backlog ----------------------------------------------------------------------------------------------


def drain(report: Report) -> None:
    """One webhook, one dispatching process, everything is due."""
    count = DRAIN_SHORT if report.short else DRAIN
    data = report.folder / "drain"
    with http_receiver(report.folder) as receiver:
        with serving(report, data, roles="api", more=OPEN_TO_LOOPBACK) as server:
            team = subscribe(server, receiver.url)
            asyncio.run(fill(server, team, count))
            vacuum(server)
        with serving(report, data, roles="webhooks", processes=1, more=OPEN_TO_LOOPBACK) as server:
            meter = Meter(server.process.pid, receiver=receiver.pid)
            emptied(server)
            used = meter.used()
            row = server.sql(
                "SELECT count(*) AS n, max(sent_at) - min(sent_at) AS took FROM webhook_attempts"
            )[0]
            ends = server.number("SELECT count(*) FROM webhook_outcomes WHERE status = 'success'")
    rate = row["n"] / row["took"].total_seconds()
    report.result(
        f"drain of {count:,} deliveries, one process",
        rate,
        "deliveries/s",
        at_least(1500),
        note=cpu(used, count),
    )
    seen = receiver.seen()
    if not count == len(seen.first) == seen.requests == ends:
        report.fault(f"{count} events, {len(seen.first)} arrived in {seen.requests} requests, {ends} ended")


# Lag ----------------------------------------------------------------------------------------------------


def lag(report: Report, *, hanging: int) -> None:
    """From the time of the event, which its transaction has before it commits, to the first byte."""
    events = EVENTS_SHORT if report.short else EVENTS
    data = report.folder / f"lag{hanging}"
    with http_receiver(report.folder) as receiver, serving(report, data, more=OPEN_TO_LOOPBACK) as server:
        server.trust()
        for _ in range(hanging):
            subscribe(server, receiver.hanging)
        subscribe(server, receiver.url)
        client = server.connection()
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        for number in range(events):
            client.request("POST", "/emails", load.body(number), headers)
            response = client.getresponse()
            if response.status != 200:
                raise RuntimeError(f"{response.status} {response.read()[:300]!r}")
            response.read()
            time.sleep(PAUSE)
        tools.wait_for(lambda: ended_well(server) >= events, "the last event", 60)
        rows = server.sql("SELECT event_id, at FROM webhook_outcomes WHERE status = 'success'")
    seen = receiver.seen()
    first = {untagged("msg_", event): at for event, at in seen.first.items()}
    lags = sorted((first[UUID(str(row["event_id"]))] - row["at"].timestamp()) * 1000 for row in rows)
    note = f"p50 {load.percentile(lags, 50):.1f} ms, p99 {load.percentile(lags, 99):.1f} ms"
    if hanging:
        name = f"event → first byte, {hanging} endpoints hang, p95"
        note += f"; {seen.hung} requests hung"
        report.result(name, load.percentile(lags, 95), "ms", at_most(2000), note=note)
    else:
        name = "event → first byte, idle, p50"
        report.result(name, load.percentile(lags, 50), "ms", at_most(20), note=note)


# Beside the send path -----------------------------------------------------------------------------------


def send_path(report: Report) -> None:
    """Accept to delivered, without a webhook and with one of all events; its dispatcher is a process more."""
    mails = MAILS_SHORT if report.short else MAILS
    try:
        tools.need("wrk", "smtp-sink")
    except tools.Missing as missing:
        report.skip("the send path", str(missing))
        return
    with smtp_sink(report.folder) as sink, http_receiver(report.folder) as receiver:
        data = report.folder / "path"
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        roles = "api,delivery,jobs"
        with serving(report, data, route=route, roles=roles, more=OPEN_TO_LOOPBACK) as server:
            server.trust()
            requests = load.single_mails(report.folder)
            delivered(report, server, requests, mails // 10)
            meter = Meter(server.process.pid)
            alone = delivered(report, server, requests, mails)
            cpu_alone = shares(meter.used(), mails)
            subscribe(server, receiver.url, *EMAIL_KINDS)
            with dispatching(report, server) as other:
                meter = Meter(server.process.pid, receiver=receiver.pid, dispatcher=worker_of(other))
                beside = delivered(report, server, requests, mails)
                left = server.number("SELECT count(*) FROM webhook_deliveries")
                began = time.monotonic()
                emptied(server)
                cpu_beside = shares(meter.used(), mails)
                report.note(
                    f"{left:,.0f} events of {mails:,} mails were left at the last one; "
                    f"they took {time.monotonic() - began:.1f} s"
                )
            events = ended_well(server)
            happened = server.number(HAPPENED)
        report.result("accept → delivered, no webhook", alone, "mails/s", note=cpu_alone)
        report.result("accept → delivered, one webhook", beside, "mails/s", note=cpu_beside)
        report.result("rate with a webhook ÷ without", beside / alone, "×", at_least(0.7))
    seen = receiver.seen()
    if not len(seen.first) == seen.requests == events == happened:
        report.fault(f"{happened:,.0f} events, {events:,.0f} delivered, {len(seen.first)} arrived")


@contextmanager
def dispatching(report: Report, server: Server) -> Iterator[Server]:
    """A second installation on the same database that does nothing but dispatch."""
    ring = (server.data / "secret.key").read_text().strip()
    more = ("--database-url", server.database_url, "--secret-key", ring, *OPEN_TO_LOOPBACK)
    data = report.folder / "dispatch"
    with serving(report, data, roles="webhooks", processes=1, more=more) as other:
        yield other


def worker_of(server: Server) -> int:
    """Its one worker."""
    (worker,) = tree(server.process.pid).workers
    return worker


def delivered(report: Report, server: Server, requests: Path, mails: int) -> float:
    """Mails per second from the first accept to the last delivery."""
    began = server.sql("SELECT clock_timestamp()")[0][0]
    answered = load.wrk(server, requests, connections=50, most=mails)
    if answered.trouble:
        report.fault(answered.trouble)
    wait_until_delivered(server)
    row = server.sql(
        """
        SELECT count(*) FILTER (WHERE kind = 'delivered') AS delivered,
               max(at) FILTER (WHERE kind = 'delivered') - min(at) AS took
          FROM timeline WHERE at >= $1
        """,
        began,
    )[0]
    return float(row["delivered"]) / float(row["took"].total_seconds())


# Beside a team with many webhooks -----------------------------------------------------------------------


def beside_a_large_fan_out(report: Report) -> None:
    """How long another team waits for its answers while one with fifty webhooks of all events sends batches.

    Nothing is posted: what is measured is what the rows of the deliveries cost those who share the database.
    """
    batches, mails = (FAN_OUT_SHORT if report.short else FAN_OUT), 100
    hooks = 50
    data = report.folder / "fan-out"
    with serving(report, data, roles="api,delivery,jobs", more=OPEN_TO_LOOPBACK) as server:
        server.trust()
        for _ in range(hooks):
            subscribe(server, "http://127.0.0.1:9/", *EMAIL_KINDS)
        other = asyncio.run(another_team(server))
        alone, done_alone = answers(server, other, seconds=3.0)
        rows = batches * mails * 2 * hooks
        busy = threading.Thread(target=send_batches, args=(server, batches, mails, rows))
        began = time.monotonic()
        busy.start()
        beside, done_beside = answers(server, other, busy=busy)
        took = time.monotonic() - began
    report.note(f"{rows:,} deliveries were written within {took:.1f} s")
    note = f"alone p50 {load.percentile(alone, 50):.0f} ms, p99 {load.percentile(alone, 99):.0f} ms; "
    note += f"beside p50 {load.percentile(beside, 50):.0f} ms, {len(beside)} requests"
    report.result(
        f"accept of another team beside {hooks} webhooks × {batches} batches, p99",
        load.percentile(beside, 99),
        "ms",
        at_most(500),
        note=note,
    )
    note = (
        f"alone p50 {load.percentile(done_alone, 50):.0f} ms, p99 {load.percentile(done_alone, 99):.0f} ms; "
    )
    note += f"beside p50 {load.percentile(done_beside, 50):.0f} ms"
    report.result(
        "the same, until the outcome of its mail is committed, p99",
        load.percentile(done_beside, 99),
        "ms",
        at_most(1500),
        note=note,
    )


async def another_team(server: Server) -> str:
    """The token of a second team."""
    conn = await server.connect()
    try:
        made = await create_team(conn, name="Quay", email="owner@quay.example", ids=Ids(SystemClock()))
    finally:
        await conn.close()
    return made.token


def answers(
    server: Server, token: str, seconds: float = 0.0, busy: threading.Thread | None = None
) -> tuple[list[float], list[float]]:
    """Milliseconds until the answer of one mail after the other, and until it shows as delivered; for so long
    or while the thread works. Both in ascending order."""
    client = server.connection()
    answered, delivered = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end or (busy is not None and busy.is_alive()):
        began = time.perf_counter()
        email = posted(client, "/emails", token, ONE)["id"]
        answered.append((time.perf_counter() - began) * 1000)
        while asked(client, f"/emails/{email}", token)["last_event"] != "delivered":
            time.sleep(0.002)
        delivered.append((time.perf_counter() - began) * 1000)
    return sorted(answered), sorted(delivered)


def send_batches(server: Server, batches: int, mails: int, rows: int) -> None:
    """Send them, and return when so many deliveries to webhooks are written."""
    client = server.connection()
    for _ in range(batches):
        posted(client, "/emails/batch", KEY, [ONE] * mails)
    tools.wait_for(
        lambda: server.number("SELECT count(*) FROM webhook_deliveries") >= rows,
        "the last delivery's row",
        SECONDS,
        pause=0.5,
    )


def posted(client: HTTPConnection, path: str, token: str, body: object) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    client.request("POST", path, json.dumps(body), headers)
    return replied(client)


def asked(client: HTTPConnection, path: str, token: str) -> dict[str, Any]:
    client.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    return replied(client)


def replied(client: HTTPConnection) -> dict[str, Any]:
    response = client.getresponse()
    raw = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status} {raw[:300]!r}")
    found: dict[str, Any] = json.loads(raw)
    return found


# A million ----------------------------------------------------------------------------------------------


def a_million(report: Report) -> None:
    """All of one webhook, due since an hour; the start, and each statement by PostgreSQL's own clock."""
    count = PENDING_SHORT if report.short else PENDING
    data = report.folder / "million"
    with http_receiver(report.folder) as receiver:
        with serving(report, data, roles="api", more=OPEN_TO_LOOPBACK) as server:
            team = subscribe(server, receiver.url)
            asyncio.run(fill(server, team, count))
            asyncio.run(statements(report, server, "before ANALYZE"))
            vacuum(server)
            asyncio.run(statements(report, server, "after it"))
        with serving(report, data, more=OPEN_TO_LOOPBACK) as server:
            report.result(f"start with {count:,} pending deliveries", server.ready_after, "s", at_most(10))
            tools.wait_for(lambda: ended_well(server) > 0, "the first delivery", 60)


async def statements(report: Report, server: Server, when: str) -> None:
    conn = await server.connect()
    try:
        (row,) = await conn.fetch("SELECT team_id, id FROM webhooks")
        place = (row["team_id"], row["id"])
        now, owner = datetime.now(UTC), uuid4()
        until, most, nil = now + LEASE, MOST_CLAIMED, UUID(int=0)
        worst = 0.0
        for name, statement, arguments in (
            ("look", queries.DUE_WEBHOOKS, (now, *START, WEBHOOKS_PER_PAGE)),
            ("claim", queries.CLAIM, (*place, 0, owner, until, now, most, nil)),
            ("holders", claims.DELIVERIES.holders, ()),
            ("count", claims.DELIVERIES.count, (now, queue_metrics.COUNTING.most)),
        ):
            worst = max(worst, await took(report, conn, f"{name} {when}", statement, arguments))
        report.result(f"slowest statement, {when}", worst, "ms", at_most(50))
        for _ in range(10):
            await claimed(conn, place, owner)
        slowest = max([await claimed(conn, place, owner) for _ in range(50)])
        report.result(f"claim with its commit, {when}, slowest of 50", slowest, "ms", at_most(50))
        await conn.execute(
            "UPDATE webhook_deliveries SET owner = NULL, leased_until = NULL WHERE owner = $1", owner
        )
    finally:
        await conn.close()


async def took(
    report: Report, conn: asyncpg.Connection, name: str, statement: str, arguments: tuple[object, ...]
) -> float:
    """Milliseconds by PostgreSQL's own clock, undone again."""
    async with conn.transaction():
        raw = await conn.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *arguments)
        await conn.execute("SELECT 1")
    plan = json.loads(raw)[0]
    report.note(f"{name}: {plan['Execution Time']:.1f} ms, planned in {plan['Planning Time']:.1f} ms")
    return float(plan["Execution Time"])


async def claimed(conn: asyncpg.Connection, place: tuple[UUID, UUID], owner: UUID) -> float:
    now = datetime.now(UTC)
    began = time.perf_counter()
    async with conn.transaction():
        found = await queries.claim(conn, place, 0, owner, now + LEASE, now, MOST_CLAIMED)
    if len(found.rows) != MOST_CLAIMED:
        raise RuntimeError(f"a claim took {len(found.rows)}")
    return (time.perf_counter() - began) * 1000


# Parts --------------------------------------------------------------------------------------------------


def subscribe(server: Server, url: str, *kinds: str) -> UUID:
    """A webhook of the first team, for one kind where nothing else is said; its team."""
    client = server.connection()
    body = json.dumps({"endpoint": url, "events": kinds or [KIND]})
    client.request("POST", "/webhooks", body, {"Authorization": f"Bearer {KEY}"})
    response = client.getresponse()
    raw = response.read()
    if response.status != 201:
        raise RuntimeError(f"{response.status} {raw[:300]!r}")
    return UUID(str(server.sql("SELECT id FROM teams")[0][0]))


async def fill(server: Server, team: UUID, count: int) -> None:
    """So many events, with a delivery to each webhook of the team."""
    conn = await server.connect()
    since, gap = datetime.now(UTC) - timedelta(hours=1), timedelta(hours=1) / (count + 1)
    try:
        await conn.execute(IDENTITY)
        for low, high in chunks(count):
            await conn.execute(FILL, team, since, gap, low, high)
    finally:
        await conn.close()


def vacuum(server: Server) -> None:
    for table in ("webhook_events", "webhook_deliveries"):
        server.sql(f"VACUUM (ANALYZE) {table}")


def emptied(server: Server) -> None:
    """Return when nothing is open."""
    tools.wait_for(
        lambda: not server.sql("SELECT FROM webhook_deliveries LIMIT 1"),
        "the end of the queue",
        SECONDS,
        pause=0.2,
    )


def ended_well(server: Server) -> float:
    return server.number("SELECT count(*) FROM webhook_outcomes WHERE status = 'success'")


def cpu(used: dict[str, float], count: int) -> str:
    """Processor time per delivery, as text."""
    return "CPU µs each: " + ", ".join(f"{name} {spent / count * 1e6:,.0f}" for name, spent in used.items())


if __name__ == "__main__":
    ended("webhooks", measure, __doc__)
