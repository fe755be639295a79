"""The reputation of a domain by mailbox provider, counted in the background from the history."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

from kit.clock import ManualClock
from kit.people import a_person, logged_in, text_of
from kit.query_plans import plan, rows_read
from kit.world import World
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, open_pool
from pillarbox.metrics.providers import counting, queries
from pillarbox.metrics.providers.counting import (
    BOUNDS,
    KEPT,
    MOST_PROVIDERS,
    OTHERS,
    ProviderCounting,
    by_provider,
)
from pillarbox.metrics.providers.names import provider_of
from pillarbox.timeline.rules import Bounce, EventDetail

TEAM, DOMAIN = UUID(int=1), UUID(int=2)
HOSTS = {
    "aspmx.l.google.com": "Google",
    "alt1.gmail-smtp-in.l.google.com": "Google",
    "quay-example.mail.protection.outlook.com": "Microsoft",
    "mta5.am0.yahoodns.net": "Yahoo",
    "mx.pier.example": "pier.example",
    "mx2.pier.example.": "pier.example",
    "smtp.harbor.co.uk": "harbor.co.uk",
    "simulator": "simulator",
    "192.0.2.7": "192.0.2.7",
    "[192.0.2.7]": "[192.0.2.7]",
}
EMAIL = """
    INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                        domain_name, last_event, last_event_at, domain_id)
    VALUES ($1, $2, now(), $2, '', '', '[]', '', '', 'sent', now(), $3)
"""
LINE = """
    INSERT INTO timeline (team_id, id, email_id, at, kind, position, detail)
    VALUES ($1, $2, $3, $4, $5, 0, $6)
"""
NUL = '550 \\u0000 "bounce":{"type":"Permanent" "repeated":true'


@pytest.mark.parametrize("host", HOSTS)
def test_a_server_belongs_to_a_provider(host: str) -> None:
    assert provider_of(host) == HOSTS[host]
    assert provider_of(host.upper()) == HOSTS[host]


class Histories:
    """Writes what became of emails, and counts it once more without the product."""

    def __init__(self, pool: asyncpg.Pool, clock: ManualClock) -> None:
        self.pool = pool
        self.ids = Ids(clock)
        self.expected: Counter[tuple[str, str]] = Counter()

    async def add(self, chance: random.Random, at: datetime, domain: UUID | None = DOMAIN) -> None:
        """One email with some events at a server."""
        email_id, host = self.ids.new(), chance.choice(list(HOSTS))
        await self.pool.execute(EMAIL, TEAM, email_id, domain)
        events: list[tuple[str, EventDetail | None]] = [("queued", None), ("sent", EventDetail(host=host))]
        if chance.random() < 0.3:
            events.append(("delivery_delayed", EventDetail(host=host, reply=NUL)))
            events.append(("delivery_delayed", EventDetail(host=host, repeated=True)))
        fate = chance.random()
        if fate < 0.5:
            events.append(("delivered", EventDetail(host=host, reply="250 ok")))
        if fate < 0.2:
            events.append(("complained", EventDetail(host="reporter.example") if fate < 0.1 else None))
        elif fate > 0.8:
            hard = Bounce("Permanent") if fate > 0.9 else Bounce("Transient")
            events.append(("bounced", EventDetail(host=host, reply=NUL, bounce=hard)))
        for kind, detail in events:
            line = None if detail is None else msgspec.json.encode(detail).decode()
            await self.pool.execute(LINE, TEAM, self.ids.new(), email_id, at, kind, line)
            if domain is None or kind == "queued" or (detail and detail.repeated):
                continue
            self.expected[HOSTS[host], kind] += 1
            if detail and detail.bounce and detail.bounce.type == "Permanent":
                self.expected[HOSTS[host], "bounced_permanent"] += 1


async def sums(pool: asyncpg.Pool, since: datetime) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for one in await by_provider(TeamDb(pool, TEAM), DOMAIN, since):
        values = one._asdict()
        name = values.pop("provider")
        found.update({(name, kind): number for kind, number in values.items() if number})
    return found


async def catch_up(counts: ProviderCounting, clock: Clock) -> None:
    """Count after a pause: at first it is waited for what is on its way."""
    await counts.keep_up()
    clock.advance(BOUNDS.late.total_seconds())  # type: ignore[attr-defined]
    await counts.keep_up()


async def test_every_event_is_counted_once(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is counted, in slices of whatever length, and although a commit fails."""
    clock, chance = ManualClock(), random.Random(7)
    async with await open_pool(database_url, limit=3) as pool:
        histories = Histories(pool, clock)
        now = clock.now()
        for _ in range(120):
            await histories.add(chance, now - timedelta(hours=chance.random() * 60))
        for _ in range(10):
            await histories.add(chance, now - timedelta(hours=1), domain=None)
        counts = ProviderCounting(pool, clock)

        async def fails(*_: Any) -> None:
            raise ConnectionError

        await counts.keep_up()
        clock.advance(BOUNDS.late.total_seconds())
        with monkeypatch.context() as patch:
            patch.setattr(queries, "advance", fails)
            with pytest.raises(ConnectionError):
                await counts.keep_up()
        assert await sums(pool, now - KEPT) == Counter()
        await counts.keep_up()
        for minutes in (1, 2, 5, 30):
            for _ in range(5):
                await histories.add(chance, clock.now())
            clock.advance(minutes * 60)
            await counts.keep_up()
        clock.advance(600)
        await ProviderCounting(pool, clock).keep_up()
        await catch_up(counts, clock)
        assert await sums(pool, now - KEPT) == histories.expected
        clock.advance(KEPT.total_seconds() + 86400)
        assert await counts.remove_old() != "0 sums of providers removed"
        assert await sums(pool, now - 2 * KEPT) == Counter()


async def test_a_clock_that_was_ahead_does_not_stop_the_counting(database_url: str) -> None:
    clock = ManualClock()
    async with await open_pool(database_url, limit=3) as pool:
        histories, chance = Histories(pool, clock), random.Random(1)
        await queries.begin(pool, clock.now() + timedelta(days=3))
        counts = ProviderCounting(pool, clock)
        await counts.keep_up()
        await histories.add(chance, clock.now())
        clock.advance(600)
        await catch_up(counts, clock)
        assert await sums(pool, clock.now() - KEPT) == histories.expected


async def test_outcomes_of_before_a_pause_are_counted(database_url: str) -> None:
    """Attempts that ended while the database was away are committed once it is back, with their own time."""
    clock, chance = ManualClock(), random.Random(3)
    async with await open_pool(database_url, limit=3) as pool:
        histories = Histories(pool, clock)
        counts = ProviderCounting(pool, clock)
        await catch_up(counts, clock)
        clock.advance(600)
        await counts.keep_up()
        for _ in range(10):
            await histories.add(chance, clock.now() - timedelta(minutes=9))
        clock.advance(BOUNDS.late.total_seconds())
        await counts.keep_up()
        assert await sums(pool, clock.now() - KEPT) == histories.expected
        assert histories.expected


async def test_a_day_has_a_bounded_number_of_providers(database_url: str) -> None:
    clock = ManualClock()
    day = datetime(2026, 10, 3, tzinfo=UTC)
    async with await open_pool(database_url, limit=3) as pool:
        for begin in (0, 150, 300):
            batch = {
                queries.ProviderDay(TEAM, DOMAIN, day, f"p{n}.example"): queries.ProviderCounts(sent=1)
                for n in range(begin, begin + 150)
            }
            async with pool.acquire() as conn, conn.transaction():
                await queries.add(conn, await counting._bounded(conn, batch))
        rows = await pool.fetch("SELECT provider, sent FROM provider_days")
        assert len(rows) <= MOST_PROVIDERS + 1
        assert sum(row["sent"] for row in rows) == 450
        found = await by_provider(TeamDb(pool, TEAM), DOMAIN, day)
        assert len(found) == counting.SHOWN + 1
        assert found[-1].provider == OTHERS
        assert sum(one.sent for one in found) == 450
        assert await by_provider(TeamDb(pool, uuid4()), DOMAIN, day) == []
        assert clock.now() is not None


async def test_what_is_counted_is_read_by_time_and_what_is_shown_by_its_key(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    try:
        await conn.execute(
            "INSERT INTO timeline (team_id, id, email_id, at, kind, position)"
            " SELECT $1, gen_random_uuid(), gen_random_uuid(), now() - n * interval '10 seconds', 'sent', 0"
            "   FROM generate_series(200000, 1, -1) AS n",
            TEAM,
        )
        await conn.execute(
            """
            INSERT INTO provider_days
            SELECT $1, domain_id, date_trunc('day', now()) - n * interval '1 day', 'p' || m, 1, 1, 0, 0, 0, 0
              FROM generate_series(0, 59) AS n, generate_series(1, 200) AS m, unnest($2::uuid[]) AS domain_id
            """,
            TEAM,
            [DOMAIN, UUID(int=3)],
        )
        await conn.execute("VACUUM ANALYZE")
        end = await conn.fetchval("SELECT now() - interval '5 days'")
        args = (str(end - timedelta(minutes=5)), str(end))
        for sql in (queries.COUNTED, queries.COMPLAINTS):
            made = await plan(conn, sql, args)
            assert "timeline_at" in str(made)
            assert max(rows_read(made)) <= 5000
        since = str(await conn.fetchval("SELECT now() - interval '30 days'"))
        assert max(rows_read(await plan(conn, queries.OF_DOMAIN, (TEAM, DOMAIN, since)))) <= 31 * 201
    finally:
        await conn.close()


async def test_the_page_of_a_domain_shows_its_providers(pillarbox: World) -> None:
    team, other = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    await team.domain("harbor.example")
    domain = (await team.get("/domains")).json()["data"][0]
    for to in ("delivered@resend.dev", "bounced@resend.dev", "complained@resend.dev"):
        await team.send(to=[to], from_="news@harbor.example")
    while await pillarbox.turn():
        pass
    ada = await logged_in(pillarbox, await a_person(team, "ada@rep.example"))
    path = f"/dashboard/domains/{domain['id']}/reputation"
    assert "Nothing is counted yet" in text_of(await ada.get(path))
    counts = pillarbox.app.need(ProviderCounting)
    pillarbox.clock.advance(300)  # type: ignore[attr-defined]
    await catch_up(counts, pillarbox.clock)
    page = await ada.get(path)
    assert "By mailbox provider" in text_of(page)
    assert re_row(page.text) == ["3", "66.7 %", "0.0 %", "33.3 %", "33.33 %", "50.00 %"]
    ben = await logged_in(pillarbox, await a_person(other, "ben@rep.example"))
    assert (await ben.get(path)).status_code == 404


def re_row(text: str) -> list[str]:
    row = text[text.index("<bdi>simulator</bdi>") :].split("</tr>")[0]
    return re.findall(r"([0-9.]+(?: %)?)<", row.replace("\u00a0", " "))
