"""How much memory Pillarbox's own processes hold: under full load, and with ten mails of 40 MB at once.

Counted is the highest resident size of each process (VmHWM), the database's not included.
"""

from __future__ import annotations

import base64
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

from bench.kit import load, tools
from bench.kit.processes import memory_mb, tree
from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, SENDER, Server, serving
from bench.kit.sinks import SmtpSink, smtp_sink

LARGE_BYTES = 30_000_000
"""An attachment that is 40 MB in base64."""

PARALLEL = 10
CONNECTIONS = 50
DELIVERY_SECONDS = 900.0


def measure(report: Report) -> None:
    try:
        tools.need("wrk", "smtp-sink")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    with smtp_sink(report.folder) as sink:
        under_load(report, sink)
        large_mails(report, sink)


def under_load(report: Report, sink: SmtpSink) -> None:
    seconds = 5 if report.short else 60
    with serving(report, report.folder / "load", route=f"relay:smtp://127.0.0.1:{sink.port}") as server:
        server.trust()
        idle = peaks(server)
        singles = load.single_mails(report.folder)
        course = []
        for _ in range(4):
            load.wrk(server, singles, connections=CONNECTIONS, seconds=seconds / 5)
            course.append(max(now(server)))
        load.wrk(server, load.batches(report.folder), connections=4, seconds=seconds / 5)
        course.append(max(now(server)))
        settled(server)
        busy = peaks(server)
        report.result("largest process under load, peak", max(busy), "MB", at_most(250), sizes_text(busy))
        report.result("largest process when idle at first", max(idle), "MB", note=sizes_text(idle))
        report.note(
            f"largest process in the course of the load: {', '.join(f'{size:.0f}' for size in course)} MB"
        )
        database = sum(memory_mb(pid, "RssAnon") for pid in tree(server.process.pid).postgres)
        report.note(f"PostgreSQL beside it: {database:.0f} MB of its own and 128 MB shared")


def large_mails(report: Report, sink: SmtpSink) -> None:
    parallel = 4 if report.short else PARALLEL
    attachment = base64.b64encode(os.urandom(LARGE_BYTES)).decode()
    body = json.dumps(
        {
            "from": SENDER,
            "to": ["reader@inbox.example"],
            "subject": "Large",
            "text": "See the file.",
            "attachments": [{"filename": "large.bin", "content": attachment}],
        }
    ).encode()
    with serving(report, report.folder / "large", route=f"relay:smtp://127.0.0.1:{sink.port}") as server:
        server.trust()
        before = sink.messages
        with ThreadPoolExecutor(parallel) as threads:
            took = list(threads.map(lambda _: send(server, body), range(parallel)))
        accepted = peaks(server)
        settled(server)
        whole = peaks(server)
        if sink.messages - before != parallel:
            report.fault(f"{sink.messages - before} of {parallel} large mails came to the sink")
        report.result(
            f"{parallel} parallel mails of {len(body) / 1e6:.0f} MB, all processes, peak",
            sum(whole),
            "MB",
            at_most(600),
            note=f"{sizes_text(whole)}; when all were accepted {sizes_text(accepted)}",
        )
        report.result("accepting such a mail, worst", max(took), "s")


def send(server: Server, body: bytes) -> float:
    """One request on a connection of its own; seconds until the answer."""
    began = time.monotonic()
    client = server.connection()
    client.request(
        "POST", "/emails", body, {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    )
    response = client.getresponse()
    raw = response.read()
    client.close()
    if response.status != 200:
        raise RuntimeError(f"{response.status} {raw[:300]!r}")
    return time.monotonic() - began


def settled(server: Server) -> None:
    """Return when the queue is empty."""
    tools.wait_for(
        lambda: not server.sql("SELECT 1 FROM deliveries LIMIT 1"),
        "the end of the queue",
        DELIVERY_SECONDS,
        pause=0.2,
    )


def peaks(server: Server) -> list[float]:
    """The highest resident size of the supervisor and of each worker, in MB."""
    found = tree(server.process.pid)
    return [memory_mb(pid, "VmHWM") for pid in (found.supervisor, *found.workers)]


def now(server: Server) -> list[float]:
    found = tree(server.process.pid)
    return [memory_mb(pid) for pid in (found.supervisor, *found.workers)]


def sizes_text(sizes: list[float]) -> str:
    return f"supervisor {sizes[0]:.0f}, workers {', '.join(f'{size:.0f}' for size in sizes[1:])} MB"


if __name__ == "__main__":
    ended("memory", measure, __doc__)
