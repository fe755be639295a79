"""What an idle server does: commits a second, and what it writes a minute, with the default processes and all
roles, after its start; and how late it begins what becomes due meanwhile."""

from __future__ import annotations

import json
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, SENDER, Server, serving

SETTLED, SETTLED_SHORT = 60.0, 20.0
SECONDS, SECONDS_SHORT = 120.0, 20.0
"""Seconds until the measurement begins, and how long it lasts."""

DUE, DUE_SHORT = 20, 8
"""How often something becomes due."""

PERIODIC = "emails.orphan_blobs"
"""A job that does nothing here."""

COUNTERS = """
    SELECT (SELECT sum(xact_commit) FROM pg_stat_database)::float,
           (pg_current_wal_lsn() - '0/0'::pg_lsn)::float
"""

MAKE_DUE = """
    UPDATE jobs
       SET due_at = clock_timestamp() + make_interval(secs => $2)
     WHERE kind = $1 AND owner IS NULL
    RETURNING attempt, due_at
"""

LATE = """
    SELECT extract(epoch FROM clock_timestamp() - $3::timestamptz)::float
      FROM jobs
     WHERE kind = $1 AND attempt > $2 AND owner IS NULL
"""

LATE_MAIL = """
    SELECT extract(epoch FROM clock_timestamp() - $1::timestamptz)::float
     WHERE NOT EXISTS (SELECT FROM deliveries WHERE owner IS NULL)
"""


def measure(report: Report) -> None:
    seconds = SECONDS_SHORT if report.short else SECONDS
    with serving(report, report.folder / "data") as server:
        time.sleep(SETTLED_SHORT if report.short else SETTLED)
        files = _octets(server.data), server.log.stat().st_size
        before = server.sql(COUNTERS)[0]
        time.sleep(seconds)
        after = server.sql(COUNTERS)[0]
        commits, written = (late - early for late, early in zip(after, before, strict=True))
        logs = server.log.stat().st_size - files[1]
        grown = max(0, _octets(server.data) - files[0])
        report.result("commits of an idle server", commits / seconds, "commits/s", at_most(5))
        report.result("WAL of an idle server", written / seconds * 60 / 1e6, "MB/min", at_most(0.5))
        report.result("logs of an idle server", logs / seconds * 60 / 1e6, "MB/min", at_most(0.5))
        report.result("growth of its data folder", grown / seconds * 60 / 1e6, "MB/min", at_most(0.5))
        late = [_job(server, place) for place in range(DUE_SHORT if report.short else DUE)]
        server.trust()
        mail = [_email(server, place) for place in range(DUE_SHORT if report.short else DUE)]
        report.result("a scheduled email begins late, median", median(mail), "s", at_most(1.1))
        report.result("a scheduled email begins late, worst", max(mail), "s", at_most(2))
        report.result("a job begins late, median", median(late), "s", at_most(1.1))
        report.result("a job begins late, worst", max(late), "s", at_most(2))


def _job(server: Server, place: int) -> float:
    """Seconds from when a job is due until it is done, as a poll every 50 ms sees it."""
    attempt, due_at = server.sql(MAKE_DUE, PERIODIC, 0.3 + place * 0.37 % 1)[0]
    while not (found := server.sql(LATE, PERIODIC, attempt, due_at)):
        time.sleep(0.05)
    return float(found[0][0])


def _email(server: Server, place: int) -> float:
    """The same for an email, from the instant for which it was scheduled until it is leased or gone."""
    due_at = datetime.now(UTC) + timedelta(seconds=1.3 + place * 0.37 % 1)
    body = {
        "from": SENDER,
        "to": "a@sink.example",
        "subject": "s",
        "text": "t",
        "scheduled_at": due_at.isoformat(),
    }
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/emails", json.dumps(body).encode(), headers)
    urllib.request.urlopen(request).close()
    while not (found := server.sql(LATE_MAIL, due_at)):
        time.sleep(0.05)
    return float(found[0][0])


def _octets(folder: Path) -> int:
    """What the files of a folder have on the disk."""
    octets = 0
    for path in folder.rglob("*"):
        try:
            octets += path.stat().st_blocks * 512
        except OSError:
            # Gone, or not ours to look at.
            continue
    return octets


if __name__ == "__main__":
    ended("idle", measure, __doc__)
