"""How fast mail goes from the API to another mail server: signed, with timeline and increments.

The server has its defaults and the route `relay` to Postfix's smtp-sink; mail is fed at full speed while
it is delivered, first one by one, then in batches. Then the time from the answer to the first byte at the
sink when nothing else happens, and what the increments of metrics are of a delivered mail's processor time.
Beside it Postfix with the OpenDKIM milter relays to the same sink.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import asyncpg

from bench.kit import load, tools
from bench.kit.postfix import SELECTOR, SESSIONS, postfix
from bench.kit.processes import Meter, running_seconds, shares
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import DOMAIN, KEY, Server, serving
from bench.kit.signatures import fault_of
from bench.kit.sinks import SmtpSink, StampSink, smtp_sink, stamp_sink
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import Statement, combined
from pillarbox.timeline.batch import TimelineBatch
from pillarbox.timeline.queries import MetricDimensions, appends
from pillarbox.timeline.rules import EventDetail, EventKind, RecipientFate, TimelineEntry, step

CONNECTIONS = 50
BATCH_CONNECTIONS = 4
PAUSE = 0.05
DELIVERY_SECONDS = 900.0
BIN_SECONDS = 5
SETTLED, TURNS, BATCHES = 12, 9, 60
"""Outcomes in a commit, as they come under load; turns with increments and without; commits in a turn."""


class Run(NamedTuple):
    """Mails per second, and what each cost us and PostgreSQL in seconds of a processor."""

    rate: float
    spent: float


class Uncounted(TimelineBatch):
    """Outcomes that no metric counts."""

    def _count(self, *_: object) -> None:
        return


def measure(report: Report) -> None:
    try:
        tools.need("wrk", "smtp-sink", "smtp-source")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    port = tools.free_port()
    ours = measure_ours(report, port)
    theirs = measure_postfix(report, port)
    if theirs:
        report.result("accept → delivered ÷ Postfix with OpenDKIM", ours / theirs, "×", at_least(5))


def measure_ours(report: Report, port: int) -> float:
    mails = 5000 if report.short else 60000
    with serving(report, report.folder / "data", route=f"relay:smtp://127.0.0.1:{port}") as server:
        server.trust()
        with stamp_sink(port) as stamps:
            idle(report, server, stamps)
        with smtp_sink(report.folder, port) as sink:
            # Connections to the sink before are gone; what met them is tried again at once.
            singles = load.single_mails(report.folder)
            sustained(report, server, sink, singles, CONNECTIONS, 500, 1)
            one = sustained(report, server, sink, singles, CONNECTIONS, mails, 1)
            report.result(
                f"accept → delivered, POST /emails, {mails:,} mails", one.rate, "mails/s", at_least(2000)
            )
            batches = load.batches(report.folder)
            many = sustained(report, server, sink, batches, BATCH_CONNECTIONS, mails, load.BATCH)
            report.result(
                f"accept → delivered, batches, {mails:,} mails", many.rate, "mails/s", at_least(2000)
            )
        increments(report, server, min(one.spent, many.spent))
    return one.rate


def idle(report: Report, server: Server, sink: StampSink) -> None:
    """One mail at a time, each sent when the one before has left."""
    mails = 50 if report.short else 300
    client = server.connection()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    sent, answered = [], []
    for number in range(mails):
        sent.append(time.monotonic())
        client.request("POST", "/emails", load.body(number), headers)
        response = client.getresponse()
        answered.append(time.monotonic())
        raw = response.read()
        if response.status != 200:
            raise RuntimeError(f"{response.status} {raw[:300]!r}")
        sink.wait_for(number + 1)
        time.sleep(PAUSE)
    starts = [arrival.first_byte for arrival in sink.arrivals]
    if any(start < begun for start, begun in zip(starts, sent, strict=True)):
        report.fault("a mail's dialogue began before it was sent: times cannot be told apart")
    firsts = milliseconds(answered, starts)
    whole = milliseconds(sent, [arrival.done for arrival in sink.arrivals])
    report.result(
        "accepted → first byte at the sink, idle, p50",
        load.percentile(firsts, 50),
        "ms",
        at_most(10),
        note=f"p99 {load.percentile(firsts, 99):.1f} ms; below 0: on its way before the answer was read",
    )
    report.result("request sent → whole mail at the sink, idle, p50", load.percentile(whole, 50), "ms")
    wire = sink.arrivals[-1].content
    key = server.sql("SELECT selector, public_key FROM dkim_keys WHERE active")[0]
    fault = fault_of(wire, DOMAIN, key["selector"], key["public_key"])
    report.note(f"a mail on the wire has {len(wire):,} bytes; DKIM signature {fault or 'verified'}")
    if fault:
        report.fault(f"signature: {fault}")


def milliseconds(starts: list[float], ends: list[float]) -> list[float]:
    return [(end - start) * 1000 for start, end in zip(starts, ends, strict=True)]


def sustained(
    report: Report, server: Server, sink: SmtpSink, requests: Path, connections: int, mails: int, each: int
) -> Run:
    """Mails per second from the first accept to the last delivery, with proof that all arrived once."""
    began = server.sql("SELECT clock_timestamp()")[0][0]
    at_sink = sink.messages
    meters: list[Meter] = []
    answered = load.wrk(
        server,
        requests,
        connections=connections,
        most=mails // each,
        watch=lambda: meters.append(Meter(server.process.pid, sink=sink.pid)),
    )
    fed = answered.rate * each
    wait_until_delivered(server)
    used = meters[0].used() | {"wrk": answered.cpu}
    row = server.sql(
        """
        SELECT (SELECT count(*) FROM emails WHERE created_at >= $1) AS stored,
               (SELECT min(created_at) FROM emails WHERE created_at >= $1) AS first,
               count(*) FILTER (WHERE kind = 'delivered') AS delivered,
               count(*) FILTER (WHERE kind = 'delivery_delayed') AS delayed,
               max(at) FILTER (WHERE kind = 'delivered') AS last
          FROM timeline WHERE at >= $1
        """,
        began,
    )[0]
    arrived = sink.messages - at_sink
    if answered.trouble:
        report.fault(answered.trouble)
    if not row["stored"] == row["delivered"] == arrived or row["delayed"]:
        report.fault(f"stored {row['stored']}, at the sink {arrived}, {dict(row)}")
    rate = float(row["delivered"]) / float((row["last"] - row["first"]).total_seconds())
    if mails > 1000:
        report.note(
            f"fed at {fed:,.0f}/s (p99 {answered.p99:.0f} ms) and delivered at {rate:,.0f}/s; "
            f"{shares(used, row['stored'])}"
        )
        report.note(f"delivered/s in steps of {BIN_SECONDS} s: {course(server, began)}")
    return Run(rate, (used["pillarbox"] + used["postgres"]) / max(1, row["stored"]))


def increments(report: Report, server: Server, spent: float) -> None:
    """What counting `sent` and `delivered` costs a mail, here and in PostgreSQL: the history of outcomes is
    written with increments and without, in turns. `spent` is what all of a delivered mail costs."""
    counted, uncounted = asyncio.run(_histories(server))
    more = counted - uncounted
    report.result(
        "increments of metrics, of a delivered mail's processor time",
        more / spent * 100,
        "%",
        at_most(5),
        note=f"{more * 1e6:.1f} of {spent * 1e6:,.0f} µs; {SETTLED} outcomes in a commit",
    )


async def _histories(server: Server) -> tuple[float, float]:
    """Processor time for the history of one outcome with its increments and without; medians."""
    conn = await server.connect()
    try:
        team = await conn.fetchval("SELECT id FROM teams LIMIT 1")
        ids = Ids(SystemClock())
        found: dict[type[TimelineBatch], list[float]] = {TimelineBatch: [], Uncounted: []}
        for _ in range(TURNS):
            for kind in found:
                found[kind].append(await _history(conn, kind, ids, team))
    finally:
        await conn.close()
    return statistics.median(found[TimelineBatch]), statistics.median(found[Uncounted])


async def _history(conn: asyncpg.Connection, kind: type[TimelineBatch], ids: Ids, team: UUID) -> float:
    """One turn: processor time per outcome, ours and that of the connection's own process together."""
    backend = conn.get_server_pid()
    dimensions = MetricDimensions(ids.new(), DOMAIN, None)
    began, theirs = time.process_time(), running_seconds(backend)
    for _ in range(BATCHES):
        batch = kind(ids)
        for _ in range(SETTLED):
            email, at = ids.new(), datetime.now(UTC)
            sent = TimelineEntry(
                team_id=team,
                email_id=email,
                position=0,
                kind=EventKind.SENT,
                at=at,
                detail=EventDetail(host="sink.example", attempt=1),
            )
            done = TimelineEntry(
                team_id=team,
                email_id=email,
                position=0,
                kind=EventKind.DELIVERED,
                at=at,
                detail=EventDetail(host="sink.example", code=250, attempt=1),
            )
            first = step(RecipientFate(EventKind.QUEUED), sent)
            second = step(first.fate, done) if first else None
            if first is None or second is None:
                raise RuntimeError("a queued recipient can be delivered to")
            batch.adopt(dimensions, [(sent, first), (done, second)])
        await combined(conn, appends(batch.rows(), batch.increments()), Statement("SELECT 1", ()))
    spent = time.process_time() - began + running_seconds(backend) - theirs
    return spent / (BATCHES * SETTLED)


def wait_until_delivered(server: Server) -> None:
    """Return when the queue is empty and nothing more is coming in."""
    time.sleep(0.5)
    asyncio.run(asyncio.wait_for(_emptied(server), DELIVERY_SECONDS))


async def _emptied(server: Server) -> None:
    # By one connection: opening one costs PostgreSQL as much as twenty mails.
    conn = await server.connect()
    try:
        while await conn.fetchval("SELECT 1 FROM deliveries LIMIT 1"):
            await asyncio.sleep(0.2)
    finally:
        await conn.close()


def course(server: Server, began: object) -> str:
    """How the rate went over the run."""
    rows = server.sql(
        """
        SELECT count(*) AS mails FROM timeline
         WHERE at >= $1 AND kind = 'delivered'
         GROUP BY date_bin(make_interval(secs => $2), at, $1) ORDER BY min(at)
        """,
        began,
        float(BIN_SECONDS),
    )
    return " ".join(f"{row['mails'] / BIN_SECONDS:,.0f}" for row in rows)


def measure_postfix(report: Report, port: int) -> float | None:
    """Mails per second through Postfix and OpenDKIM to the sink; None where they are not to be had."""
    mails = 1000 if report.short else 20000
    try:
        with postfix(report.folder / "postfix", relay=port, signed=True) as peer:
            with stamp_sink(port) as stamps:
                peer.offer(1)
                stamps.wait_for(1)
                fault = fault_of(stamps.arrivals[0].content, DOMAIN, SELECTOR, peer.public_key or "")
                if fault:
                    report.fault(f"Postfix's signature: {fault}")
            with smtp_sink(report.folder, port) as sink:
                rate = relayed(peer.offer, sink, mails)
    except tools.Missing as missing:
        report.skip("Postfix with OpenDKIM", str(missing))
        return None
    report.result(f"Postfix with OpenDKIM to the same sink, {mails:,} mails", rate, "mails/s")
    return rate


def relayed(offer: object, sink: SmtpSink, mails: int) -> float:
    """From the first mail offered to the last at the sink."""
    assert callable(offer)
    offer(SESSIONS * 5)
    tools.wait_for(lambda: sink.messages >= SESSIONS * 5, "Postfix's first mails", 60)
    began = time.monotonic()
    offer(mails)
    tools.wait_for(lambda: sink.messages >= SESSIONS * 5 + mails, "Postfix's mails", DELIVERY_SECONDS)
    return mails / (time.monotonic() - began)


if __name__ == "__main__":
    ended("deliver", measure, __doc__)
