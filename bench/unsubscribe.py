"""How long one click takes: POSTs of mail programs at a fixed rate, each with the link of another mail, p99.

A request begins when its time has come, whether or not the ones before it are answered, and is timed from
then. For half of the addresses there is a contact, the others get one; each click leaves a topic, and counts
for its mail. Afterwards the page is opened at the same rate.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import aiohttp
import asyncpg

from bench.kit import load
from bench.kit.fill import fill
from bench.kit.processes import cpu_seconds, tree
from bench.kit.results import Report, at_most, ended
from bench.kit.server import Server, serving
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken, token
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.table import KEY_RING_FILE

RATE = 200
SECONDS = 60
SECONDS_SHORT = 5
WARM_UP = 2
ONE_CLICK = b"List-Unsubscribe=One-Click"
FORM = "application/x-www-form-urlencoded"
PROXY = "127.0.0.0/8"

TOPIC = """
    INSERT INTO topics (team_id, id, name, default_subscription, visibility, created_at, updated_at)
    VALUES ($1::uuid, $2::uuid, 'News', 'opt_in', 'public', now(), now())
"""

CONTACTS = """
    INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
    SELECT team_id, gen_random_uuid(), address, false, now(), now()
      FROM (SELECT DISTINCT team_id, address FROM recipients) AS r
     WHERE hashtext(address) % 2 = 0
"""

# Each its own address: the same would wait for each other, as people do not.
ADDRESSES = (
    "UPDATE recipients SET address = email_id || '@quay.example', mailbox = email_id || '@quay.example'"
)


def measure(report: Report) -> None:
    seconds = SECONDS_SHORT if report.short else SECONDS
    count = RATE * (seconds + WARM_UP)
    with serving(report, report.folder / "data", roles="api", more=("--trusted-proxy", PROXY)) as server:
        team = UUID(str(server.sql("SELECT id FROM teams")[0][0]))
        since = datetime.now(UTC) - timedelta(days=1)
        asyncio.run(fill(server, str(team), count, since=since, gap=1.0))
        topic = uuid4()
        server.sql(TOPIC, team, topic)
        server.sql(ADDRESSES)
        server.sql(CONTACTS)
        for table in ("emails", "recipients", "contacts"):
            server.sql(f"VACUUM (ANALYZE) {table}")
        # What was filled in is on the disk before the first click: its writing is not what is measured.
        server.sql("CHECKPOINT")
        os.sync()
        links = asyncio.run(links_of(server, team, topic))
        for what, method, body, limit in (
            ("one click", "POST", ONE_CLICK, at_most(50)),
            ("the page", "GET", None, None),
        ):
            processes = tree(server.process.pid)
            used = cpu_seconds(processes.workers), cpu_seconds(processes.postgres)
            times, answers = asyncio.run(paced(server, links, method, body))
            ours = (cpu_seconds(processes.workers) - used[0]) / len(links) * 1000
            theirs = (cpu_seconds(processes.postgres) - used[1]) / len(links) * 1000
            p50, p99 = (load.percentile(times, at) * 1000 for at in (50, 99))
            note = f"p50 {p50:.1f} ms; processor time {ours:.2f} ms, of the database {theirs:.2f} ms"
            report.result(f"{what}, {RATE}/s, p99", p99, "ms", limit, note=note)
            if bad := [status for status in answers if status != 200]:
                report.fault(f"{what}: {len(bad)} answers were not 200, for instance {bad[0]}")
        counted = server.number("SELECT count(*) FROM topic_choices WHERE subscription = 'opt_out'")
        marked = server.number("SELECT count(*) FROM recipients WHERE unsubscribed_at IS NOT NULL")
        metric = server.number(
            "SELECT (SELECT coalesce(sum(unsubscribed), 0) FROM metric_increments)"
            " + (SELECT coalesce(sum(unsubscribed), 0) FROM rollups WHERE level = 1)"
        )
        if not counted == marked == metric == len(links):
            report.fault(f"{len(links)} clicks left {counted:.0f} topics and counted {metric:.0f} times")


async def links_of(server: Server, team: UUID, topic: UUID) -> list[str]:
    """The path of each recipient's link."""
    ring = KeyRing.parse((server.data / KEY_RING_FILE).read_text())
    async with asyncpg.create_pool(server.database_url, min_size=1, max_size=1) as pool:
        key = await LinkKeys(pool, SystemClock(), ring).maker(datetime.now(UTC))
        rows = await pool.fetch("SELECT email_id, position, address FROM recipients")
    links = [
        LinkToken(team_id=team, email_id=row[0], position=row[1], topic_id=topic, address=row[2])
        for row in rows
    ]
    return [f"/unsubscribe/{token(link, key)}" for link in links]


async def paced(
    server: Server, paths: Sequence[str], method: str, body: bytes | None
) -> tuple[list[float], list[int]]:
    """Seconds and statuses of a request for each path, begun at the rate; the first ones are not timed."""
    times: list[float] = []
    answers: list[int] = []

    async def ask(session: aiohttp.ClientSession, number: int, path: str, due: float) -> None:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        headers = {"x-forwarded-for": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}
        if body is not None:
            headers["content-type"] = FORM
        async with session.request(method, server.url + path, data=body, headers=headers) as answer:
            await answer.read()
            answers.append(answer.status)
        if number >= RATE * WARM_UP:
            times.append(time.perf_counter() - due)

    begin = time.perf_counter() + 0.5
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as session:
        await asyncio.gather(
            *(ask(session, number, path, begin + number / RATE) for number, path in enumerate(paths))
        )
    return times, answers


if __name__ == "__main__":
    ended("unsubscribe", measure, __doc__)
