"""Whether reading stays as fast when a team has a million emails: list pages and single emails, p99.

Measured with a thousand emails in an otherwise empty database, then with a million, with the thousand of
the other team beside it in turns. A repetition is a short load on two connections, so that what is timed is
the request and not the queue before it; a result is the median of its repetitions.
"""

from __future__ import annotations

import asyncio
import statistics
from datetime import UTC, datetime, timedelta

from bench.kit import load, tools
from bench.kit.fill import fill
from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, Server, serving

FEW = 1000
MANY = 1_000_000
MANY_SHORT = 30_000
DAYS = 30
CONNECTIONS = 2
SAMPLES = 1000
KINDS = {
    "list, first page": "/emails?limit=100",
    "list, page at a random place": "/emails?limit=100&after={}",
    "retrieve": "/emails/{}",
}


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    many = MANY_SHORT if report.short else MANY
    with serving(report, report.folder / "data", roles="api") as server:
        small = (str(server.sql("SELECT id FROM teams")[0][0]), KEY)
        big = server.make_team("big")
        grow(server, small[0], FEW)
        repeats = 1 if report.short else 3
        alone = [repetitions(report, server, small) for _ in range(repeats)]
        grow(server, big[0], many)
        beside, full = [], []
        for _ in range(repeats):
            beside.append(repetitions(report, server, small))
            full.append(repetitions(report, server, big))
        for kind in KINDS:
            few = statistics.median(found[kind] for found in alone)
            beside_busy = statistics.median(found[kind] for found in beside)
            lot = statistics.median(found[kind] for found in full)
            report.result(f"{kind}, {FEW:,} emails, p99", few, "ms")
            report.result(
                f"{kind}, {many:,} emails, p99", lot, "ms", note=f"small team beside: {beside_busy:.2f} ms"
            )
            report.result(f"{kind}, ratio of the two", lot / few, "×", at_most(1.5))


def grow(server: Server, team_id: str, count: int) -> None:
    """Fill and settle: a vacuum, as autovacuum would have done by and by."""
    since = datetime.now(UTC) - timedelta(days=DAYS)
    asyncio.run(fill(server, team_id, count, since=since, gap=DAYS * 86400 / (count + 1)))
    for table in ("emails", "contents", "recipients", "timeline"):
        server.sql(f"VACUUM (ANALYZE) {table}")


def repetitions(report: Report, server: Server, team: tuple[str, str]) -> dict[str, float]:
    """The p99 of each kind of request for this team."""
    seconds = 2 if report.short else 6
    team_id, key = team
    rows = server.sql(
        "SELECT id FROM emails WHERE team_id = $1::uuid ORDER BY random() LIMIT $2", team_id, SAMPLES
    )
    found = {}
    for number, (kind, path) in enumerate(KINDS.items()):
        requests = load.reads(report.folder / f"read{number}.txt", (path.format(row["id"]) for row in rows))
        load.wrk(server, requests, connections=CONNECTIONS, seconds=1, threads=1, key=key)
        answered = load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds, threads=1, key=key)
        if answered.trouble:
            report.fault(f"{kind}: {answered.trouble}")
        found[kind] = answered.p99
    return found


if __name__ == "__main__":
    ended("reading", measure, __doc__)
