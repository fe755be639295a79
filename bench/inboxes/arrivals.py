"""What it costs that mail comes into threads of inboxes: the same mails for an address without one, for one
inbox, and for ten inboxes at a time, in turns.

With one inbox all processes wait for its lock in turn; ten are the usual case."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from bench.inbound import HOST, TO, offer, receiving
from bench.kit import tools
from bench.kit.nameserver import name_server
from bench.kit.postfix import SESSIONS
from bench.kit.processes import Meter, shares
from bench.kit.results import Report, at_least
from bench.kit.server import Server

DESKS = [f"desk{number}@inbox.example" for number in range(10)]

WAYS = {"no inbox": [TO], "one inbox": DESKS[:1], "no inbox, by ten": [TO] * 10, "ten inboxes": DESKS}
"""The addresses to which mail is brought at the same time."""

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
        for desk in DESKS:
            server.sql(INBOX.replace("$1", f"'{desk}'"))
        rates = _turns(report, server, port, turns, mails)
        threads = server.number("SELECT count(*) FROM inbox_threads")
    if threads < 2 * turns * mails:
        report.fault(f"{2 * turns * mails} mails came for inboxes, and these have {threads:.0f} threads")
    report.result("received without an inbox, median of turns", median(rates["no inbox"]), "mails/s")
    for within, without in (("one inbox", "no inbox"), ("ten inboxes", "no inbox, by ten")):
        ratio = median([one / other for one, other in zip(rates[within], rates[without], strict=True)])
        report.result(f"{within}, with threads ÷ without, median of turns", ratio, "×", at_least(0.9))


def _turns(report: Report, server: Server, port: int, turns: int, mails: int) -> dict[str, list[float]]:
    """Mails per second of each way, turn for turn."""
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for to in WAYS.values():
        _offer(port, SESSIONS * 10, to)
    for _ in range(turns):
        for way, found in rates.items():
            meter = Meter(server.process.pid)
            found.append(mails / _offer(port, mails, WAYS[way]))
            report.note(f"{way}: {found[-1]:.0f} mails/s, {shares(meter.used(), mails)}")
    return rates


def _offer(port: int, mails: int, to: Sequence[str]) -> float:
    """Bring so many mails, to all of the addresses at once; seconds until the last was acknowledged."""
    with ThreadPoolExecutor(len(to)) as clients:
        sessions, each = SESSIONS // len(to), mails // len(to)
        return max(clients.map(lambda one: offer(port, each, one, sessions), to))
