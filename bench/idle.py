"""What an idle server does: commits a second and WAL a minute, with the default processes and all roles,
after its start."""

from __future__ import annotations

import time

from bench.kit.results import Report, at_most, ended
from bench.kit.server import serving

SETTLED, SETTLED_SHORT = 60.0, 20.0
SECONDS, SECONDS_SHORT = 120.0, 20.0
"""Seconds until the measurement begins, and how long it lasts."""

COUNTERS = """
    SELECT (SELECT sum(xact_commit) FROM pg_stat_database)::float,
           (pg_current_wal_lsn() - '0/0'::pg_lsn)::float
"""


def measure(report: Report) -> None:
    seconds = SECONDS_SHORT if report.short else SECONDS
    with serving(report, report.folder / "data") as server:
        time.sleep(SETTLED_SHORT if report.short else SETTLED)
        before = server.sql(COUNTERS)[0]
        time.sleep(seconds)
        after = server.sql(COUNTERS)[0]
        commits, written = (late - early for late, early in zip(after, before, strict=True))
        report.result("commits of an idle server", commits / seconds, "commits/s", at_most(5))
        report.result("WAL of an idle server", written / seconds * 60 / 1e6, "MB/min", at_most(0.5))


if __name__ == "__main__":
    ended("idle", measure, __doc__)
