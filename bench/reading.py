"""Whether reading stays as fast when a team has a million emails: list pages and single emails, p99
(`bench/kit/growth.py` says how it is measured).
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from bench.kit import tools
from bench.kit.fill import fill
from bench.kit.growth import Growth, compare
from bench.kit.results import Report, ended
from bench.kit.server import Server, serving

FEW = 1000
MANY = 1_000_000
MANY_SHORT = 30_000
DAYS = 30
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
        compare(report, server, Growth("emails", FEW, many, grow=grow, paths=paths))


def grow(server: Server, team_id: str, count: int) -> None:
    """Fill and settle: a vacuum, as autovacuum would have done by and by."""
    since = datetime.now(UTC) - timedelta(days=DAYS)
    asyncio.run(fill(server, team_id, count, since=since, gap=DAYS * 86400 / (count + 1)))
    for table in ("emails", "contents", "recipients", "timeline"):
        server.sql(f"VACUUM (ANALYZE) {table}")


def paths(server: Server, team_id: str) -> dict[str, list[str]]:
    """Some requests of each kind."""
    rows = server.sql(
        "SELECT id FROM emails WHERE team_id = $1::uuid ORDER BY random() LIMIT $2", team_id, SAMPLES
    )
    return {kind: [path.format(row["id"]) for row in rows] for kind, path in KINDS.items()}


if __name__ == "__main__":
    ended("reading", measure, __doc__)
