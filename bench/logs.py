"""What the log of requests costs: the accept rate and the processor time per mail, with the log and without.

Two servers with the role `api` alone take the same load in turns, so that a machine that changes its mood is
unkind to both. Each mail with the log has its row, and the row is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.kit import load, tools
from bench.kit.processes import Meter
from bench.kit.results import Report, at_least, ended
from bench.kit.server import Server, serving

CONNECTIONS = 50
BATCH_CONNECTIONS = 10
REPETITIONS = 4
LEAST = 0.85
READS = 2000


@dataclass(slots=True)
class Sum:
    """What one server did in all its repetitions."""

    mails: int = 0
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        return self.mails / self.seconds if self.seconds else 0.0

    @property
    def micros(self) -> float:
        return self.cpu / max(1, self.mails) * 1e6


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    singles, batches = load.single_mails(report.folder), load.batches(report.folder)
    with ExitStack() as stack:
        without, logged = (stack.enter_context(server(report, days)) for days in (0, 30))
        compare(report, "POST /emails", without, logged, singles, CONNECTIONS, 1)
        rows, size = log_rows(logged)
        report.result("a log row of POST /emails, with its place in the index", size / max(1, rows), "bytes")
        compare(report, "batch", without, logged, batches, BATCH_CONNECTIONS, load.BATCH)
        prove(report, without, logged)
        read(report, logged)


@contextmanager
def server(report: Report, days: int) -> Iterator[Server]:
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    data = report.folder / f"data-{days}"
    more = ["--log-retention-days", str(days)]
    with serving(report, data, route=nowhere, roles="api", more=more) as found:
        found.trust()
        yield found


def compare(
    report: Report, name: str, without: Server, logged: Server, requests: Path, connections: int, each: int
) -> None:
    """The same load in turns, the order changing with each repetition."""
    seconds = 1 if report.short else 8
    sums = {without.url: Sum(), logged.url: Sum()}
    for turn in range(REPETITIONS):
        pair = (without, logged) if turn % 2 else (logged, without)
        for found in pair:
            one_repetition(report, name, found, requests, connections, seconds, each, sums[found.url])
    off, on = sums[without.url], sums[logged.url]
    report.result(f"{name}: emails/s without the log", off.rate, "emails/s")
    report.result(f"{name}: emails/s with the log", on.rate, "emails/s")
    report.result(f"{name}: rate with ÷ rate without", on.rate / off.rate, "×", at_least(LEAST))
    note = f"{off.micros:.0f} and {on.micros:.0f} µs of CPU per mail"
    report.result(f"{name}: CPU without ÷ CPU with", off.micros / on.micros, "×", at_least(LEAST), note)


def one_repetition(
    report: Report,
    name: str,
    found: Server,
    requests: Path,
    connections: int,
    seconds: float,
    each: int,
    to: Sum,
) -> None:
    load.wrk(found, requests, connections=connections, seconds=1)
    meters: list[Meter] = []
    answered = load.wrk(
        found,
        requests,
        connections=connections,
        seconds=seconds,
        watch=lambda: meters.append(Meter(found.process.pid)),
    )
    if answered.trouble:
        report.fault(f"{name}: {answered.trouble}")
    to.mails += (answered.requests - answered.refused) * each
    to.seconds += answered.seconds
    to.cpu += sum(meters[0].used().values())


def log_rows(found: Server) -> tuple[int, float]:
    """How many rows the log has, and how large it is."""
    [row] = found.sql("SELECT count(*), pg_total_relation_size('logs') FROM logs")
    return int(row[0]), float(row[1])


def prove(report: Report, without: Server, logged: Server) -> None:
    """No row without the log, and with it one for each request whose mails are stored."""
    if rows := log_rows(without)[0]:
        report.fault(f"{rows} log rows where there is no log")
    [lost] = logged.sql(
        """
        SELECT (SELECT count(*) FROM emails)
               - (SELECT coalesce(sum(coalesce(json_array_length(response_body->'data'), 1)), 0)
                    FROM logs WHERE method = 'POST' AND response_status = 200)
        """
    )[0]
    if lost:
        report.fault(f"{lost} mails without a log row")


def read(report: Report, logged: Server) -> None:
    """Pages of the log, and single rows with the bodies put in."""
    ids = [row[0] for row in logged.sql("SELECT id FROM logs ORDER BY id DESC LIMIT 200")]
    for name, paths in (
        ("GET /logs", ["/logs?limit=20"]),
        ("GET /logs/{id}", [f"/logs/{found}" for found in ids]),
    ):
        requests = load.reads(report.folder / "reads.txt", paths)
        answered = load.wrk(logged, requests, connections=1, most=100 if report.short else READS)
        if answered.trouble:
            report.fault(f"{name}: {answered.trouble}")
        report.result(f"{name}, p50", answered.p50, "ms", note=f"p99 {answered.p99:.1f} ms")


if __name__ == "__main__":
    ended("logs", measure, __doc__)
