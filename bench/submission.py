"""How fast mail is submitted by SMTP: AUTH once, mail after mail on connections that stay, everything
durable, nothing delivered.

TLS is off by the setting for tests on loopback. Beside it Postfix takes mail by SMTP into its hold queue
on the same disk in the same run, with a connection for each mail and with connections that stay.
"""

from __future__ import annotations

import json

from bench.kit import tools
from bench.kit.postfix import SESSIONS, postfix
from bench.kit.processes import Meter, shares
from bench.kit.results import Report, at_least, ended
from bench.kit.server import Server, serving
from bench.kit.submitter import submit

LISTENERS = (
    *("--submission", "127.0.0.1:0", "--smtp-login-needs-tls", "false"),
    *("--smtp-client-sessions", "off", "--smtp-client-rate", "off"),
)
MANY = 100


def measure(report: Report) -> None:
    ours = measure_ours(report)
    theirs = measure_postfix(report)
    if theirs:
        new, kept = theirs
        report.result("submission ÷ Postfix, its connections new for each mail", ours / new, "×", at_least(2))
        report.result("submission ÷ Postfix, its connections kept as ours", ours / kept, "×", at_least(2))


def measure_ours(report: Report) -> float:
    mails = 2000 if report.short else 40000
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "data", route=nowhere, roles="api,smtp", more=LISTENERS) as server:
        server.trust()
        submit(port_of(server), sessions=SESSIONS, mails=500)
        rate = phase(report, server, SESSIONS, mails)
        phase(report, server, MANY, mails)
    return rate


def port_of(server: Server) -> int:
    """The address of the submission listener."""
    note = json.loads((server.data / "run" / "supervisor.json").read_text())
    return int(note["settings"]["submission"].rpartition(":")[2])


def phase(report: Report, server: Server, sessions: int, mails: int) -> float:
    """One load, with the proof that everything answered is stored, and what it cost."""
    stored = server.number("SELECT count(*) FROM emails")
    meter = Meter(server.process.pid)
    seen = submit(port_of(server), sessions=sessions, mails=mails)
    used = meter.used() | {"client": seen.cpu}
    new = server.number("SELECT count(*) FROM emails") - stored
    if seen.refused:
        report.fault(f"{sessions} sessions: {seen.refused}")
    if new != mails:
        report.fault(f"{mails} mails were acknowledged and {new:.0f} are stored")
    note = f"p50 {seen.p50:.1f} ms, p99 {seen.p99:.0f} ms, worst {seen.worst:.0f} ms"
    report.result(f"submission, {sessions} sessions", seen.rate, "mails/s", note=note)
    report.note(shares(used, mails))
    return seen.rate


def measure_postfix(report: Report) -> tuple[float, float] | None:
    """Mails per second into Postfix's queue, with a connection for each mail and with connections that are
    kept; None where there is no Postfix."""
    mails = 1000 if report.short else 10000
    try:
        with postfix(report.folder / "postfix", relay=tools.free_port(), held=True) as peer:
            peer.offer(SESSIONS * 5)
            before = peer.held
            new = mails / peer.offer(mails)
            kept = mails / peer.offer(mails, reused=True)
            if peer.held - before != 2 * mails:
                report.fault(f"Postfix kept {peer.held - before} of {2 * mails} mails")
    except tools.Missing as missing:
        report.skip("Postfix", str(missing))
        return None
    report.result(f"Postfix into its hold queue, smtp-source -s {SESSIONS}", new, "mails/s")
    report.result(f"Postfix, connections that stay (-d -s {SESSIONS})", kept, "mails/s")
    return new, kept


if __name__ == "__main__":
    ended("submission", measure, __doc__)
