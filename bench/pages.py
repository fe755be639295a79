"""How long the pages of the dashboard take, and what they weigh, for a team with a million emails and a
hundred thousand contacts; what they cost `POST /emails` beside them; what an open live stream holds; how soon
it tells of a change at another node.

Every screen of the table is asked for, and some lists with filters. A sequential scan of a large table while
a page is made is a fault. `PAGES_EMAILS` in the environment sets another number of emails.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from bench.kit import beside, load, processes
from bench.kit.fill_varied import fill_varied
from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, SENDER, Server, serving
from pillarbox.application import SLICES
from pillarbox.dashboard.frame import assets
from pillarbox.dashboard.frame.screen_table import Screen, screens_of
from pillarbox.emails.retention import first_id
from pillarbox.emails.search.blocks import SearchBlocks
from pillarbox.emails.search.filters import OLDEST
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, open_pool, transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import accounts, queries, sessions
from pillarbox.people.roles import TeamRole
from pillarbox.people.sessions import SessionOrigin

EMAILS, EMAILS_SHORT = 1_000_000, 20_000
CONTACTS, CONTACTS_SHORT = 100_000, 2_000
DAYS: Final = 30
TIMES, TIMES_SHORT = 60, 5
"""How often each page is asked for."""

PEOPLE: Final = 20
PAUSE: Final = 2.0
"""Seconds that somebody looks at a page before the next click."""

CONNECTIONS, PAUSE_MS = 10, 50
SECONDS, SECONDS_SHORT = 20.0, 3.0
WAVES: Final = 3

STREAMS: Final = 400
STREAM_TEAMS: Final = 8
STREAM_SESSIONS: Final = 5
"""Sessions of each team: one may have ten streams."""

CHANGES, CHANGES_SHORT = 20, 4

PAGE_LIMIT, SHEET_LIMIT, SCRIPT_LIMIT = 60_000, 40_000, 50_000
LARGE: Final = 1_000
"""Rows from which a sequential scan of a table is a fault."""

SESSION: Final = "__Host-pillarbox"

MAKE_CONTACTS: Final = """
    INSERT INTO contacts (team_id, id, address, first_name, last_name, unsubscribed, properties, created_at,
                          updated_at)
    SELECT $1::uuid,
           (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
               || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
           'person.' || n || '@inbox' || n % 2000 || '.example', 'First' || n % 500, 'Last' || n % 5000,
           n % 50 = 0, '{}', at, at
      FROM (SELECT n, now() - interval '30 days' + n * interval '2 milliseconds' AS at
              FROM generate_series(1, $2::int) AS n) AS made
"""

SUBJECTS: Final[Mapping[str, str]] = {
    "email_id": "SELECT id::text FROM emails WHERE team_id = $1 ORDER BY random() LIMIT 50",
    "domain_id": "SELECT id::text FROM domains WHERE team_id = $1 LIMIT 1",
    "webhook_id": "SELECT id::text FROM webhooks WHERE team_id = $1 LIMIT 1",
    "log_id": "SELECT id::text FROM logs WHERE team_id = $1 ORDER BY id DESC LIMIT 20",
    "suppression_id": "SELECT id::text FROM suppressions WHERE team_id = $1 LIMIT 20",
    "member_id": "SELECT id::text FROM team_members WHERE team_id = $1 ORDER BY id DESC LIMIT 1",
    "team_id": "SELECT $1::uuid::text",
}
"""Asks for values of a path parameter."""

FILTERED: Final = (
    "/dashboard/emails?state=bounced",
    "/dashboard/emails?to=everybody@pier.example",
    "/dashboard/emails?subject=albatross",
    "/dashboard/emails?sender=news@seldom.bench.example",
    "/dashboard/search?q=reader.11@inbox11.example",
    "/dashboard/search?q=pelican",
    "/dashboard?span=90d",
    "/dashboard/metrics?span=30d",
)

SCANS: Final = """
    SELECT relname, seq_scan + 0.0 FROM pg_stat_user_tables WHERE n_live_tup >= $1::int ORDER BY relname
"""
COMMITS: Final = "SELECT sum(xact_commit)::float FROM pg_stat_database"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the dashboard with the addresses at which it is asked for."""

    name: str
    paths: Sequence[str]


@dataclass(slots=True)
class Asked:
    """What was seen of a page."""

    first_bytes: list[float]
    sizes: list[int]
    refused: int = 0


class Reader:
    """A browser of somebody who has logged in, on one connection."""

    def __init__(self, server: Server, token: str) -> None:
        self._connection = server.connection()
        self._headers = {"cookie": f"{SESSION}={token}; pillarbox-zone=Europe/Berlin", "accept": "text/html"}

    def ask(self, path: str) -> tuple[int, float, int]:
        """The status, milliseconds to the first byte, and the octets of a page."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        first = (time.perf_counter() - began) * 1000
        return answer.status, first, len(answer.read())

    def close(self) -> None:
        self._connection.close()


def measure(report: Report) -> None:
    weigh(report)
    many = int(os.environ.get("PAGES_EMAILS") or (EMAILS_SHORT if report.short else EMAILS))
    with serving(report, report.folder / "data") as server:
        server.trust()
        team = UUID(server.sql("SELECT team_id::text FROM api_keys LIMIT 1")[0][0])
        fill(report, server, team, many)
        tokens = asyncio.run(people(server, team, PEOPLE, is_operator=True))
        pages = list(every_page(report, server, team))
        ask_all(report, server, tokens, pages)
        clicking(report, server, tokens, pages)
    streams(report)


def weigh(report: Report) -> None:
    """The sheet and the scripts, as they are sent without compression."""
    folder = Path(assets.__file__).parents[1] / "assets"
    octets = {kind: sum(file.stat().st_size for file in folder.glob(f"*.{kind}")) for kind in ("css", "js")}
    report.result("the style sheet", octets["css"] / 1000, "kB", at_most(SHEET_LIMIT / 1000))
    report.result("the scripts together", octets["js"] / 1000, "kB", at_most(SCRIPT_LIMIT / 1000))


def fill(report: Report, server: Server, team: UUID, many: int) -> None:
    """Emails of a month with their blocks, contacts, and some of everything else."""
    began = time.monotonic()
    since = datetime.now(UTC) - timedelta(days=DAYS)
    asyncio.run(fill_varied(server, str(team), many, since=since, gap=DAYS * 86400 / (many + 1)))
    server.sql(MAKE_CONTACTS, team, CONTACTS_SHORT if report.short else CONTACTS)
    for path, body in (
        ("/webhooks", {"endpoint": "https://hooks.bench.example/in", "events": ["email.bounced"]}),
        ("/suppressions", {"email": "nobody@pier.example"}),
        (
            "/emails",
            {"from": SENDER, "to": "ada@pier.example", "subject": "Your order", "text": "Thank you."},
        ),
    ):
        call(server, path, body)
    for table in ("emails", "recipients", "timeline", "deliveries", "contacts", "contents"):
        server.sql(f"VACUUM (ANALYZE) {table}")
    asyncio.run(describe(server, team))
    report.note(f"{many:,} emails and their blocks in {time.monotonic() - began:.0f} s")


def call(server: Server, path: str, body: object) -> None:
    """A call of the API that must be accepted."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}{path}", json.dumps(body).encode(), headers)
    urllib.request.urlopen(request).close()


async def describe(server: Server, team: UUID) -> None:
    """Describe the emails for the search, as the job does that runs behind the accept."""
    pool = await open_pool(server.database_url, limit=1)
    try:
        await SearchBlocks(pool, SystemClock()).describe(
            TeamDb(pool, team), OLDEST, first_id(datetime.now(UTC))
        )
        await pool.execute("VACUUM (ANALYZE) search_blocks")
    finally:
        await pool.close()


async def people(server: Server, team: UUID, count: int, *, is_operator: bool = False) -> list[str]:
    """Sessions of so many new members of the team."""
    pool = await open_pool(server.database_url, limit=1)
    ids, tokens = Ids(SystemClock()), []
    try:
        for number in range(count):
            address = email_address(f"reader{number}.{team.hex[-8:]}@bench.example")
            async with transaction(pool) as conn:
                person = await accounts.create(conn, ids.stamp(), address, f"Reader {number}")
                await accounts.join(conn, ids.stamp(), person, address, team, TeamRole.OWNER)
                now = datetime.now(UTC)
                origin = SessionOrigin("127.0.0.1", "bench")
                token = await sessions.begin(conn, now, ids.new(), person, ["password"], origin)
            tokens.append(token or "")
            await queries.set_operator(pool, person, is_operator=is_operator)
    finally:
        await pool.close()
    return tokens


def every_page(report: Report, server: Server, team: UUID) -> Iterator[Page]:
    """Each screen of the table that has something to show here, and lists with filters."""
    for screen in screens_of([route.handler for entry in SLICES for route in entry.pages]):
        paths = addresses(server, team, screen)
        if paths:
            yield Page(screen.path, paths)
        else:
            report.skip(screen.path, "there is nothing of its kind")
    for path in FILTERED:
        yield Page(path, [path])
    cursors = [row[0] for row in server.sql(SUBJECTS["email_id"], team)]
    yield Page("/dashboard/emails, a later page", [f"/dashboard/emails?after={cursor}" for cursor in cursors])


def addresses(server: Server, team: UUID, screen: Screen) -> list[str]:
    names = re.findall(r"{(\w+)}", screen.path)
    if not names:
        return [screen.path]
    if len(names) > 1 or names[0] not in SUBJECTS:
        return []
    rows = server.sql(SUBJECTS[names[0]], team)
    return [screen.path.replace(f"{{{names[0]}}}", row[0]) for row in rows]


def ask_all(report: Report, server: Server, tokens: Sequence[str], pages: Sequence[Page]) -> None:
    """Each page one by one; the slowest and the largest are named."""
    readers = [Reader(server, token) for token in tokens]
    times = TIMES_SHORT if report.short else TIMES
    seen: dict[str, Asked] = {}
    for page in pages:
        seen[page.name] = asked = Asked([], [])
        for reader in readers:
            reader.ask(page.paths[0])
        time.sleep(0.1)
        scans, commits = statistics(server)
        for number in range(times):
            status, first, octets = readers[number % len(readers)].ask(page.paths[number % len(page.paths)])
            asked.refused += status != 200
            asked.first_bytes.append(first)
            asked.sizes.append(octets)
        after, committed = statistics(server)
        if asked.refused:
            report.fault(f"{page.name}: {asked.refused} of {times} answers were no pages")
        for table, before in scans.items():
            if after.get(table, before) - before >= times // 2:
                report.fault(f"{page.name}: {after[table] - before:.0f} sequential scans of {table}")
        report.note(
            f"{page.name:<52} p50 {load.percentile(asked.first_bytes, 50):6.1f} ms  "
            f"p99 {load.percentile(asked.first_bytes, 99):6.1f} ms  {max(asked.sizes) / 1000:5.1f} kB  "
            f"{(committed - commits) / times:4.1f} transactions"
        )
    for reader in readers:
        reader.close()
    total = [first for asked in seen.values() for first in asked.first_bytes]
    for of_hundred, limit in ((50, 25), (99, 100)):
        slowest = max(seen, key=lambda name: load.percentile(seen[name].first_bytes, of_hundred))
        worst = load.percentile(seen[slowest].first_bytes, of_hundred)
        report.result(
            f"first byte of all pages, p{of_hundred}",
            load.percentile(total, of_hundred),
            "ms",
            at_most(limit),
            f"the slowest is {slowest} with {worst:.1f} ms",
        )
    heaviest = max(seen, key=lambda name: max(seen[name].sizes))
    report.result(
        "the largest page", max(seen[heaviest].sizes) / 1000, "kB", at_most(PAGE_LIMIT / 1000), heaviest
    )


def statistics(server: Server) -> tuple[dict[str, float], float]:
    """Sequential scans of each large table, and commits; idle sessions report them after a second."""
    time.sleep(1.1)
    scans = {row[0]: float(row[1]) for row in server.sql(SCANS, LARGE)}
    return scans, server.number(COMMITS)


@contextmanager
def clicks(server: Server, tokens: Sequence[str], pages: Sequence[Page]) -> Iterator[Callable[[], int]]:
    """People who open one page after another, each a page every `PAUSE` seconds."""
    is_over = threading.Event()
    opened: list[int] = []

    def click(place: int, token: str) -> None:
        reader = Reader(server, token)
        is_over.wait(PAUSE * place / len(tokens))
        while not is_over.is_set():
            page = pages[(place * 7 + len(opened)) % len(pages)]
            reader.ask(page.paths[len(opened) % len(page.paths)])
            opened.append(place)
            is_over.wait(PAUSE)
        reader.close()

    threads = [threading.Thread(target=click, args=entry) for entry in enumerate(tokens)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: len(opened)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def clicking(report: Report, server: Server, tokens: Sequence[str], pages: Sequence[Page]) -> None:
    """`POST /emails` at some 200 requests a second, alone and beside people who click, in turns."""
    server.reuse_wal()
    requests = load.single_mails(report.folder)
    seconds = SECONDS_SHORT if report.short else SECONDS
    load.wrk(server, requests, connections=CONNECTIONS, seconds=3, pause=PAUSE_MS)
    alone, waves, opened = [], [], 0
    for _ in range(WAVES):
        alone.append(load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds, pause=PAUSE_MS))
        with clicks(server, tokens, pages) as count:
            waves.append(load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds, pause=PAUSE_MS))
            opened += count()
    quiet = sorted(alone, key=lambda wave: wave.p99)[WAVES // 2]
    beside.report_ratio(report, f"{PEOPLE} people clicking", quiet, waves, limit=beside.GOAL)
    report.note(f"{opened / (WAVES * seconds):.1f} pages a second were opened beside it")


def streams(report: Report) -> None:
    """What an open stream holds in one process, and when two nodes tell of a change."""
    with serving(report, report.folder / "streams", processes=1) as server:
        server.trust()
        team = UUID(server.sql("SELECT team_id::text FROM api_keys LIMIT 1")[0][0])
        teams = [team] + [UUID(server.make_team(f"team{number}")[0]) for number in range(1, STREAM_TEAMS)]
        several = [asyncio.run(people(server, team, STREAM_SESSIONS)) for team in teams]
        tokens = [token for tokens_of_team in several for token in tokens_of_team]
        worker = processes.tree(server.process.pid).workers[0]
        for stream in open_streams(server, tokens[:STREAM_SESSIONS] * 8):
            stream.close()
        time.sleep(2.5)
        before = processes.memory_mb(worker)
        opened = open_streams(server, tokens * (STREAMS // len(tokens)))
        time.sleep(2.5)
        held = (processes.memory_mb(worker) - before) * 1000 / len(opened)
        report.result("memory of an open live stream", held, "kB", at_most(30), f"{len(opened)} streams")
        for stream in opened:
            stream.close()
        time.sleep(2)
        changes(report, server, tokens[0])


def open_streams(server: Server, tokens: Sequence[str]) -> list[http.client.HTTPConnection]:
    """Streams that have begun."""
    found = []
    for token in tokens:
        connection = server.connection()
        connection.request("GET", "/dashboard/live", headers={"cookie": f"{SESSION}={token}"})
        answer = connection.getresponse()
        if answer.status != 200 or not answer.readline().startswith(b": no change"):
            raise RuntimeError(f"no stream: {answer.status}")
        connection.answer = answer  # type: ignore[attr-defined]
        found.append(connection)
    return found


def changes(report: Report, server: Server, token: str) -> None:
    """From an accept at one node to the event of a stream at each of two nodes."""
    more = ("--database-url", server.database_url, "--blob-url", f"file:{server.data / 'blobs'}")
    (report.folder / "second").mkdir()
    shutil.copy(server.data / "secret.key", report.folder / "second" / "secret.key")
    with serving(report, report.folder / "second", processes=1, roles="api", more=more) as second:
        taken = []
        for _ in range(CHANGES_SHORT if report.short else CHANGES):
            opened = open_streams(server, [token] * 2) + open_streams(second, [token] * 2)
            time.sleep(1.2)
            began = time.perf_counter()
            call(server, "/emails", {"from": SENDER, "to": "ada@pier.example", "subject": "s", "text": "t"})
            for connection in opened:
                while not connection.answer.readline().startswith(b"event: change"):  # type: ignore[attr-defined]
                    pass
                taken.append(time.perf_counter() - began)
                connection.close()
    report.result(
        "two browsers on each of two nodes see a change, worst",
        max(taken),
        "s",
        at_most(1),
        f"p50 {load.percentile(taken, 50):.2f} s of {len(taken)}",
    )


if __name__ == "__main__":
    ended("pages", measure, __doc__)
