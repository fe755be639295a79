"""Whether mail is handed over as fast when a team has suppressed ten million addresses: loading claimed
emails, with the look at the list for each recipient, for that team and for one with a thousand, in turns.

The emails come over the API and wait; the entries are written by SQL, their addresses in no order. What is
timed is what an engine does with a claim: emails, recipients with their entries, attachments, sender. On a
busy machine the processor time of the database says more than how long it took.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from bench.kit import load
from bench.kit.processes import running_seconds
from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, Server, serving
from pillarbox.domains.senders import Senders
from pillarbox.emails.loading import EmailLoader
from pillarbox.emails.work_queries import TARGETS
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import open_pool

FEW = 1000
MANY = 10_000_000
MANY_SHORT = 1_000_000
CHUNK = 250_000
EMAILS = 20
"""Batches of 100 for each team."""
CLAIM = 20
CLAIMS = 3000
CLAIMS_SHORT = 300
WARM = 20
"""Claims of a team, and those before them that make plans and fill caches."""
OCTETS = 1 << 26

# One address of fifty is a recipient of the team's mail, as long as there are such.
FILL = """
    INSERT INTO suppressions (team_id, id, address, origin, source_id, created_at)
    SELECT $1::uuid, (lpad(to_hex(n), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid,
           md5(n::text) || '@inbox' || n % 5000 || '.example',
           CASE n % 10 WHEN 0 THEN 'complaint' WHEN 1 THEN 'manual' ELSE 'bounce' END, NULL, now()
      FROM generate_series($2::bigint, $3::bigint) n
"""

SIZES = """
    SELECT pg_table_size('suppressions')::float / count(*), pg_indexes_size('suppressions')::float / count(*)
      FROM suppressions
"""


@dataclass(slots=True)
class Taken:
    """Of one team: milliseconds of each claim, and of its look at recipients and list once more alone;
    microseconds of the database's processor for both."""

    claims: list[float] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def measure(report: Report) -> None:
    many = MANY_SHORT if report.short else MANY
    nowhere = "relay:smtp://127.0.0.1:1"
    with serving(report, report.folder / "data", route=nowhere, roles="api", processes=1) as server:
        small = str(server.sql("SELECT id FROM teams")[0][0]), KEY
        big = server.make_team("big")
        for number, (team, key) in enumerate((small, big)):
            server.trust(f"team{number}.example", team)
            send(server, key, f"news@team{number}.example")
        began = time.monotonic()
        fill(server, small[0], FEW)
        fill(server, big[0], many)
        server.sql("VACUUM (ANALYZE) suppressions")
        server.sql("VACUUM (ANALYZE) recipients")
        [row] = server.sql(SIZES)
        report.note(
            f"{many:,} entries in {time.monotonic() - began:.0f} s: {row[0]:.0f} octets of rows and "
            f"{row[1]:.0f} of indexes for each"
        )
        found = asyncio.run(in_turns(report, server, [UUID(small[0]), UUID(big[0])]))
        tell(report, many, *found)


def send(server: Server, key: str, sender: str) -> None:
    """Mail that waits, since no engine runs: to recipients of whom some are suppressed."""
    connection = server.connection()
    for batch in range(EMAILS):
        mails = [
            {
                "from": sender,
                "to": f"reader{batch}.{number}@inbox{number}.example",
                "subject": "x",
                "text": "y",
            }
            for number in range(100)
        ]
        body = json.dumps(mails)
        connection.request(
            "POST",
            "/emails/batch",
            body,
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(answer.read().decode())
        answer.read()
    connection.close()


def fill(server: Server, team: str, count: int) -> None:
    """So many entries, one in fifty of the team's recipients among them."""
    asyncio.run(_fill(server, team, count))


async def _fill(server: Server, team: str, count: int) -> None:
    conn = await asyncpg.connect(server.database_url)
    await conn.execute("SET synchronous_commit = off")
    for begin in range(1, count + 1, CHUNK):
        await conn.execute(FILL, UUID(team), begin, min(begin + CHUNK - 1, count), timeout=600)
    await conn.execute(
        """
        INSERT INTO suppressions (team_id, id, address, origin, created_at)
        SELECT team_id, gen_random_uuid(), min(address), 'manual', now()
          FROM recipients WHERE team_id = $1 AND hashtext(address) % 50 = 0
         GROUP BY team_id, address
        """,
        UUID(team),
    )
    await conn.close()


async def in_turns(report: Report, server: Server, teams: list[UUID]) -> list[Taken]:
    """What claims take: one of one team, one of the other, and so on."""
    pool = await open_pool(server.database_url, limit=1, by_key=True)
    others = await open_pool(server.database_url, limit=1)
    loader = EmailLoader(Senders(others, SystemClock()), domain_required=True)
    chance = random.Random(11)
    found = [Taken() for _ in teams]
    suppressed = 0
    try:
        backend = await pool.fetchval("SELECT pg_backend_pid()")
        emails = [
            [row["id"] for row in await pool.fetch("SELECT id FROM emails WHERE team_id = $1", team)]
            for team in teams
        ]
        for number in range(WARM + (CLAIMS_SHORT if report.short else CLAIMS)):
            for team, ids, taken in zip(teams, emails, found, strict=True):
                claim = chance.sample(ids, CLAIM)
                async with pool.acquire() as conn:
                    spent, began = running_seconds(backend), time.perf_counter()
                    await loader.load(conn, team, claim, OCTETS)
                    loaded = time.perf_counter()
                    rows = await conn.fetch(TARGETS, team, claim)
                    ended_at, spent = time.perf_counter(), running_seconds(backend) - spent
                suppressed += sum(row["origin"] is not None for row in rows)
                if number >= WARM:
                    taken.claims.append((loaded - began) * 1000)
                    taken.targets.append((ended_at - loaded) * 1000)
                    taken.cpu.append(spent * 1e6)
    finally:
        await pool.close()
        await others.close()
    if not suppressed:
        report.fault("no recipient was on the list")
    return found


def tell(report: Report, many: int, small: Taken, big: Taken) -> None:
    """Medians have the limit: the slowest of a hundred shows what else the machine does."""
    for name, unit, few, lot in (
        (f"a claim of {CLAIM} emails", "ms", small.claims, big.claims),
        ("its recipients and the list alone", "ms", small.targets, big.targets),
        ("processor time of the database for both", "µs", small.cpu, big.cpu),
    ):
        middle = statistics.median(few), statistics.median(lot)
        report.result(f"{name}, {FEW:,} entries", middle[0], unit, note=f"p99 {p99(few):.2f}")
        report.result(f"{name}, {many:,} entries", middle[1], unit, note=f"p99 {p99(lot):.2f}")
        report.result(f"{name}, ratio", middle[1] / middle[0], "×", at_most(1.2))


def p99(values: list[float]) -> float:
    return load.percentile(values, 99)


if __name__ == "__main__":
    ended("suppressions", measure, __doc__)
