"""What it costs that mail comes into threads of an inbox: the same mails with and without one, in turns."""

from __future__ import annotations

from statistics import median

from bench.inbound import HOST, TO, offer, receiving
from bench.kit import tools
from bench.kit.nameserver import name_server
from bench.kit.postfix import SESSIONS
from bench.kit.processes import Meter, shares
from bench.kit.results import Report, at_least
from bench.kit.server import Server

DESK = "desk@inbox.example"

INBOX = """
    WITH made AS (
        INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
        SELECT team_id, gen_random_uuid(), $1, $1, id, now(), now() FROM domains WHERE name = 'inbox.example'
        RETURNING team_id, id
    )
    INSERT INTO directory_inboxes (address, team_id, inbox_id, is_forwarded)
    SELECT $1, team_id, id, false FROM made
"""


def measure(report: Report) -> None:
    try:
        tools.need("smtp-source")
    except tools.Missing as missing:
        report.skip("mail that comes in", str(missing))
        return
    turns, mails = (3, 500) if report.short else (9, 4000)
    with name_server(HOST, "AAAA") as dns, receiving(report, "arrivals", dns.port) as (server, port):
        server.sql(INBOX.replace("$1", f"'{DESK}'"))
        without, within = _turns(report, server, port, turns, mails)
        threads = server.number("SELECT count(*) FROM inbox_threads")
    if threads < turns * mails:
        report.fault(f"{turns * mails} mails came for an inbox, and it has {threads:.0f} threads")
    report.result("received without an inbox, median of turns", median(without), "mails/s")
    ratio = median([one / other for one, other in zip(within, without, strict=True)])
    report.result("with inbox and thread ÷ without, median of turns", ratio, "×", at_least(0.9))


def _turns(
    report: Report, server: Server, port: int, turns: int, mails: int
) -> tuple[list[float], list[float]]:
    """Mails per second without and with an inbox, turn for turn."""
    rates: dict[str, list[float]] = {TO: [], DESK: []}
    for to in rates:
        offer(port, SESSIONS * 10, to)
    for _ in range(turns):
        for to, found in rates.items():
            meter = Meter(server.process.pid)
            found.append(mails / offer(port, mails, to))
            report.note(f"{to}: {found[-1]:.0f} mails/s, {shares(meter.used(), mails)}")
    return rates[TO], rates[DESK]
