"""`pillarbox demo` beside a team that sends for real: what there is to see, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest

from cli.conftest import Installation
from kit.people import Person, visit
from kit.world import with_key_ring, world
from pillarbox.app import SETTINGS
from pillarbox.demo import making
from pillarbox.demo.contacts import ShopAudience
from pillarbox.demo.making import MARK, DemoTeam, make_demo
from pillarbox.demo.schedule import MonthSize, SeededRandom
from pillarbox.demo.simulation_clock import ScriptedClock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.settings.settings import settings_of
from pillarbox.teams.bootstrap import operators_team

pytestmark = pytest.mark.sweep

T = TypeVar("T")

SMALL = MonthSize(days=12, contacts=40)
"""With the broadcast that goes wrong, and all that happens after it."""

TABLES = """
    SELECT c.relname AS name,
           EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'team_id') AS has_team
      FROM pg_class c
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
"""
DEMO = f"substring(uuid_send(team_id) FROM 9) = '\\x{MARK.hex()}'"


async def counts(url: str, condition: str = "true", *, of_teams: bool = False) -> dict[str, int]:
    """How many rows each table has; those without any are left out."""
    conn = await asyncpg.connect(url)
    try:
        tables = [row["name"] for row in await conn.fetch(TABLES) if row["has_team"] or not of_teams]
        found = {
            name: await conn.fetchval(f'SELECT count(*) FROM "{name}" WHERE {condition}') for name in tables
        }
    finally:
        await conn.close()
    return {name: count for name, count in found.items() if count}


async def in_pool(
    installation: Installation, work: Callable[[asyncpg.Pool, Any], Awaitable[T]], **own: str
) -> T:
    """Do something with the pool and the settings of an installation that sends for real."""
    place = {"data": str(installation.folder), "database_url": installation.url}
    settings = await with_key_ring(settings_of({**place, "route": "direct", **own}, SETTINGS))
    pool = await open_pool(installation.url, limit=2)
    try:
        return await work(pool, settings)
    finally:
        await pool.close()


def made_in(installation: Installation, size: MonthSize = SMALL, **own: str) -> DemoTeam:
    """Make a demo. The tests may reach nothing but loopback, so neither may the demo."""
    return asyncio.run(
        in_pool(
            installation, lambda pool, settings: make_demo(pool, settings, datetime.now(UTC), size), **own
        )
    )


@pytest.fixture(scope="module")
def shared(
    made_harbor: Installation, databases: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Installation, DemoTeam]]:
    """A copy of the harbor with a demo, for tests that only look."""
    folder = tmp_path_factory.mktemp("demo") / "data"
    shutil.copytree(made_harbor.folder, folder)
    url = databases.fresh(template=made_harbor.url.removeprefix("postgresql:///").split("?")[0])
    installation = Installation(url, folder)
    yield installation, made_in(installation)
    databases.drop(url)


def rows_of(installation: Installation, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in installation.sql(statement)]


def test_everybody_it_writes_to_is_of_the_simulator(shared: tuple[Installation, DemoTeam]) -> None:
    """Whatever the route of the server is, mail to these addresses stays inside."""
    installation, _ = shared
    places = {
        "recipients": "address",
        "contacts": "address",
        "inbox_drafts": "to_list::text",
        "team_members": "email",
        "deliveries": "destination",
    }
    for table, column in places.items():
        found = rows_of(installation, f"SELECT DISTINCT {column} FROM {table} WHERE {DEMO}")
        outside = [text for (text,) in found if text and "pillarbox.test" not in text]
        assert outside == [], table
    assert rows_of(installation, f"SELECT DISTINCT destination FROM deliveries WHERE {DEMO}")


def test_its_webhooks_lead_to_this_machine_alone(shared: tuple[Installation, DemoTeam]) -> None:
    installation, _ = shared
    endpoints = rows_of(installation, f"SELECT endpoint FROM webhooks WHERE {DEMO}")
    assert len(endpoints) == 2
    assert all(".localhost/" in endpoint for (endpoint,) in endpoints)
    assert rows_of(installation, f"SELECT count(*) FROM webhook_deliveries WHERE {DEMO}") == [(0,)]


def test_mail_for_the_operator_still_goes_to_the_first_team(shared: tuple[Installation, DemoTeam]) -> None:
    """The demo's team is older by its id, but it came later."""
    installation, demo = shared
    [(first,)] = rows_of(installation, "SELECT id FROM teams ORDER BY id LIMIT 1")
    assert first == demo.id
    found = asyncio.run(in_pool(installation, lambda pool, _: operators_team(pool)))
    assert rows_of(installation, f"SELECT name FROM teams WHERE id = '{found}'") == [("Harbor",)]


def test_no_look_into_dns_is_left_to_do(shared: tuple[Installation, DemoTeam]) -> None:
    installation, _ = shared
    kinds = rows_of(installation, f"SELECT DISTINCT kind FROM jobs WHERE {DEMO}")
    assert ("domain.check",) not in kinds


def test_its_month_lies_in_the_past(shared: tuple[Installation, DemoTeam]) -> None:
    installation, demo = shared
    [(first, last, days)] = rows_of(
        installation,
        "SELECT min(at), max(at), count(DISTINCT at::date) FILTER (WHERE at::date < current_date)"
        f" FROM timeline WHERE {DEMO}",
    )
    now = datetime.now(UTC)
    assert now - timedelta(days=SMALL.days + 1) < first < last < now
    # Today is one of the days of the month, but in its first hours nobody has bought anything.
    assert days >= SMALL.days - 1
    assert rows_of(installation, f"SELECT count(*) FROM metric_increments WHERE {DEMO}") == [(0,)]
    assert demo.id.bytes[8:] == MARK


def test_there_is_something_of_everything(shared: tuple[Installation, DemoTeam]) -> None:
    installation, _ = shared
    filled = asyncio.run(counts(installation.url, DEMO, of_teams=True)).keys()
    assert {
        *("emails", "attachments", "recipients", "timeline", "rollups", "captured", "logs"),
        *("contacts", "contact_properties", "segments", "segment_members", "topics"),
        *("templates", "template_versions", "broadcasts", "suppressions", "domains", "api_keys"),
        *("inboxes", "inbox_threads", "inbox_messages", "inbox_drafts", "received_emails"),
        *("webhooks", "webhook_events", "webhook_attempts", "webhook_outcomes"),
    } <= filled
    kinds = {kind for (kind,) in rows_of(installation, f"SELECT DISTINCT kind FROM timeline WHERE {DEMO}")}
    assert {"delivered", "bounced", "complained", "opened", "clicked", "scheduled"} <= kinds
    outcomes = rows_of(installation, f"SELECT DISTINCT status FROM webhook_outcomes WHERE {DEMO}")
    assert set(outcomes) == {("success",), ("failed",)}
    names = rows_of(installation, f"SELECT status FROM broadcasts WHERE {DEMO}")
    assert {("sent",), ("scheduled",), ("draft",)} <= set(names)


def test_verify_finds_no_gap(shared: tuple[Installation, DemoTeam]) -> None:
    installation, _ = shared
    done = installation.run("verify", "--no-collect")
    assert done.exit_code == 0, done.output


def test_its_visitor_logs_in_and_sees_it(shared: tuple[Installation, DemoTeam], tmp_path: Path) -> None:
    installation, demo = shared

    async def looks() -> tuple[str, int, str]:
        async with world(installation.url, installation.folder, started=False) as pillarbox:
            browser = visit(pillarbox)
            answer = await browser.log_in(Person(demo.id, demo.email, demo.password))
            assert answer.status_code == 303
            shown = await browser.follow(await browser.get("/dashboard/emails"))
            listed = await pillarbox.client(demo.token).get("/broadcasts")
            return shown.text, listed.status_code, listed.text

    page, status, listed = asyncio.run(looks())
    assert "SM-4" in page
    assert status == 200
    assert "Old customers: we have moved" in listed


def test_a_second_one_is_refused_in_a_sentence(shared: tuple[Installation, DemoTeam]) -> None:
    installation, _ = shared
    done = installation.run("demo", "--yes")
    assert done.exit_code == 1
    assert "There is a demo already" in done.stderr
    assert "pillarbox people reset delivered+mara@pillarbox.test" in done.stderr


def test_an_installation_that_is_in_use_asks_for_yes(harbor: Installation) -> None:
    before = asyncio.run(counts(harbor.url))
    done = harbor.run("demo")
    assert done.exit_code == 1
    assert "--yes" in done.stderr
    assert asyncio.run(counts(harbor.url)) == before


def test_where_there_is_none_removal_says_so(harbor: Installation) -> None:
    before = asyncio.run(counts(harbor.url))
    done = harbor.run("demo", "--remove")
    assert done.exit_code == 1
    assert "There is no demo here" in done.stderr
    assert asyncio.run(counts(harbor.url)) == before


def test_without_simulator_addresses_there_is_no_demo(harbor: Installation) -> None:
    async def refused(pool: asyncpg.Pool, settings: Any) -> None:
        with pytest.raises(making.NoSimulator):
            await make_demo(pool, settings, datetime.now(UTC), SMALL)

    class Without:
        def __getitem__(self, _: object) -> frozenset[str]:
            return frozenset()

    asyncio.run(in_pool(harbor, lambda pool, _: refused(pool, Without())))


def test_removal_leaves_no_row_and_no_file_and_touches_no_other_team(harbor: Installation) -> None:
    before, blobs = asyncio.run(counts(harbor.url)), set(harbor.blobs())
    demo = made_in(harbor, MonthSize(days=3, contacts=20))

    async def goes_on() -> None:
        """Somebody looks around: a file too large for the database, a session, a provider, an entry of the
        log."""
        async with world(harbor.url, harbor.folder, started=False) as pillarbox:
            mail = {
                "from": "orders@saltmarsh.example",
                "to": "delivered+you@pillarbox.test",
                "subject": "Chart",
                "text": "See the file",
                "attachments": [{"filename": "chart.bin", "content": "QUFB" * 120_000}],
            }
            sent = await pillarbox.client(demo.token).post("/emails", json=mail)
            assert sent.status_code == 200, sent.text
            await visit(pillarbox).log_in(Person(demo.id, demo.email, demo.password))
            await pillarbox.pool.execute(
                """
                INSERT INTO person_openid_links (issuer, subject, person_id, email, created_at, last_used_at)
                SELECT 'https://id.quay.example', 'demo', id, email, now(), now() FROM people WHERE email = $1
                """,
                demo.email,
            )

    asyncio.run(goes_on())
    assert len(harbor.blobs()) == len(blobs) + 1
    assert asyncio.run(counts(harbor.url, DEMO, of_teams=True))["audit_entries"]
    done = harbor.run("demo", "--remove")
    assert done.exit_code == 0, done.output + done.stderr
    assert "and 1 file." in done.stdout
    assert asyncio.run(counts(harbor.url, DEMO, of_teams=True)) == {}
    after = asyncio.run(counts(harbor.url))
    # Keys of links and the log of acts of the installation are not the demo's.
    kept = {"link_keys", "audit_entries"}
    assert {name: count for name, count in after.items() if name not in kept} == {
        name: count for name, count in before.items() if name not in kept
    }
    assert set(harbor.blobs()) == blobs
    assert rows_of(harbor, "SELECT tgenabled FROM pg_trigger WHERE tgname = 'audit_entry_stays'") == [(b"O",)]


def test_an_abort_in_the_middle_leaves_nothing(harbor: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asyncio.run(counts(harbor.url))

    class AbortError(Exception):
        pass

    def aborted(*_: Any) -> None:
        raise AbortError

    monkeypatch.setattr(making, "plan_letters", aborted)
    with suppress(AbortError):
        made_in(harbor, MonthSize(days=3, contacts=20))
    assert asyncio.run(counts(harbor.url)) == before


def test_two_months_have_the_same_customers() -> None:
    one, two = (ShopAudience(SeededRandom(30), 480, "pillarbox.test") for _ in range(2))
    assert [person.mailbox for person in one.everybody] == [person.mailbox for person in two.everybody]
    assert len({person.address for person in one.everybody}) == len(one.everybody)


async def test_a_scripted_clock_wakes_sleepers_in_their_order() -> None:
    start = datetime(2026, 10, 1, tzinfo=UTC)
    clock, woken = ScriptedClock(start), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.create_task(sleeper(seconds)) for seconds in (20.0, 5.0, 90.0)]
    await asyncio.sleep(0)
    clock.move_to(start + timedelta(seconds=30))
    await asyncio.gather(*tasks[:2])
    assert woken == [5.0, 20.0]
    clock.move_to(start)
    assert clock.now() == start + timedelta(seconds=30)
    tasks[2].cancel()


@pytest.mark.slow
def test_the_whole_month_has_the_proportions_of_a_shop(harbor: Installation) -> None:
    made_in(harbor, MonthSize())
    [(sent, bounced, complained)] = rows_of(
        harbor,
        f"""
        SELECT count(*) FILTER (WHERE kind = 'sent'), count(*) FILTER (WHERE kind = 'bounced'),
               count(*) FILTER (WHERE kind = 'complained')
          FROM timeline WHERE {DEMO}
        """,
    )
    assert 1700 < sent < 2500
    assert 0.011 < bounced / sent < 0.02
    assert 0.001 < complained / sent < 0.006
    assert rows_of(harbor, f"SELECT count(*) FROM contacts WHERE {DEMO}")[0][0] >= 490
