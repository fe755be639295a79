"""Everything that grows has an end (DUR-15, architecture 6.8)."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from kit.brought import INVARIANTS
from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world, relayed_world, run_jobs
from kit.smtp_sink import Sink
from kit.world import Team, World, mail
from pillarbox.emails.integrity import blob_references
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.emails.jobs import OrphanBlobs
from pillarbox.emails.retention import BATCH, EmailRetention
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.kernel.storage.blobs import BlobMissing, BlobStore
from pillarbox.kernel.work import collectors, periodic
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.teams import bootstrap

LARGE = {"filename": "chart.bin", "content": base64.b64encode(bytes(300_000)).decode()}
SMALL = {"filename": "note.txt", "content": "QmVydGg="}
PARTS = ("emails", "contents", "attachments", "recipients", "timeline", "deliveries")
DAY = timedelta(days=1)
ANOTHER = UUID(int=9)


async def run_until_idle(pillarbox: World) -> None:
    """Run the jobs that are due, and those that these leave due."""
    while await run_jobs(pillarbox):
        pass


async def prepared(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await team.domain()
    return team


def kept(pillarbox: World, *, emails: int = 0, bodies: int = 0) -> EmailRetention:
    app = pillarbox.app
    return EmailRetention(app.kit.pool, app.kit.clock, app.need(BlobStore), emails=emails, bodies=bodies)


async def counts(pillarbox: World) -> dict[str, int]:
    return {name: await pillarbox.pool.fetchval(f"SELECT count(*) FROM {name}") for name in PARTS}


def files(folder: Path) -> int:
    """How many blobs lie in the store, finished or not."""
    return sum(len(names) for _, _, names in os.walk(folder / "blobs"))


async def test_an_old_email_goes_with_all_that_belongs_to_it(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await prepared(pillarbox)
        await team.send(to=["a@quay.example", "b@pier.example"], attachments=[LARGE, SMALL])
        await pillarbox.turn()
        assert files(tmp_path) == 1
        clock_of(pillarbox).advance(30 * DAY)
        young = await team.send()
        await pillarbox.turn()
        assert await kept(pillarbox, emails=30).purge_emails() == 0
        clock_of(pillarbox).advance(timedelta(minutes=11))
        assert await kept(pillarbox).purge_emails() == 0
        assert await kept(pillarbox, emails=30).purge_emails() == 1
        assert await counts(pillarbox) == {
            "emails": 1,
            "contents": 1,
            "attachments": 0,
            "recipients": 1,
            "timeline": 3,
            "deliveries": 0,
        }
        assert files(tmp_path) == 0
        assert (await team.email(young))["last_event"] == "delivered"


async def test_what_was_purged_is_no_gap(relayed: tuple[World, Sink]) -> None:
    """DUR-14: the metrics still count the emails; the reconciliation knows why their history is gone."""
    pillarbox, sink = relayed
    sink.script("RCPT", "550 5.7.1 no")
    team = await prepared(pillarbox)
    await team.send()
    await pillarbox.turn()
    clock_of(pillarbox).advance(31 * DAY)
    await team.send(to=["a@quay.example", "b@quay.example"])
    await pillarbox.turn()
    assert await kept(pillarbox, emails=30).purge_emails() == 1
    found = await reconcile(pillarbox.pool, 10, INVARIANTS)
    assert found.gaps == []
    assert [account.accepted for account in found.accounts] == [2]
    await team.db.run("DELETE FROM timeline WHERE team_id = $1 AND kind = 'delivered'")
    names = {gap.name for gap in (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps}
    assert "metric_differs_from_history" in names


async def test_an_email_with_live_work_is_never_touched(relayed: tuple[World, Sink]) -> None:
    pillarbox, _ = relayed
    team = await prepared(pillarbox)
    waiting = await team.send(scheduled_at="in 20 days")
    fetching = await team.send(attachments=[{"path": "http://127.0.0.1:9/x", "filename": "x"}])
    done = await team.send()
    await pillarbox.turn()
    clock_of(pillarbox).advance(10 * DAY)
    retention = kept(pillarbox, emails=1, bodies=1)
    assert await retention.purge_bodies() == 1
    assert await retention.purge_emails() == 1
    await team.email(waiting)
    await team.email(fetching)
    assert (await team.get(f"/emails/{done}")).status_code == 404


async def test_an_email_that_is_locked_is_not_waited_for(relayed: tuple[World, Sink]) -> None:
    pillarbox, _ = relayed
    team = await prepared(pillarbox)
    locked, free = await team.send(), await team.send()
    await pillarbox.turn()
    clock_of(pillarbox).advance(10 * DAY)
    async with pillarbox.pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM emails WHERE id = $1 FOR UPDATE", UUID(locked))
        async with asyncio.timeout(10):
            assert await kept(pillarbox, emails=1).purge_emails() == 1
    assert (await team.get(f"/emails/{free}")).status_code == 404
    assert await kept(pillarbox, emails=1).purge_emails() == 1


async def test_bodies_go_and_the_rest_stays(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await prepared(pillarbox)
        email = await team.send(html="<p>Ready</p>", attachments=[LARGE, SMALL])
        await pillarbox.turn()
        retention = kept(pillarbox, bodies=7)
        assert await retention.purge_bodies() == 0
        clock_of(pillarbox).advance(8 * DAY)
        assert await retention.purge_bodies() == 1
        assert await retention.purge_bodies() == 0
        shown = await team.email(email)
        assert (shown["html"], shown["text"], shown["subject"]) == (None, None, "Berth 12")
        assert (await team.get(f"/emails/{email}/attachments")).json()["data"] == []
        assert await team.kinds(email) == ["queued", "sent", "delivered"]
        assert files(tmp_path) == 0
        assert (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps == []


async def test_bodies_that_had_to_stay_are_looked_at_again(relayed: tuple[World, Sink]) -> None:
    """A run begins where the last one of this process got to, but not behind what it left."""
    pillarbox, _ = relayed
    team = await prepared(pillarbox)
    late = await team.send(scheduled_at="in 5 days")
    await team.send()
    await pillarbox.turn()
    clock_of(pillarbox).advance(3 * DAY)
    retention = kept(pillarbox, bodies=1)
    assert await retention.purge_bodies() == 1
    clock_of(pillarbox).advance(3 * DAY)
    await pillarbox.turn()
    assert (await team.email(late))["last_event"] == "delivered"
    clock_of(pillarbox).advance(2 * DAY)
    assert await retention.purge_bodies() == 1


async def test_answers_are_kept_for_a_day(pillarbox: World) -> None:
    team = await prepared(pillarbox)
    for number in range(3):
        await team.post("/emails", mail(), idempotency_key=f"key {number}")
    clock_of(pillarbox).advance(timedelta(hours=23))
    await team.post("/emails", mail(), idempotency_key="young")
    assert await collectors.expired_keys(pillarbox.pool, pillarbox.clock.now()) == 0
    clock_of(pillarbox).advance(timedelta(hours=1, seconds=1))
    assert await collectors.expired_keys(pillarbox.pool, pillarbox.clock.now()) == 3
    assert await pillarbox.pool.fetchval("SELECT key FROM idempotency_keys") == "young"


async def test_processes_that_went_silent_long_ago_are_forgotten(pillarbox: World) -> None:
    now = pillarbox.clock.now()
    for owner, age in ((ANOTHER, 2 * DAY), (UUID(int=8), timedelta(minutes=1))):
        await pillarbox.pool.execute(
            "INSERT INTO processes VALUES ($1, 'elsewhere', 1, 1, 'delivery', $2, $2)", owner, now - age
        )
    assert await collectors.dead_processes(pillarbox.pool, now) == 1
    assert await pillarbox.pool.fetchval("SELECT id FROM processes") == UUID(int=8)


def orphans(pillarbox: World, *, days: int = 1, is_ours: bool = True) -> OrphanBlobs:
    app = pillarbox.app
    return OrphanBlobs(app.kit.pool, app.kit.clock, app.need(BlobStore), days=days, is_ours=is_ours)


async def test_blobs_that_nothing_names_are_collected_after_a_day(database_url: str, tmp_path: Path) -> None:
    """Files have the machine's time, so the clock of the test begins there."""
    clock = ManualClock()
    clock.set(clock.now() + timedelta(seconds=max(0.0, time.time() - clock.now().timestamp()) + 5))
    async with manual_world(database_url, tmp_path, clock) as pillarbox:
        team = await prepared(pillarbox)
        await team.send(attachments=[LARGE])
        blobs = pillarbox.app.need(BlobStore)
        await blobs.put("attachments/lost", b"x")
        await blobs.put("elsewhere/other", b"x")
        assert await orphans(pillarbox).collect() == "0 of 0 orphan blobs"
        clock.advance(DAY + timedelta(minutes=1))
        assert await orphans(pillarbox, days=0).collect() == "orphan blobs are kept"
        assert await orphans(pillarbox).collect() == "1 of 1 orphan blobs"
        with pytest.raises(BlobMissing):
            await blobs.get("attachments/lost")
        assert await blobs.get("elsewhere/other") == b"x"
        references = await blob_references.take(pillarbox.pool, blobs, clock.now(), 10, collect=False)
        assert (references.named, references.gaps) == (1, [])


async def test_a_store_that_may_be_shared_is_not_emptied(database_url: str, tmp_path: Path) -> None:
    """Two installations on one bucket: the blobs that this one does not know are the other's."""
    clock = ManualClock()
    clock.set(clock.now() + timedelta(seconds=max(0.0, time.time() - clock.now().timestamp()) + 5))
    async with manual_world(database_url, tmp_path, clock) as pillarbox:
        blobs = pillarbox.app.need(BlobStore)
        await blobs.put("attachments/theirs", b"x")
        clock.advance(2 * DAY)
        result = await orphans(pillarbox, is_ours=False).collect()
        assert result == "0 of 1 orphan blobs, kept because there are more of them than named ones"
        assert await blobs.get("attachments/theirs") == b"x"


async def test_a_periodic_job_is_run_by_one_process_and_runs_again(pillarbox: World) -> None:
    done: list[int] = []

    async def work() -> str:
        done.append(1)
        return "all of it"

    pool, clock, ids = pillarbox.pool, clock_of(pillarbox), pillarbox.app.need(Ids)
    tidy = [Periodic("test.tidy", timedelta(hours=1), work)]
    for _ in range(2):
        await periodic.ensure(pool, tidy, ids, clock)
    handlers = periodic.handlers(tidy, clock)
    processes = [Jobs(pool, clock, owner, handlers) for owner in (ANOTHER, UUID(int=8))]
    for _ in range(3):
        for process in processes:
            await process.look()
            await process.idle()
        clock.advance(timedelta(minutes=59))
    assert len(done) == 3 - 1
    [row] = await pool.fetch("SELECT reason, owner FROM jobs WHERE kind = 'test.tidy'")
    assert tuple(row) == ("all of it", None)


async def test_a_changed_retention_is_followed_within_a_minute(relayed: tuple[World, Sink]) -> None:
    """DUR-15: emails and log rows, without a restart and long before the next hour."""
    pillarbox, _ = relayed
    team, other = await prepared(pillarbox), await pillarbox.team("Quay")
    await other.domain("light.example")
    await team.send()
    await other.send(from_="lamp@light.example")
    await pillarbox.turn()
    clock_of(pillarbox).advance(10 * DAY)
    app = pillarbox.app
    await periodic.ensure(pillarbox.pool, app.need(PeriodicJobs), app.need(Ids), pillarbox.clock)
    await run_until_idle(pillarbox)
    assert (await counts(pillarbox))["emails"] == 2
    await bootstrap.set_limits(pillarbox.pool, team.id, {"email_retention_days": 7, "log_retention_days": 7})
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs WHERE team_id = $1", team.id) > 0
    clock_of(pillarbox).advance(50)
    await run_until_idle(pillarbox)
    assert (await counts(pillarbox))["emails"] == 1
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs WHERE team_id = $1", team.id) == 0


async def test_work_that_depends_on_nothing_new_is_done_at_its_time(pillarbox: World) -> None:
    done: list[int] = []
    setting = [1]

    async def work() -> str:
        done.append(setting[0])
        return "all of it"

    async def settings() -> object:
        return setting[0]

    pool, clock, ids = pillarbox.pool, clock_of(pillarbox), pillarbox.app.need(Ids)
    tidy = [Periodic("test.tidy", timedelta(hours=1), work, depends=settings)]
    await periodic.ensure(pool, tidy, ids, clock)
    jobs = Jobs(pool, clock, ANOTHER, periodic.handlers(tidy, clock))

    async def minutes(count: int) -> list[int]:
        for _ in range(count):
            clock.advance(60)
            await jobs.look()
            await jobs.idle()
        return done

    assert await minutes(59) == [1]
    setting[0] = 2
    assert await minutes(1) == [1, 2]
    assert await minutes(59) == [1, 2]
    assert await minutes(2) == [1, 2, 2]


async def test_a_job_that_ends_its_process_is_left_alone(pillarbox: World) -> None:
    """DUR-13: three deaths behind the first one, and then it is tried once a day; being stopped in order is
    none."""
    begun = asyncio.Event()

    async def work() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    pool, clock = pillarbox.pool, clock_of(pillarbox)
    deadly = [Periodic("test.deadly", timedelta(hours=1), work)]
    await periodic.ensure(pool, deadly, pillarbox.app.need(Ids), clock)
    for number in range(MOST_BEGUN + 2):
        process = Jobs(pool, clock, UUID(int=100 + number), periodic.handlers(deadly, clock))
        assert await process.look() == 1
        await begun.wait()
        await process.stop(0)
    for number in range(MOST_BEGUN + 1):
        process = Jobs(pool, clock, UUID(int=200 + number), periodic.handlers(deadly, clock))
        started = await process.look()
        while not started:
            clock.advance(timedelta(minutes=3))
            started = await process.look()
        assert started == 1
    for _ in range(3):
        clock.advance(timedelta(minutes=3))
        assert await process.look() == 0
    assert await pool.fetchval("SELECT count(*) FROM jobs WHERE kind = 'test.deadly' AND owner IS NULL") == 1


async def settled(pillarbox: World) -> None:
    while await pillarbox.turn():
        pass


async def sizes(conn: asyncpg.Connection, but: set[str]) -> dict[str, int]:
    """Bytes of each relation with its indexes and its toast, after a vacuum such as autovacuum does."""
    await conn.execute("VACUUM")
    rows = await conn.fetch(
        "SELECT relname, pg_total_relation_size(oid) AS size FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
    )
    return {row["relname"]: row["size"] for row in rows if row["relname"] not in but}


async def soak(pillarbox: World, folder: Path, emails: int, count_of_runs: int) -> list[dict[str, int]]:
    """Batches of mail, each delivered and then purged; the sizes after each."""
    team = await prepared(pillarbox)
    body = {**mail(), "to": ["a@quay.example", "b@pier.example"], "html": "<p>" + "x" * 3000}
    found = []
    conn = await asyncpg.connect(pillarbox.app.kit.settings.database_url)
    try:
        for number in range(count_of_runs):
            for first in range(0, emails, 100):
                wanted = [body] * min(100, emails - first)
                answer = await team.post("/emails/batch", wanted, idempotency_key=f"{number} {first}")
                assert answer.status_code == 200
            await team.send(attachments=[LARGE])
            await settled(pillarbox)
            clock_of(pillarbox).advance(2 * DAY)
            assert await collectors.expired_keys(pillarbox.pool, pillarbox.clock.now()) == emails / 100
            assert await kept(pillarbox, emails=1).purge_emails() == emails + 1
            assert set((await counts(pillarbox)).values()) == {0}
            assert files(folder) == 0
            found.append(await sizes(conn, {"metric_increments"}))
    finally:
        await conn.close()
    return found


async def grows_not(database_url: str, folder: Path, emails: int, count_of_runs: int) -> None:
    async with relayed_world(database_url, folder) as (pillarbox, sink):
        found = await soak(pillarbox, folder, emails, count_of_runs)
        assert len(sink.received) == (2 * emails + 1) * count_of_runs
        # Pages that an index gave up are used again only after a while, so the first runs still grow.
        steady = found[2 * count_of_runs // 3 - 1]
        grown = {name: size for name, size in found[-1].items() if size > steady[name] * 1.1 + 65536}
        assert grown == {}


async def test_a_small_soak_leaves_nothing_behind(database_url: str, tmp_path: Path) -> None:
    await grows_not(database_url, tmp_path, emails=BATCH + 100, count_of_runs=3)


@pytest.mark.slow
async def test_a_large_soak_leaves_nothing_behind(database_url: str, tmp_path: Path) -> None:
    await grows_not(database_url, tmp_path, emails=1000, count_of_runs=9)


async def test_settling_writes_no_index(database_url: str, tmp_path: Path) -> None:
    """The fate columns have no index and the pages keep free space, so new versions stay on their page
    (HOT)."""
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await prepared(pillarbox)
        for _ in range(5):
            assert (await team.post("/emails/batch", [mail()] * 100)).status_code == 200
        await settled(pillarbox)
    found = await updates(database_url, 500)
    assert {name: hot > 0.9 * all_ for name, (all_, hot) in found.items()} == {
        "emails": True,
        "recipients": True,
    }, found


async def updates(url: str, least: int) -> dict[str, tuple[int, int]]:
    """Updates and HOT updates of the two tables. A backend reports its statistics when it ends."""
    conn = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(10):
            while True:
                rows = await conn.fetch(
                    "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables "
                    "WHERE relname IN ('emails', 'recipients')"
                )
                found = {row["relname"]: (row["n_tup_upd"], row["n_tup_hot_upd"]) for row in rows}
                if all(count >= least for count, _ in found.values()):
                    return found
                await asyncio.sleep(0.05)
    finally:
        await conn.close()
