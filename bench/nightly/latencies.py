"""The p99 of `POST /emails` beside other work ÷ alone, each measured in turns: some seconds alone, then the
same while the work goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench import automations, broadcasts, domains, imports
from bench.deliver import wait_until_delivered
from bench.kit import load, tools
from bench.kit.load import Answered
from bench.kit.nameserver import name_server
from bench.kit.results import Report
from bench.kit.server import serving
from bench.kit.sinks import smtp_sink
from bench.nightly.judging import Figure
from bench.nightly.measurement import Measurement, Turn

SECONDS, SECONDS_SHORT = 5, 2
CHECKS_A_SECOND = 115
DELAYS_A_SECOND = 167
IMPORTED, COPIES = 300_000, 20_000

BESIDE_CHECKS = Figure("POST /emails, p99 beside domain checks ÷ alone", more_is_better=False)
BESIDE_IMPORT = Figure("POST /emails, p99 beside an import ÷ alone", more_is_better=False)
BESIDE_BROADCAST = Figure("POST /emails, p99 beside a broadcast ÷ alone", more_is_better=False)
BESIDE_DELAYS = Figure("POST /emails, p99 beside delays that end ÷ alone", more_is_better=False)


def seconds_of(report: Report) -> int:
    return SECONDS_SHORT if report.short else SECONDS


def ratio(report: Report, figure: Figure, alone: Answered, beside: Answered) -> dict[Figure, float]:
    for done in (alone, beside):
        if done.trouble:
            report.fault(f"{figure.name}: {done.trouble}")
    return {figure: beside.p99 / alone.p99}


@contextmanager
def checks(report: Report) -> Iterator[Turn]:
    seconds = seconds_of(report)
    with name_server(domains.HOST, domains.KEY) as names:
        dns = ("--dns", f"127.0.0.1:{names.port}")
        with serving(report, report.folder / "data", more=dns) as server:
            server.trust()
            domains.fill(server, CHECKS_A_SECOND * seconds)
            server.reuse_wal()
            requests = load.single_mails(report.folder)

            def turn() -> dict[Figure, float]:
                alone = domains.accepting(server, requests, seconds)
                domains.due(server)
                beside = domains.accepting(server, requests, seconds)
                tools.wait_for(lambda: not domains.waiting(server), "the checks", 120)
                return ratio(report, BESIDE_CHECKS, alone, beside)

            yield turn


@contextmanager
def an_import(report: Report) -> Iterator[Turn]:
    seconds = seconds_of(report)
    with serving(report, report.folder / "data") as server:
        server.trust()
        imports.add_segment(server)
        file = report.folder / "people.csv"
        imports.write(file, IMPORTED)
        server.reuse_wal()
        requests = load.single_mails(report.folder)

        def turn() -> dict[Figure, float]:
            server.sql("CHECKPOINT")
            alone = imports.accepting(server, requests, seconds)
            server.sql(imports.EMPTY)
            import_id = imports.posted(server, file)
            beside = imports.accepting(server, requests, seconds)
            imports.finished(server, import_id)
            return ratio(report, BESIDE_IMPORT, alone, beside)

        yield turn


@contextmanager
def a_broadcast(report: Report) -> Iterator[Turn]:
    seconds = seconds_of(report)
    port = tools.free_port()
    with (
        smtp_sink(report.folder, port),
        serving(report, report.folder / "data", route=f"relay:smtp://127.0.0.1:{port}") as server,
    ):
        server.trust()
        segment = broadcasts.made(server, "/segments", name="Readers")
        broadcasts.filled(server, segment, 1, COPIES)
        server.reuse_wal()
        requests = load.single_mails(report.folder)

        def turn() -> dict[Figure, float]:
            alone = broadcasts.accepting(server, requests, seconds)
            wait_until_delivered(server)
            broadcast = broadcasts.begun(server, segment)
            beside = broadcasts.accepting(server, requests, seconds)
            broadcasts.canceled(server, broadcast)
            return ratio(report, BESIDE_BROADCAST, alone, beside)

        yield turn


@contextmanager
def delays(report: Report) -> Iterator[Turn]:
    seconds = seconds_of(report)
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "data", route=nowhere) as server:
        server.trust()
        pause = automations.step("pause", "delay", duration="30 days")
        automation = automations.made(server, "later", [pause])
        server.reuse_wal()
        requests = load.single_mails(report.folder)
        due = DELAYS_A_SECOND * seconds

        def turn() -> dict[Figure, float]:
            alone = automations.accepting(server, requests, seconds)
            automations.insert(server, automation, due, due, seconds)
            beside = automations.accepting(server, requests, seconds)
            tools.wait_for(lambda: not server.number(automations.TIMERS), "the delays", 120)
            return ratio(report, BESIDE_DELAYS, alone, beside)

        yield turn


MEASUREMENTS: dict[str, Measurement] = {
    "domains": Measurement(checks, (BESIDE_CHECKS,)),
    "imports": Measurement(an_import, (BESIDE_IMPORT,)),
    "broadcasts": Measurement(a_broadcast, (BESIDE_BROADCAST,)),
    "automations": Measurement(delays, (BESIDE_DELAYS,)),
}
