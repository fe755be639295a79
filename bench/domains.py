"""Ten thousand domains due for their re-check at once, while mail is accepted at 1,000 requests a second.

The domains are verified, and what a DNS server on loopback shows of them is right, so each check asks three
questions and changes nothing but what was seen and when. The load runs before the checks are due and while
they run; its latency then and now is compared, and how much memory the processes hold.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.kit import load, tools
from bench.kit.beside import report_ratio
from bench.kit.nameserver import NameServer, name_server
from bench.kit.processes import Meter, memory_mb, tree
from bench.kit.results import Report, at_most, ended
from bench.kit.server import Server, serving

DOMAINS = 10_000
DOMAINS_SHORT = 500
LIMIT_SECONDS = 120.0
CONNECTIONS = 50
PAUSE_MS = 48
"""Fifty connections that wait so long before a request make about a thousand requests a second."""

HOST = "mta.bench.example"
KEY = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A" + "MIIBCgKCAQEA" * 30

FILL = """
    WITH numbered AS MATERIALIZED (
        SELECT n, gen_random_uuid() AS id, gen_random_uuid() AS key_id, gen_random_uuid() AS job_id,
               format('d%s.bench.example', n) AS name
          FROM generate_series(1, $2::integer) AS n
    ), stored AS (
        INSERT INTO domains (team_id, id, name, region, created_at, return_path, open_tracking,
                             click_tracking, tls, sending, receiving, sending_ok, records)
        SELECT $1, id, name, 'us-east-1', now(), 'send', false, false, 'opportunistic', true, false, true,
               $3::jsonb
          FROM numbered
    ), keys AS (
        INSERT INTO dkim_keys (team_id, id, domain_id, selector, algorithm, public_key, private_key, active,
                               created_at)
        SELECT $1, key_id, id, 'pillarbox', 'rsa', $4, '', true, now() FROM numbered
    ), names AS (
        INSERT INTO directory_domains (name, team_id, domain_id, owned, owned_at)
        SELECT name, $1, id, true, now() FROM numbered
    )
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
    SELECT $1, job_id, 'domain.check', id, now() + interval '1 day', now() FROM numbered
"""


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    domains = DOMAINS_SHORT if report.short else DOMAINS
    with name_server(HOST, KEY) as names:
        dns = ("--dns", f"127.0.0.1:{names.port}")
        with serving(report, report.folder / "data", more=dns) as server:
            server.trust()
            fill(server, domains)
            requests = load.single_mails(report.folder)
            seconds = 5.0 if report.short else 60.0
            server.reuse_wal()
            accepting(server, requests, seconds / 5)
            alone = accepting(server, requests, seconds)
            idle = largest(server)
            waves = checking(report, server, names, requests, domains)
            report_ratio(report, f"{domains:,} domain checks", alone, waves)
            report.result(
                "largest process, after to before",
                largest(server) / idle,
                "×",
                at_most(1.2),
                f"{idle:.0f} MB before, {largest(server):.0f} MB after",
            )
            prove(report, server, domains)


def fill(server: Server, domains: int) -> None:
    """The domains, verified a day ago, with a check that is not due yet."""
    team = server.sql("SELECT id FROM teams")[0][0]
    since = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    state = {"status": "verified", "since": since}
    records = json.dumps(dict.fromkeys(("spf_mx", "spf_txt", "dkim"), state))
    server.sql(FILL, team, domains, records, KEY)
    for table in ("domains", "dkim_keys", "directory_domains", "jobs"):
        server.sql(f"VACUUM (ANALYZE) {table}")


def accepting(server: Server, requests: Path, seconds: float) -> load.Answered:
    """Mail at some 1,000 requests a second."""
    return load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds, pause=PAUSE_MS)


def due(server: Server) -> None:
    """Let every check be due now."""
    server.sql("UPDATE jobs SET due_at = now() WHERE kind = 'domain.check'")


def checking(
    report: Report, server: Server, names: NameServer, requests: Path, domains: int
) -> list[load.Answered]:
    """Every check is due at once, under the same load; ends when the last one is done."""
    meter = Meter(server.process.pid, nameserver=names.pid)
    waves = []
    began = time.monotonic()
    due(server)
    while waiting(server):
        waves.append(accepting(server, requests, 5))
        if time.monotonic() - began > 5 * LIMIT_SECONDS:
            report.fault("the checks did not end")
            break
    took = finished(server, began)
    used = meter.used()
    report.result(
        f"{domains:,} domains checked", took, "s", at_most(LIMIT_SECONDS), f"{domains / took:.0f}/s"
    )
    shares = ", ".join(f"{name} {seconds / domains * 1e6:,.0f}" for name, seconds in used.items())
    report.note(f"CPU while they ran, the load's included, µs for each domain: {shares}")
    return waves


def waiting(server: Server) -> int:
    return int(server.number("SELECT count(*) FROM jobs WHERE kind = 'domain.check' AND due_at <= now()"))


def finished(server: Server, began: float) -> float:
    """Seconds from then to the last check, by the database's own clock."""
    ago = server.number("SELECT extract(epoch FROM now() - max(checked_at)) FROM domains")
    return time.monotonic() - began - ago


def largest(server: Server) -> float:
    """Resident memory of our largest process now, in MB."""
    return max(memory_mb(pid) for pid in tree(server.process.pid).workers)


def prove(report: Report, server: Server, domains: int) -> None:
    """Each domain was checked once, and all are what they were."""
    right = server.number(
        """
        SELECT count(*) FROM domains
         WHERE name LIKE 'd%' AND checked_at IS NOT NULL AND sending_ok
           AND records -> 'dkim' ->> 'status' = 'verified' AND findings::text NOT LIKE '%advice%'
        """
    )
    if right != domains:
        report.fault(f"{domains - right:,.0f} domains are not what they should be")
    claims = server.number("SELECT max(attempt) FROM jobs WHERE kind = 'domain.check'")
    if claims != 1:
        report.fault(f"a check was begun {claims:.0f} times")


if __name__ == "__main__":
    ended("domains", measure, __doc__)
