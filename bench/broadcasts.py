"""How fast a broadcast is sent, what it leaves on the disk, and what other mail feels of it.

In one run with the same sink: batches of ordinary mail, then a broadcast with three placeholders to as many
contacts. Then single mails are sent with nothing else going on, and while another broadcast is sent.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from bench.deliver import BATCH_CONNECTIONS, milliseconds, sustained, wait_until_delivered
from bench.kit import load, tools
from bench.kit.beside import report_ratio
from bench.kit.processes import Meter, memory_mb, shares, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving
from bench.kit.sinks import SmtpSink, StampSink, smtp_sink, stamp_sink

PEOPLE = """
    WITH made AS (
        INSERT INTO contacts
               (team_id, id, address, first_name, last_name, unsubscribed, created_at, updated_at)
        SELECT t.id, uuidv7(), 'reader' || n || '@inbox' || n % 50 || '.example', 'Reader ' || n, 'of ' || n,
               false, now(), now()
          FROM teams t, generate_series($2::integer, $3::integer) AS n
        RETURNING team_id, id
    )
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT team_id, $1::text::uuid, id, now() FROM made
"""

STATE = """
    SELECT b.status, b.resolved_at - b.queued_at AS snapshot, b.recipients,
           (SELECT min(created_at) FROM emails e WHERE e.broadcast_id = b.id) AS first,
           (SELECT max(t.at) FROM timeline t JOIN emails e ON e.team_id = t.team_id AND e.id = t.email_id
             WHERE e.broadcast_id = b.id AND t.kind = 'delivered') AS last,
           (SELECT count(*) FROM emails e
             WHERE e.broadcast_id = b.id AND e.last_event = 'delivered') AS delivered
      FROM broadcasts b
     WHERE b.id = $1::text::uuid
"""

OCTETS = """
    SELECT avg(pg_column_size(e.*) + 4) + (SELECT avg(pg_column_size(r.*) + 4) FROM broadcast_recipients r
                                                 WHERE r.broadcast_id = $1::text::uuid)
      FROM emails e WHERE e.broadcast_id = $1::text::uuid
"""

COPIES = "SELECT count(*) FROM (SELECT FROM emails WHERE broadcast_id = $1::text::uuid LIMIT 1) AS one"

DISK = """
    SELECT sum(pg_total_relation_size(name::regclass))
      FROM unnest(ARRAY['emails', 'contents', 'broadcast_recipients']) AS t (name)
"""

PAUSE = 0.05


def measure(report: Report) -> None:
    try:
        tools.need("wrk", "smtp-sink")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    mails = 10_000 if report.short else 60_000
    port = tools.free_port()
    with serving(report, report.folder / "data", route=f"relay:smtp://127.0.0.1:{port}") as server:
        server.trust()
        segment = made(server, "/segments", name="Readers")
        filled(server, segment, 1, mails)
        with smtp_sink(report.folder, port) as sink:
            throughput(report, server, sink, segment, mails)
            latency(report, server, segment)
        with stamp_sink(port) as stamps:
            interference(report, server, stamps, segment)
    snapshot(report)


def throughput(report: Report, server: Server, sink: SmtpSink, segment: str, mails: int) -> None:
    batches = load.batches(report.folder)
    sustained(report, server, sink, batches, BATCH_CONNECTIONS, 1000, load.BATCH)
    ordinary = sustained(report, server, sink, batches, BATCH_CONNECTIONS, mails, load.BATCH)
    before, at_sink = server.number(DISK), sink.messages
    memory = resident(server)
    meter = Meter(server.process.pid, sink=sink.pid)
    broadcast = sent(server, segment)
    row = finished(server, broadcast)
    used = meter.used()
    rate = row["delivered"] / (row["last"] - row["first"]).total_seconds()
    if not row["delivered"] == row["recipients"] == mails == sink.messages - at_sink:
        report.fault(f"{dict(row)}, at the sink {sink.messages - at_sink}")
    report.note(
        f"copies: {shares(used, mails)}; memory of workers {memory:,.0f} → {resident(server):,.0f} MB"
    )
    report.result(f"batches of ordinary mail, {mails:,}", ordinary.rate, "mails/s")
    report.result(f"copies of a broadcast, {mails:,}", rate, "copies/s")
    report.result("copies ÷ batches", rate / ordinary.rate, "×", at_least(0.9))
    report.result(
        "rows of a copy beyond its timeline and recipient",
        server.number(OCTETS, broadcast),
        "octets",
        at_most(300),
        note=f"{(server.number(DISK) - before) / mails:,.0f} on the disk with indexes and room for updates",
    )


def interference(report: Report, server: Server, sink: StampSink, segment: str) -> None:
    """Single mails alone, and while a broadcast is sent."""
    count = 50 if report.short else 200
    alone = singles(server, sink, count, "alone")
    broadcast = sent(server, segment)
    tools.wait_for(lambda: len(sink.arrivals) > count + 200, "the first copies", 60)
    during = singles(server, sink, count, "meanwhile")
    canceled(server, broadcast)
    for name, before, after in (
        ("POST /emails, p99", alone[0], during[0]),
        ("first byte, p99", alone[1], during[1]),
    ):
        most = max(0.1, 2 * load.percentile(before, 99))
        report.result(
            f"{name}, while a broadcast is sent",
            load.percentile(after, 99),
            "ms",
            at_most(min(100.0, most)),
            note=f"alone {load.percentile(before, 99):.1f}; p50 {load.percentile(before, 50):.1f} "
            f"→ {load.percentile(after, 50):.1f}",
        )


def latency(report: Report, server: Server, segment: str) -> None:
    """POST /emails at some 180 requests a second, alone and while a broadcast is sent."""
    seconds = 4 if report.short else 10
    server.reuse_wal()
    requests = load.single_mails(report.folder)
    alone = accepting(server, requests, seconds)
    wait_until_delivered(server)
    broadcast = begun(server, segment)
    waves = []
    while not waves or (is_being_sent(server, broadcast) and not report.short):
        waves.append(accepting(server, requests, seconds))
    canceled(server, broadcast)
    report_ratio(report, "a broadcast", alone, waves)


def accepting(server: Server, requests: Path, seconds: float) -> load.Answered:
    return load.wrk(server, requests, connections=4, seconds=seconds, pause=20)


def begun(server: Server, segment: str) -> str:
    """A broadcast of which the first copies are made."""
    broadcast = sent(server, segment)
    tools.wait_for(lambda: bool(server.number(COPIES, broadcast)), "the first copies", 60)
    return broadcast


def is_being_sent(server: Server, broadcast: str) -> bool:
    return bool(server.sql(STATE, broadcast)[0]["status"] != "sent")


def canceled(server: Server, broadcast: str) -> None:
    """Let no more of it be sent, and wait until all that was begun is delivered."""
    server.sql(
        "UPDATE broadcasts SET status = 'canceled' WHERE id = $1::text::uuid AND status <> 'sent'", broadcast
    )
    wait_until_delivered(server)


def singles(server: Server, sink: StampSink, count: int, word: str) -> tuple[list[float], list[float]]:
    """Milliseconds of single requests, and from their answer to the first byte at the sink."""
    client = server.connection()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    begun, answered = [], []
    for number in range(count):
        body = json.dumps({**load.mail(number), "subject": f"{word}-{number}."}).encode()
        begun.append(time.monotonic())
        client.request("POST", "/emails", body, headers)
        response = client.getresponse()
        response.read()
        answered.append(time.monotonic())
        time.sleep(PAUSE)
    found: dict[int, float] = {}

    def all_came() -> bool:
        for arrival in list(sink.arrivals):
            _, is_ours, rest = arrival.content[:2000].partition(f"Subject: {word}-".encode())
            if is_ours:
                found[int(rest.partition(b".")[0])] = arrival.first_byte
        return len(found) == count

    tools.wait_for(all_came, "single mails", 60, pause=0.5)
    firsts = [found[number] for number in range(count)]
    return milliseconds(begun, answered), milliseconds(answered, firsts)


def snapshot(report: Report) -> None:
    """From `send` to all copies due."""
    people = 50_000 if report.short else 1_000_000
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "snapshot", route=nowhere, roles="api,jobs") as server:
        server.trust()
        segment = made(server, "/segments", name="Readers")
        for first in range(1, people, 50_000):
            filled(server, segment, first, min(people, first + 49_999))
        server.sql("ANALYZE")
        broadcast = sent(server, segment)
        row: list[Any] = []

        def is_resolved() -> bool:
            row[:] = server.sql(STATE, broadcast)
            return row[0]["recipients"] is not None

        tools.wait_for(is_resolved, "the snapshot", 300, pause=0.1)
        seconds = row[0]["snapshot"].total_seconds()
        report.result(
            f"snapshot of {people:,} contacts",
            row[0]["recipients"] / seconds,
            "contacts/s",
            at_least(100_000),
        )


def made(server: Server, path: str, **body: Any) -> str:
    client = server.connection()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    client.request("POST", path, json.dumps(body).encode(), headers)
    response = client.getresponse()
    answer = json.loads(response.read())
    if response.status not in (200, 201):
        raise RuntimeError(str(answer))
    return str(answer["id"])


def filled(server: Server, segment: str, first: int, last: int) -> None:
    server.sql(PEOPLE, segment, first, last)


def sent(server: Server, segment: str) -> str:
    """A broadcast whose mail is as long as the others, with three placeholders."""
    like = load.mail(1)
    return made(
        server,
        "/broadcasts",
        segment_id=segment,
        subject="{{{FIRST_NAME|Reader}}}, your invoice",
        html=f"<p>Hi {{{{{{contact.last_name|you}}}}}}</p>{like['html']}",
        text=f"Hi {{{{{{EMAIL}}}}}}\n{like['text']}",
        send=True,
        **{"from": like["from"]},
    )


def finished(server: Server, broadcast: str) -> Any:
    """The broadcast when all its copies are delivered."""
    tools.wait_for(
        lambda: (
            server.sql("SELECT status FROM broadcasts WHERE id = $1::text::uuid", broadcast)[0][0] == "sent"
        ),
        "the end of the broadcast",
        900,
        pause=0.5,
    )
    wait_until_delivered(server)
    return server.sql(STATE, broadcast)[0]


def resident(server: Server) -> float:
    return sum(memory_mb(pid) for pid in tree(server.process.pid).workers)


if __name__ == "__main__":
    ended("broadcasts", measure, __doc__)
