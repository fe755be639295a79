"""How fast mail comes in: parsed, judged and stored, everything durable, beside Postfix taking the same mail.

`smtp-source` brings mails of 4 kB with twenty sessions, as to Postfix in the same run; then one mail of
25 MB with attachments; then a thousand clients are connected and say nothing.
"""

from __future__ import annotations

import base64
import os
import smtplib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from email.message import EmailMessage

from bench.kit import tools
from bench.kit.nameserver import name_server
from bench.kit.postfix import BYTES, SESSIONS, postfix
from bench.kit.processes import Meter, memory_mb, shares, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import DOMAIN, Server, serving

TO = "reader@inbox.example"
LARGE_BYTES = 25_000_000
IDLE = 1000
HOST = "mta.bench.example"


def measure(report: Report) -> None:
    try:
        tools.need("smtp-source")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    with name_server(HOST, "AAAA") as dns:
        ours = small_mails(report, dns.port)
        theirs = measure_postfix(report)
        if theirs:
            report.result("inbound ÷ Postfix", ours / theirs, "×", at_least(2))
        large_mail(report, dns.port)
        idle_clients(report, dns.port)


@contextmanager
def receiving(
    report: Report,
    folder: str,
    dns: int,
    processes: int | None = None,
    python: str = sys.executable,
) -> Iterator[tuple[Server, int]]:
    """A server that only receives, for a domain of its team; and its port for mail."""
    port = tools.free_port()
    more = ["--smtp", f"127.0.0.1:{port}", "--dns", f"127.0.0.1:{dns}", "--inbound-require-dns", "false"]
    more += ["--smtp-client-sessions", "off", "--smtp-client-rate", "off"]
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(
        report,
        report.folder / folder,
        route=nowhere,
        roles="api,smtp",
        processes=processes,
        more=more,
        python=python,
    ) as server:
        server.trust("inbox.example")
        server.sql("UPDATE domains SET receiving = true WHERE name = 'inbox.example'")
        yield server, port


def offer(port: int, mails: int, to: str = TO, sessions: int = SESSIONS) -> float:
    """Bring mails with smtp-source; seconds until the last was acknowledged."""
    command = [tools.program("smtp-source"), "-s", str(sessions), "-m", str(mails), "-l", str(BYTES)]
    command += ["-f", f"news@{DOMAIN}", "-t", to, f"127.0.0.1:{port}"]
    began = time.monotonic()
    subprocess.run(command, check=True, timeout=1200, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def commits_and_wal(server: Server) -> tuple[float, float]:
    """Commits that stored mail and bytes of WAL so far."""
    asked = "SELECT count(DISTINCT xmin::text), pg_current_wal_lsn() - '0/0'::pg_lsn FROM received_emails"
    commits, written = server.sql(asked)[0]
    return float(commits), float(written)


def small_mails(report: Report, dns: int) -> float:
    mails = 2000 if report.short else 40_000
    with receiving(report, "small", dns) as (server, port):
        offer(port, SESSIONS * 10)
        stored = server.number("SELECT count(*) FROM received_emails")
        before = commits_and_wal(server)
        meter = Meter(server.process.pid)
        rate = mails / offer(port, mails)
        used = meter.used()
        commits, written = (late - early for late, early in zip(commits_and_wal(server), before, strict=True))
        new = server.number("SELECT count(*) FROM received_emails") - stored
        if new != mails:
            report.fault(f"{mails} mails were acknowledged and {new:.0f} are stored")
        report.result(
            f"received with parse and store, smtp-source -s {SESSIONS}", rate, "mails/s", at_least(2000)
        )
        report.note(
            f"{shares(used, mails)}; {mails / max(1.0, commits):.1f} mails per commit, "
            f"{written / mails / 1000:.1f} kB of WAL per mail"
        )
    return rate


def measure_postfix(report: Report) -> float | None:
    """Mails per second into Postfix's queue; None where there is no Postfix."""
    mails = 1000 if report.short else 10_000
    try:
        with postfix(report.folder / "postfix", relay=tools.free_port(), held=True) as peer:
            peer.offer(SESSIONS * 5)
            rate = mails / peer.offer(mails)
    except tools.Missing as missing:
        report.skip("Postfix", str(missing))
        return None
    report.result(f"Postfix into its hold queue, smtp-source -s {SESSIONS}", rate, "mails/s")
    return rate


def large_mail(report: Report, dns: int) -> None:
    raw = letter(LARGE_BYTES)
    with receiving(report, "large", dns, processes=1) as (server, port):
        offer(port, SESSIONS)
        [worker] = tree(server.process.pid).workers
        idle = memory_mb(worker)
        times = [bring(port, raw + b"%d\r\n" % number) for number in range(1 if report.short else 5)]
        grown = memory_mb(worker, "VmHWM") - idle
        size = len(raw) / 1e6
        report.result(f"a mail of {size:.0f} MB with attachments, worst", max(times), "s", at_most(1.5))
        note = f"{grown:.0f} MB over {idle:.0f}"
        report.result("its memory at the highest ÷ its size", grown / size, "×", at_most(4), note)


def letter(size: int) -> bytes:
    """A message of about so many bytes, nearly all of it in three attachments."""
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = f"news@{DOMAIN}", TO, "Large"
    made.set_content("See the files.")
    for number in range(3):
        octets = os.urandom(size * 3 // 4 // 3)
        made.add_attachment(octets, maintype="application", subtype="pdf", filename=f"chart{number}.pdf")
    raw = made.as_bytes(policy=made.policy.clone(linesep="\r\n"))
    assert base64.b64encode(octets)[:60] in raw
    return raw


def bring(port: int, raw: bytes) -> float:
    """Seconds from the first byte of the text until its 250."""
    with smtplib.SMTP("127.0.0.1", port, "bench.example", timeout=120) as client:
        client.ehlo()
        client.mail(f"news@{DOMAIN}")
        client.rcpt(TO)
        text = raw.replace(b"\r\n.", b"\r\n..") + b".\r\n"
        client.docmd("DATA")
        began = time.monotonic()
        client.send(text)
        code, raw = client.getreply()
        took = time.monotonic() - began
    if code != 250:
        raise RuntimeError(f"{code} {raw!r}")
    return took


def idle_clients(report: Report, dns: int) -> None:
    count = 200 if report.short else IDLE
    with receiving(report, "idle", dns) as (server, port), ExitStack() as connected:
        offer(port, SESSIONS * 5)
        workers = tree(server.process.pid).workers
        before = sum(memory_mb(pid) for pid in workers)
        clients = [
            connected.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)
        ]
        answered(clients, b"")
        answered(clients, b"EHLO bench.example\r\n")
        grown = sum(memory_mb(pid) for pid in workers) - before
        report.result(
            f"{count} idle connections", grown, "MB", at_most(60), f"{grown * 1000 / count:.0f} kB each"
        )
        offer(port, SESSIONS)


def answered(clients: Sequence[socket.socket], line: bytes) -> None:
    """Each sends a line and reads the answer to it."""
    for client in clients:
        client.sendall(line)
    for client in clients:
        if not client.recv(4096)[:1] == b"2":
            raise RuntimeError("a client was refused")


if __name__ == "__main__":
    ended("inbound", measure, __doc__)
