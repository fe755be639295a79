"""Redirects and pictures of tracked mail: 50 connections, and each event durable before its answer.

Half of the requests are clicks and half are opens, of recipients in no order, so most are the first ones.
Afterwards the events are counted: what was answered is there.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg

from bench.kit import load
from bench.kit.fill import fill
from bench.kit.processes import cpu_seconds, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import Server, serving
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, link_token, open_token
from pillarbox.kernel.settings.table import KEY_RING_FILE

CONNECTIONS = 50
RECIPIENTS = 100_000
RECIPIENTS_SHORT = 20_000
SECONDS = 30
SECONDS_SHORT = 5
TARGET = "https://shop.example/products/{}?utm_source=news&utm_campaign=tides#top"

COUNTED = """
    SELECT count(*) FILTER (WHERE kind = 'clicked') AS clicked,
           count(*) FILTER (WHERE kind = 'opened') AS opened
      FROM timeline WHERE kind IN ('clicked', 'opened')
"""


def measure(report: Report) -> None:
    count, seconds = (RECIPIENTS_SHORT, SECONDS_SHORT) if report.short else (RECIPIENTS, SECONDS)
    with serving(report, report.folder / "data", roles="api") as server:
        team = UUID(str(server.sql("SELECT id FROM teams")[0][0]))
        since = datetime.now(UTC) - timedelta(days=1)
        asyncio.run(fill(server, str(team), count, since=since, gap=0.5))
        for table in ("emails", "recipients"):
            server.sql(f"VACUUM (ANALYZE) {table}")
        server.sql("CHECKPOINT")
        os.sync()
        requests = asyncio.run(links_of(server, team, report.folder / "links.txt"))
        load.wrk(server, requests, connections=CONNECTIONS, seconds=2)
        before = events(server)
        processes = tree(server.process.pid)
        used = cpu_seconds(processes.workers), cpu_seconds(processes.postgres)
        answered = load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds)
        ours = (cpu_seconds(processes.workers) - used[0]) / answered.requests * 1000
        theirs = (cpu_seconds(processes.postgres) - used[1]) / answered.requests * 1000
        note = f"p50 {answered.p50:.1f} ms; processor time {ours:.2f} ms, of the database {theirs:.2f} ms"
        report.result("links and pictures", answered.rate, "requests/s", at_least(3000), note)
        report.result("links and pictures, p99", answered.p99, "ms", at_most(30))
        if answered.trouble:
            report.fault(answered.trouble)
        written = events(server) - before
        # A few more may be written than were answered before wrk stopped listening.
        if not answered.requests <= written <= answered.requests + CONNECTIONS:
            report.fault(f"{answered.requests} answers made {written} events")


def events(server: Server) -> int:
    """How many opens and clicks there are when no more are written: wrk leaves requests on their way."""
    before, now = -1, int(sum(server.sql(COUNTED)[0].values()))
    while now != before:
        time.sleep(0.5)
        before, now = now, int(sum(server.sql(COUNTED)[0].values()))
    return now


async def links_of(server: Server, team: UUID, path: Path) -> Path:
    """A link or a picture of each recipient."""
    ring = KeyRing.parse((server.data / KEY_RING_FILE).read_text())
    async with asyncpg.create_pool(server.database_url, min_size=1, max_size=1) as pool:
        key = await LinkKeys(pool, SystemClock(), ring).maker(datetime.now(UTC))
        rows = await pool.fetch("SELECT email_id, position FROM recipients")
    paths = []
    for number, row in enumerate(rows):
        who = TrackedRecipient(team, row[0], row[1])
        if number % 2:
            paths.append(f"/t/o/{open_token(who, key)}.gif")
        else:
            paths.append(f"/t/c/{link_token(who, number % 7, TARGET.format(number), key)}")
    random.Random(1).shuffle(paths)
    return load.reads(path, paths)


if __name__ == "__main__":
    ended("tracking", measure, __doc__)
