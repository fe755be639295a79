"""What a mail costs in two versions of the program, in turns: `python -m bench.turns OTHER [LOAD …]`.

OTHER is the folder of another checkout, made ready with `script/bootstrap dev`. Its server and ours run side
by side, and one after the other gets a second of the same load. So whatever else the machine does, both
meet it, and each second is compared with its neighbour: what is printed is the median of these ratios, and
between which two values it lies (95 % of samples drawn from the turns). Processor time is read from the
scheduler, to the nanosecond.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import inbound, metrics, submission, webhooks
from bench.deliver import wait_until_delivered
from bench.kit import load, machine, tools
from bench.kit.nameserver import name_server
from bench.kit.postfix import SESSIONS
from bench.kit.processes import running_seconds, tree
from bench.kit.receivers import http_receiver
from bench.kit.results import Report
from bench.kit.server import KEY, Server, serving
from bench.kit.sinks import smtp_sink
from bench.kit.spread import between
from bench.kit.submitter import submit

DELIVERED = 500
OFFERED = 2000
"""Mails of a turn; where a client has to be started for it, more."""
EVENTS = 1_000_000
EMAILS = "SELECT count(*) FROM emails"

Work = Callable[[], int]
"""One turn of a load; how many mails (or requests) it was."""


@dataclass(slots=True)
class Spent:
    """Microseconds of a processor per mail, turn by turn."""

    ours: list[float] = field(default_factory=list)
    postgres: list[float] = field(default_factory=list)

    @property
    def together(self) -> list[float]:
        return [one + other for one, other in zip(self.ours, self.postgres, strict=True)]


# Loads --------------------------------------------------------------------------------------------------


@contextmanager
def accept(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / name, route=nowhere, roles="api", python=python) as server:
        server.trust()
        server.reuse_wal()
        mails = load.single_mails(report.folder)
        yield server, lambda: good(report, load.wrk(server, mails, connections=50, seconds=1))


@contextmanager
def batch(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / name, route=nowhere, roles="api", python=python) as server:
        server.trust()
        server.reuse_wal()
        mails = load.batches(report.folder)
        yield server, lambda: good(report, load.wrk(server, mails, connections=10, seconds=1)) * load.BATCH


@contextmanager
def deliver(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    with smtp_sink(report.folder) as sink:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        with serving(report, report.folder / name, route=route, python=python) as server:
            server.trust()
            yield server, lambda: delivered(report, server)


@contextmanager
def hooks(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    with smtp_sink(report.folder) as sink, http_receiver(report.folder) as receiver:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        more = webhooks.LOOPBACK
        with serving(report, report.folder / name, route=route, more=more, python=python) as server:
            server.trust()
            webhooks.subscribe(server, receiver.url, *webhooks.EMAIL_KINDS)

            def work() -> int:
                mails = delivered(report, server)
                webhooks.emptied(server)
                return mails

            yield server, work


def delivered(report: Report, server: Server) -> int:
    """Send and wait until all is delivered. It may be some more than asked for: what the connections had sent
    before they were stopped is accepted, too."""
    before = server.number(EMAILS)
    good(report, load.wrk(server, load.single_mails(report.folder), connections=50, most=DELIVERED))
    wait_until_delivered(server)
    return int(server.number(EMAILS) - before)


@contextmanager
def submit_mail(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    more = submission.LISTENERS
    folder = report.folder / name
    with serving(report, folder, route=nowhere, roles="api,smtp", more=more, python=python) as server:
        server.trust()
        port = submission.port_of(server)

        def work() -> int:
            done = submit(port, sessions=SESSIONS, mails=OFFERED)
            if done.refused:
                report.fault(f"submission: {done.refused}")
            return done.mails

        yield server, work


@contextmanager
def receive(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    with (
        name_server(inbound.HOST, "AAAA") as dns,
        inbound.receiving(report, name, dns.port, python=python) as (server, port),
    ):

        def work() -> int:
            inbound.offer(port, OFFERED)
            return OFFERED

        yield server, work


@contextmanager
def ask_metrics(report: Report, name: str, python: str) -> Iterator[tuple[Server, Work]]:
    with serving(report, report.folder / name, roles="api", python=python) as server:
        team = str(server.sql("SELECT id FROM teams")[0][0])
        end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        asyncio.run(metrics.grow(server, {team: EVENTS}, end))
        first, last = (end - timedelta(days=30)).date(), (end - timedelta(days=1)).date()
        path = f"/emails/metrics?start_date={first}&end_date={last}&dimensions=period,domain"
        question = load.reads(report.folder / f"{name}.question", [path])
        yield server, lambda: good(report, load.wrk(server, question, connections=1, seconds=1, key=KEY))


def good(report: Report, done: load.Answered) -> int:
    """How many requests were answered well. A refusal is cheap, so a version that refuses must not look as if
    it did the same for less."""
    if done.trouble or not done.requests:
        report.fault(f"a turn: {done.requests} answers, {done.trouble or 'none'}")
    return max(1, done.requests - done.refused)


LOADS: dict[str, Callable[[Report, str, str], AbstractContextManager[tuple[Server, Work]]]] = {
    "accept": accept,
    "batch": batch,
    "deliver": deliver,
    "webhooks": hooks,
    "submission": submit_mail,
    "inbound": receive,
    "metrics": ask_metrics,
}


# Turns --------------------------------------------------------------------------------------------------


def compare(report: Report, name: str, other: str, turns: int) -> list[float]:
    """Print what a mail of this load costs in both versions, and the ratio; returns the ratios of all its
    processor time, turn by turn."""
    open_load = LOADS[name]
    with ExitStack() as stack:
        theirs = stack.enter_context(open_load(report, f"{name}-other", other))
        ours = stack.enter_context(open_load(report, f"{name}-this", sys.executable))
        pairs = ((theirs, Spent()), (ours, Spent()))
        for _, work in (theirs, ours):
            work()
        for turn in range(turns):
            for (server, work), spent in pairs if turn % 2 else pairs[::-1]:
                measured(server, work, spent)
    (_, before), (_, after) = pairs
    ratios = []
    for program, ours_of, theirs_of in (
        ("pillarbox", after.ours, before.ours),
        ("postgres", after.postgres, before.postgres),
        ("together", after.together, before.together),
    ):
        ratios = [late / early for late, early in zip(ours_of, theirs_of, strict=True)]
        low, high = between(ratios)
        note = (
            f"{statistics.median(ours_of):,.0f} µs, other {statistics.median(theirs_of):,.0f} µs, "
            f"{turns} turns, between {low:.3f} and {high:.3f}"
        )
        report.result(f"{name}: {program}, this ÷ other", statistics.median(ratios), "×", note=note)
    return ratios


def measured(server: Server, work: Work, spent: Spent) -> None:
    before = seconds(server)
    mails = work()
    after = seconds(server)
    spent.ours.append((after[0] - before[0]) / mails * 1e6)
    spent.postgres.append((after[1] - before[1]) / mails * 1e6)


def seconds(server: Server) -> tuple[float, float]:
    """Processor time of Pillarbox and of PostgreSQL's processes so far."""
    found = tree(server.process.pid)
    own = [server.process.pid, *found.nursery, *found.workers]
    return sum(map(running_seconds, own)), sum(map(running_seconds, found.postgres))


def bootstrapped(checkout: Path, interpreter: str | None = None) -> str:
    """The Python of a checkout, which is made ready; its environment gets `interpreter` where it is new."""
    command = [str(checkout / "script" / "bootstrap"), "dev"]
    chosen = {**os.environ, **({"PYTHON": interpreter} if interpreter else {})}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=chosen).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("loads", nargs="*", help=f"of {', '.join(LOADS)}; all without it")
    parser.add_argument("--turns", type=int, default=40, help="turns of each version")
    wanted = parser.parse_args()
    python = bootstrapped(wanted.other)
    with tempfile.TemporaryDirectory(prefix="pillarbox-bench-", ignore_cleanup_errors=True) as folder:
        report = Report("turns", short=False, folder=Path(folder))
        for line in machine.facts(report.folder):
            report.note(line)
        for name in wanted.loads or LOADS:
            compare(report, name, python, wanted.turns)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
