"""How fast mail is accepted: `POST /emails` and `POST /emails/batch`, everything durable, nothing delivered.

The server runs with the role `api` alone, so what it accepts waits in the queue. Beside it Postfix takes
mail by SMTP into its hold queue, on the same disk in the same run. And the rows of a batch are inserted into
the same tables by the bare driver, over as many connections as there are workers: each of these has one
commit of mail at a time.
"""

from __future__ import annotations

from pathlib import Path

from bench.kit import bare_insert, load, tools
from bench.kit.load import Answered
from bench.kit.postfix import SESSIONS, postfix
from bench.kit.processes import Meter, shares, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import Server, serving

CONNECTIONS = 50
BATCH_CONNECTIONS = 10
BARE = 120_000
BARE_SHORT = 10_000
"""Mails that the bare driver inserts."""


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    ours = measure_ours(report)
    theirs = measure_postfix(report)
    if theirs:
        report.result("POST /emails ÷ Postfix", ours / theirs, "×", at_least(5))


def measure_ours(report: Report) -> float:
    seconds = 3 if report.short else 30
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "data", route=nowhere, roles="api") as server:
        server.trust()
        server.reuse_wal()
        singles = load.single_mails(report.folder)
        load.wrk(server, singles, connections=CONNECTIONS, seconds=2)
        one = phase(report, server, "POST /emails", singles, CONNECTIONS, seconds, 1)
        report.result(f"POST /emails, {CONNECTIONS} connections", one.rate, "requests/s", at_least(5000))
        report.result("POST /emails, p50", one.p50, "ms")
        report.result("POST /emails, p99", one.p99, "ms", at_most(30), note=f"worst {one.worst:.0f} ms")
        batches = load.batches(report.folder)
        server.sql("CHECKPOINT")
        many = phase(report, server, "batch", batches, BATCH_CONNECTIONS, seconds, load.BATCH)
        emails = many.rate * load.BATCH
        note = f"p50 {many.p50:.0f} ms, p99 {many.p99:.0f} ms"
        report.result(f"POST /emails/batch of {load.BATCH}", emails, "emails/s", at_least(15000), note)
        mails = BARE_SHORT if report.short else BARE
        # As many mails on both sides, each begun behind a checkpoint.
        server.sql("CHECKPOINT")
        same = load.wrk(server, batches, connections=BATCH_CONNECTIONS, most=mails // load.BATCH)
        bare = measure_bare_inserts(report, server, mails)
        ratio = same.rate * load.BATCH / bare
        report.result("batches ÷ bare insert", ratio, "×", at_least(0.35), f"{mails:,} mails each")
    return one.rate


def phase(
    report: Report, server: Server, name: str, requests: Path, connections: int, seconds: float, each: int
) -> Answered:
    """One load, with the proof that everything answered is stored, and what it cost."""
    stored = server.number("SELECT count(*) FROM emails")
    before = counters(server)
    meters: list[Meter] = []
    answered = load.wrk(
        server,
        requests,
        connections=connections,
        seconds=seconds,
        watch=lambda: meters.append(Meter(server.process.pid)),
    )
    used = meters[0].used() | {"wrk": answered.cpu}
    after = counters(server)
    new = server.number("SELECT count(*) FROM emails") - stored
    expected = (answered.requests - answered.refused) * each
    if answered.trouble:
        report.fault(f"{name}: {answered.trouble}")
    if new < expected:
        report.fault(f"{name}: {expected} mails were acknowledged and {new:.0f} are stored")
    commits, written = (late - early for late, early in zip(after, before, strict=True))
    report.note(
        f"{name}: {shares(used, int(new))}; {new / max(1.0, commits):.1f} mails per commit, "
        f"{written / max(1.0, new) / 1000:.1f} kB of WAL per mail"
    )
    return answered


def measure_bare_inserts(report: Report, server: Server, mails: int) -> float:
    """Mails per second when nothing but the driver inserts the rows of batches."""
    connections = len(tree(server.process.pid).workers)
    done = bare_insert.inserted(server, mails, connections)
    for table in done.wrong:
        report.fault(f"bare insert: {table} got another number of rows than by a batch")
    name = f"the same rows by the bare driver, {connections} connections"
    report.result(name, done.rate, "emails/s")
    report.note(
        f"bare insert: {shares({'postgres': done.postgres}, done.mails)}; "
        f"{done.wal / done.mails / 1000:.1f} kB of WAL per mail"
    )
    return done.rate


def counters(server: Server) -> tuple[float, float]:
    """Commits of mail and bytes of WAL so far: a commit leaves one increment, and nobody here folds them."""
    asked = "SELECT (SELECT count(*) FROM metric_increments), pg_current_wal_lsn() - '0/0'::pg_lsn"
    commits, written = server.sql(asked)[0]
    return float(commits), float(written)


def measure_postfix(report: Report) -> float | None:
    """Mails per second into Postfix's queue; None where there is no Postfix."""
    mails = 1000 if report.short else 10000
    try:
        with postfix(report.folder / "postfix", relay=tools.free_port(), held=True) as peer:
            peer.offer(SESSIONS * 5)
            before = peer.held
            rate = mails / peer.offer(mails)
            if peer.held - before != mails:
                report.fault(f"Postfix kept {peer.held - before} of {mails} mails")
    except tools.Missing as missing:
        report.skip("Postfix", str(missing))
        return None
    report.result(f"Postfix into its hold queue, smtp-source -s {SESSIONS}", rate, "mails/s")
    return rate


if __name__ == "__main__":
    ended("accept", measure, __doc__)
