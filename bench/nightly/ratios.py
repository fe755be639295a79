"""The ratios to peers, each measured in turns: a second or two of ours, then the same of the peer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench import inbound, submission
from bench.deliver import sustained
from bench.kit import bare_insert, load, tools
from bench.kit.nameserver import name_server
from bench.kit.postfix import SESSIONS, postfix
from bench.kit.processes import tree
from bench.kit.results import Report
from bench.kit.server import serving
from bench.kit.sinks import SmtpSink, smtp_sink
from bench.kit.submitter import submit
from bench.nightly import latencies, metrics_beside_sql
from bench.nightly.judging import Figure
from bench.nightly.measurement import Measurement, Turn

ACCEPTED = Figure("POST /emails ÷ Postfix")
INSERTED = Figure("batches ÷ bare insert")
DELIVERED = Figure("accept → delivered ÷ Postfix with OpenDKIM")
RECEIVED = Figure("inbound ÷ Postfix")
SUBMITTED_NEW = Figure("submission ÷ Postfix, its connections new for each mail")
SUBMITTED_KEPT = Figure("submission ÷ Postfix, its connections kept as ours")


@contextmanager
def accept(report: Report) -> Iterator[Turn]:
    seconds, mails = (1, 300) if report.short else (2, 1000)
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with (
        postfix(report.folder / "postfix", relay=tools.free_port(), held=True) as peer,
        serving(report, report.folder / "data", route=nowhere, roles="api") as server,
    ):
        server.trust()
        server.reuse_wal()
        requests = load.single_mails(report.folder)

        def turn() -> dict[Figure, float]:
            ours = load.wrk(server, requests, connections=50, seconds=seconds)
            if ours.trouble:
                report.fault(f"POST /emails: {ours.trouble}")
            return {ACCEPTED: ours.rate / (mails / peer.offer(mails))}

        yield turn


@contextmanager
def batch(report: Report) -> Iterator[Turn]:
    seconds, mails = (1, 2000) if report.short else (2, 20_000)
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "data", route=nowhere, roles="api") as server:
        server.trust()
        server.reuse_wal()
        requests = load.batches(report.folder)
        connections = len(tree(server.process.pid).workers)

        def turn() -> dict[Figure, float]:
            # The bare insert begins with one as well.
            server.sql("CHECKPOINT")
            ours = load.wrk(server, requests, connections=10, seconds=seconds)
            if ours.trouble:
                report.fault(f"POST /emails/batch: {ours.trouble}")
            done = bare_insert.inserted(server, mails, connections)
            for table in done.wrong:
                report.fault(f"bare insert: {table} got another number of rows than by a batch")
            return {INSERTED: ours.rate * load.BATCH / done.rate}

        yield turn


@contextmanager
def deliver(report: Report) -> Iterator[Turn]:
    mails = 300 if report.short else 1000
    port = tools.free_port()
    with (
        postfix(report.folder / "postfix", relay=port, signed=True) as peer,
        smtp_sink(report.folder, port) as sink,
        serving(report, report.folder / "data", route=f"relay:smtp://127.0.0.1:{port}") as server,
    ):
        server.trust()
        requests = load.single_mails(report.folder)

        def turn() -> dict[Figure, float]:
            ours = sustained(report, server, sink, requests, 50, mails, 1).rate
            return {DELIVERED: ours / (mails / relayed(peer.offer, sink, mails))}

        yield turn


def relayed(offer: Callable[[int], float], sink: SmtpSink, mails: int) -> float:
    """Seconds from the first mail offered to the last at the sink."""
    before = sink.messages
    began = time.monotonic()
    offer(mails)
    tools.wait_for(lambda: sink.messages >= before + mails, "Postfix's mails", 300)
    return time.monotonic() - began


@contextmanager
def receive(report: Report) -> Iterator[Turn]:
    mails = 300 if report.short else 1000
    with (
        postfix(report.folder / "postfix", relay=tools.free_port(), held=True) as peer,
        name_server(inbound.HOST, "AAAA") as dns,
        inbound.receiving(report, "data", dns.port) as (_, port),
    ):

        def turn() -> dict[Figure, float]:
            return {RECEIVED: peer.offer(mails) / inbound.offer(port, mails)}

        yield turn


@contextmanager
def submission_mail(report: Report) -> Iterator[Turn]:
    mails = 500 if report.short else 1500
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    more = submission.LISTENERS
    with (
        postfix(report.folder / "postfix", relay=tools.free_port(), held=True) as peer,
        serving(report, report.folder / "data", route=nowhere, roles="api,smtp", more=more) as server,
    ):
        server.trust()
        port = submission.port_of(server)

        def turn() -> dict[Figure, float]:
            ours = submit(port, sessions=SESSIONS, mails=mails)
            if ours.refused:
                report.fault(f"submission: {ours.refused}")
            return {
                SUBMITTED_NEW: ours.rate / (mails / peer.offer(mails)),
                SUBMITTED_KEPT: ours.rate / (mails / peer.offer(mails, reused=True)),
            }

        yield turn


MEASUREMENTS: dict[str, Measurement] = {
    "accept": Measurement(accept, (ACCEPTED,)),
    "batch": Measurement(batch, (INSERTED,)),
    "deliver": Measurement(deliver, (DELIVERED,)),
    "inbound": Measurement(receive, (RECEIVED,)),
    "submission": Measurement(submission_mail, (SUBMITTED_NEW, SUBMITTED_KEPT)),
    **metrics_beside_sql.MEASUREMENTS,
    **latencies.MEASUREMENTS,
}
