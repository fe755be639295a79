"""How fast events are accepted and distributed: `POST /events/send` one by one and in arrays of 100, each
durable before its answer; how fast a burst of a team is distributed; what it delays `POST /emails`.

Half of the events have a schema, and their payloads are fitted to it. Nothing listens to these events: what
automations do with events that they listen to is measured in `automations`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

from bench.kit import load, tools
from bench.kit.load import Answered
from bench.kit.processes import Meter, shares
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving

CONNECTIONS = 50
ARRAY_CONNECTIONS = 10
ARRAY = 100
PEOPLE = 5000
VARIATIONS = 500
BURST = 100_000
BURST_SHORT = 5_000

NAMES = ("user.signed_up", "order.placed", "page.viewed", "plan.changed")
SCHEMA = {"plan": "string", "seats": "number", "trial_end": "date"}

# What was accepted is still there: nothing distributes where the role `jobs` is missing.
STORED = "SELECT count(*) FROM events"


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "accepting", route=nowhere, roles="api") as server:
        accepted(report, server)
    with serving(report, report.folder / "distributing", route=nowhere, roles="api,jobs") as server:
        distributed(report, server)


def accepted(report: Report, server: Server) -> None:
    seconds = 3 if report.short else 20
    define(server)
    singles = load.write(report.folder / "events.txt", requests(1))
    load.wrk(server, singles, connections=CONNECTIONS, seconds=2)
    one = phase(report, server, "POST /events/send", singles, CONNECTIONS, seconds, 1)
    report.result(f"POST /events/send, {CONNECTIONS} connections", one.rate, "events/s", at_least(2000))
    report.result("POST /events/send, p50", one.p50, "ms")
    report.result("POST /events/send, p99", one.p99, "ms", note=f"worst {one.worst:.0f} ms")
    arrays = load.write(report.folder / "arrays.txt", requests(ARRAY))
    many = phase(report, server, "arrays", arrays, ARRAY_CONNECTIONS, seconds, ARRAY)
    note = f"p50 {many.p50:.0f} ms, p99 {many.p99:.0f} ms"
    report.result(f"POST /events/send with {ARRAY}", many.rate * ARRAY, "events/s", note=note)


def distributed(report: Report, server: Server) -> None:
    """A burst that nobody listens to, beside mail of the same team."""
    server.trust()
    define(server)
    mails, arrays = (
        load.single_mails(report.folder),
        load.write(report.folder / "burst.txt", requests(ARRAY)),
    )
    seconds, burst = (3, BURST_SHORT) if report.short else (15, BURST)
    load.wrk(server, mails, connections=4, seconds=2, pause=20)
    alone = load.wrk(server, mails, connections=4, seconds=seconds, pause=20)
    began = time.monotonic()
    load.wrk(server, arrays, connections=4, most=burst // ARRAY)
    taken = time.monotonic() - began
    beside = load.wrk(server, mails, connections=4, seconds=seconds, pause=20)
    tools.wait_for(lambda: not server.number(STORED), "the events", 300)
    left = time.monotonic() - began
    report.result(
        f"{burst:,} events accepted and distributed",
        burst / left,
        "events/s",
        note=f"{taken:.1f} s to accept",
    )
    report.result("POST /emails, p99 alone", alone.p99, "ms")
    report.result("POST /emails, p99 behind the burst", beside.p99, "ms", note=f"p50 {beside.p50:.1f} ms")
    report.result("POST /emails, ratio", beside.p99 / alone.p99, "×", at_most(1.5))
    for trouble in (alone.trouble, beside.trouble):
        if trouble:
            report.fault(f"POST /emails: {trouble}")


def phase(
    report: Report, server: Server, name: str, file: Path, connections: int, seconds: float, each: int
) -> Answered:
    """One load, with the proof that everything answered is stored, and what it cost."""
    stored, log = server.number(STORED), written(server)
    meters: list[Meter] = []
    answered = load.wrk(
        server,
        file,
        connections=connections,
        seconds=seconds,
        watch=lambda: meters.append(Meter(server.process.pid)),
    )
    used = meters[0].used() | {"wrk": answered.cpu}
    new = server.number(STORED) - stored
    expected = (answered.requests - answered.refused) * each
    if answered.trouble:
        report.fault(f"{name}: {answered.trouble}")
    if new < expected:
        report.fault(f"{name}: {expected} events were acknowledged and {new:.0f} are stored")
    report.note(
        f"{name}: {shares(used, int(new))}; "
        f"{(written(server) - log) / max(1.0, new):.0f} octets of WAL per event"
    )
    return answered


def written(server: Server) -> float:
    return float(server.sql("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])


def define(server: Server) -> None:
    """Schemas for half of the names."""
    connection = server.connection()
    head = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    for name in NAMES[::2]:
        connection.request("POST", "/events", json.dumps({"name": name, "schema": SCHEMA}), head)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 201:
            raise RuntimeError(text)
    connection.close()


def requests(size: int) -> Iterator[tuple[str, str, object]]:
    """Requests of one event, or of `size`."""
    chance = random.Random(19)
    for _ in range(VARIATIONS if size == 1 else 20):
        events = [event(chance) for _ in range(size)]
        yield "POST", "/events/send", events if size > 1 else events[0]


def event(chance: random.Random) -> dict[str, object]:
    return {
        "event": chance.choice(NAMES),
        "email": f"reader.{chance.randrange(PEOPLE)}@inbox{chance.randrange(20)}.example",
        "payload": {
            "plan": chance.choice(("free", "pro", 3)),
            "seats": str(chance.randrange(100)),
            "trial_end": "2026-10-03T08:00:00+02:00",
            "referrer": load.prose(chance, 80),
        },
    }


if __name__ == "__main__":
    ended("events", measure, __doc__)
