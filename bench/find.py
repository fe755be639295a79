"""How long it takes to find mail among a million emails: each filter, values that half of them have and
values that one or none has, the first page and later ones, of one team and of all.

The emails are written by SQL, their blocks by the product; then pages are asked for one by one as the command
asks for them. On a busy machine the processor time of a page says more than how long it took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from bench.kit import load
from bench.kit.fill_varied import OFTEN, OFTEN_KEY, RARE, SELDOM_KEY, WORDS, fill_varied
from bench.kit.processes import cpu_seconds
from bench.kit.results import Report, at_most, ended
from bench.kit.server import DOMAIN, Server, serving
from pillarbox.emails.retention import first_id
from pillarbox.emails.search.blocks import SearchBlocks
from pillarbox.emails.search.filters import OLDEST, EmailFilter
from pillarbox.emails.search.find import find
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.bounded_pool import BoundedPool
from pillarbox.kernel.postgres.database import TeamDb, open_pool

MANY = 1_000_000
MANY_SHORT = 30_000
DAYS = 30
LIMIT = 20
ASKED = 200
ASKED_SHORT = 20

SIZES = """
    SELECT relname, pg_table_size(oid) / (SELECT count(*) FROM emails)::float,
           pg_indexes_size(oid) / (SELECT count(*) FROM emails)::float
      FROM pg_class
     WHERE relname IN ('emails', 'recipients', 'timeline')
     ORDER BY relname
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of question; `wanted` makes the one of a number. Later pages begin anywhere."""

    name: str
    wanted: Callable[[int], EmailFilter]
    is_later: bool = False
    is_of_all: bool = False


def cases(many: int) -> Sequence[Case]:
    """The questions about so many emails."""

    def is_reader(number: int) -> str:
        number = number - number % 10 + 1
        return f"reader.{number}@inbox{number % 2000}.example"

    parsed = EmailFilter.parsed
    since = datetime.now(UTC) - timedelta(days=DAYS / 2)
    return [
        Case("no filter", lambda _: parsed()),
        Case("no filter, later page", lambda _: parsed(), is_later=True),
        Case("to: one email", lambda n: parsed(to=is_reader(n))),
        Case("to: one email, of all teams", lambda n: parsed(to=is_reader(n)), is_of_all=True),
        Case("to: one in ten", lambda _: parsed(to="everybody@pier.example")),
        Case("to: one in ten, later page", lambda _: parsed(to="everybody@pier.example"), is_later=True),
        Case("to: nobody", lambda n: parsed(to=f"nobody.{n}@pier.example")),
        Case("to: a domain, one in 2,000", lambda n: parsed(to=f"@inbox{n % 200 * 10 + 1}.example")),
        Case("from: one in two", lambda _: parsed(sender=f"news@{OFTEN}")),
        Case("from: one in 100,000", lambda _: parsed(sender=f"news@{RARE}")),
        Case("from: nobody", lambda n: parsed(sender=f"nobody.{n}@{DOMAIN}")),
        Case("domain: one in two", lambda _: parsed(domain=OFTEN)),
        Case("domain: one in two, later page", lambda _: parsed(domain=OFTEN), is_later=True),
        Case("domain: one in 100,000", lambda _: parsed(domain=RARE)),
        Case("domain: none", lambda n: parsed(domain=f"none{n}.example")),
        Case("subject: one in two", lambda _: parsed(subject="winter")),
        Case("subject: one in two, later page", lambda _: parsed(subject="winter"), is_later=True),
        Case("subject: only in the older half", lambda _: parsed(subject="autumn")),
        Case("subject: one in 28", lambda n: parsed(subject=WORDS[n % len(WORDS)])),
        Case("subject: one in 1,000", lambda _: parsed(subject="pelican")),
        Case("subject: one in 1,000, later page", lambda _: parsed(subject="Pelican"), is_later=True),
        Case("subject: one email", lambda _: parsed(subject="albatross")),
        Case("subject: a number, one email", lambda n: parsed(subject=f"no. {n}")),
        Case("subject: nobody", lambda n: parsed(subject=f"nothing{n}")),
        Case("tag: one in ten", lambda _: parsed(tag="kind:pier")),
        Case("tag: one in ten, later page", lambda _: parsed(tag="kind:pier"), is_later=True),
        Case("tag: one in 1,000", lambda _: parsed(tag="kind:pelican")),
        Case("tag: one in 1,000, later page", lambda _: parsed(tag="kind:pelican"), is_later=True),
        Case("tag: none", lambda n: parsed(tag=f"kind:{n}")),
        Case("key: one in 1,000", lambda _: parsed(key_id=str(SELDOM_KEY))),
        Case("key: nearly all", lambda _: parsed(key_id=str(OFTEN_KEY))),
        Case("broadcast: none", lambda n: parsed(broadcast_id=str(UUID(int=n)))),
        Case("source: nearly all", lambda _: parsed(source="api")),
        Case("source: one in ten", lambda _: parsed(source="smtp")),
        Case("source: one in 50,000", lambda _: parsed(source="automation")),
        Case("Message-ID: none", lambda n: parsed(message_id=f"{n}@{DOMAIN}")),
        Case("tag one in ten, source one in 50,000", lambda _: parsed(tag="kind:pier", source="automation")),
        Case("to one email, source nearly all", lambda n: parsed(to=is_reader(n), source="api")),
        Case("state: delivered", lambda _: parsed(state="delivered")),
        Case("state: delivered, later page", lambda _: parsed(state="delivered"), is_later=True),
        Case("state: bounced, one in 1,000", lambda _: parsed(state="bounced")),
        Case("state: bounced, later page", lambda _: parsed(state="bounced"), is_later=True),
        Case("state: complained, one in 50,000", lambda _: parsed(state="complained")),
        Case("state: queued, 500", lambda _: parsed(state="queued")),
        Case("state: suppressed, none", lambda _: parsed(state="suppressed")),
        Case("state bounced, domain one in two", lambda _: parsed(state="bounced", domain=OFTEN)),
        Case("state bounced, subject one in two", lambda _: parsed(state="bounced", subject="winter")),
        Case("state complained, subject one in 28", lambda _: parsed(state="complained", subject="ferry")),
        Case("to one email, domain one in two", lambda n: parsed(to=is_reader(n), domain=OFTEN)),
        Case(
            "to one in ten, subject one in 28",
            lambda n: parsed(to="everybody@pier.example", subject=WORDS[n % len(WORDS)]),
        ),
        Case("subject: one in 1,000, since 15 days", lambda _: parsed(subject="pelican", since=since)),
        Case("subject: one in two, until 15 days ago", lambda _: parsed(subject="winter", until=since)),
        Case("subject: one in two, of all teams", lambda _: parsed(subject="winter"), is_of_all=True),
        Case("state: bounced, of all teams", lambda _: parsed(state="bounced"), is_of_all=True),
    ]


def measure(report: Report) -> None:
    many = MANY_SHORT if report.short else MANY
    with serving(report, report.folder / "data", roles="api", processes=1) as server:
        team = str(server.sql("SELECT id FROM teams")[0][0])
        for number in range(5):
            server.make_team(f"small{number}")
        since = datetime.now(UTC) - timedelta(days=DAYS)
        gap = DAYS * 86400 / (many + 1)
        asyncio.run(fill_varied(server, team, many, since=since, gap=gap))
        for table in ("emails", "recipients", "timeline", "deliveries"):
            server.sql(f"VACUUM (ANALYZE) {table}")
        for row in server.sql(SIZES):
            report.note("{}: {:.0f} octets of rows and {:.0f} of indexes for each email".format(*row))
        asyncio.run(blocks(report, server, UUID(team), many))
        asyncio.run(ask(report, server.database_url, UUID(team), many))


async def blocks(report: Report, server: Server, team: UUID, many: int) -> None:
    """Describe the emails; what one costs, of both sides, and what it takes on disk."""
    pool = await open_pool(server.database_url, limit=1)
    try:
        backend = await pool.fetchval("SELECT pg_backend_pid()")
        began, mine, theirs = time.monotonic(), time.process_time(), cpu_seconds([backend])
        made = await SearchBlocks(pool, SystemClock()).describe(
            TeamDb(pool, team), OLDEST, first_id(datetime.now(UTC))
        )
        seconds, mine = time.monotonic() - began, time.process_time() - mine
        theirs = cpu_seconds([backend]) - theirs
        octets = await pool.fetchval("SELECT pg_total_relation_size('search_blocks')")
        done = await pool.fetchval("SELECT coalesce(sum(emails), 0) FROM search_blocks")
        if done + 1000 < many or done > many:
            report.fault(f"{done} of {many} emails are in blocks")
        report.result("describing an email, CPU of both sides", (mine + theirs) / done * 1e6, "µs")
        report.note(f"{made} blocks in {seconds:.0f} s: python {mine / done * 1e6:.1f} µs an email")
        report.result("blocks on disk, for each email", octets / done, "octets")
        await pool.execute("VACUUM (ANALYZE) search_blocks")
    finally:
        await pool.close()


async def ask(report: Report, url: str, team: UUID, many: int) -> None:
    """Ask each question some times."""
    pool = await open_pool(url, limit=1)
    try:
        count = ASKED_SHORT if report.short else ASKED
        cursors = [
            row["id"]
            for row in await pool.fetch(
                "SELECT id FROM emails WHERE team_id = $1 ORDER BY random() LIMIT $2", team, count
            )
        ]
        for case in cases(many):
            await answer(report, pool, case, None if case.is_of_all else team, many, cursors)
    finally:
        await pool.close()


async def answer(
    report: Report, pool: BoundedPool, case: Case, team: UUID | None, many: int, cursors: Sequence[UUID]
) -> None:
    """One question with many values."""
    taken = []
    found = 0
    unfinished = 0
    backend = await pool.fetchval("SELECT pg_backend_pid()")
    spent = time.process_time() + cpu_seconds([backend])
    for place, cursor in enumerate(cursors):
        wanted = case.wanted(1 + place * 7919 % many)
        began = time.perf_counter()
        page = await find(pool, team, wanted, limit=LIMIT, after=cursor if case.is_later else None)
        taken.append((time.perf_counter() - began) * 1000)
        found += len(page.emails)
        unfinished += page.following is not None and len(page.emails) < LIMIT
    spent = (time.process_time() + cpu_seconds([backend]) - spent) / len(cursors) * 1000
    report.result(
        f"{case.name}, p99",
        load.percentile(taken, 99),
        "ms",
        at_most(100),
        note=f"p50 {load.percentile(taken, 50):.1f} ms, CPU {spent:.1f} ms, {found / len(cursors):.1f} found"
        + (f", {unfinished} pages ended early" if unfinished else ""),
    )


if __name__ == "__main__":
    ended("find", measure, __doc__)
