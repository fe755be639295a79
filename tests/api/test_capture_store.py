"""Keeping mail in the settling transaction, removing it again, and waiting for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.captured import CaptureWorld, capture_world, settled
from pillarbox.capture import arrivals
from pillarbox.capture.arrivals import CHANNEL, Arrivals, Filters
from pillarbox.capture.store import INLINE
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.postgres.notify import NotifyListener
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.mail.message.compose import OutgoingFile

PAGE = Page(20)
LARGE = OutgoingFile("map.bin", "application/octet-stream", bytes(range(256)) * 2048)


async def stored_blobs(world: CaptureWorld) -> list[str]:
    later = datetime.now(UTC) + timedelta(hours=1)
    return [key async for key in world.blobs.list("captured", later)]


async def test_an_email_of_several_groups_is_one_mail_with_all_recipients(capture: CaptureWorld) -> None:
    team, email = uuid4(), uuid4()
    await capture.keeps(
        settled(team, email, to=["b@quay.example", "a@quay.example"]),
        settled(team, email, to=["c@dock.example", "a@quay.example"], grp=1),
    )
    await capture.keeps(settled(team, email, to=["d@pier.example", "b@quay.example"], grp=2))
    row = await capture.row("SELECT * FROM captured")
    assert row["recipients"] == ["b@quay.example", "a@quay.example", "c@dock.example", "d@pier.example"]
    assert (row["team_id"], row["email_id"]) == (team, email)
    assert (row["sender"], row["subject"]) == ("Harbor <notes@harbor.example>", "Berth 12")
    assert row["mail_from"] == "token@send.harbor.example"
    assert row["size"] == len(row["data"])
    assert row["blob"] is None


async def test_a_batch_holds_mails_of_several_teams(capture: CaptureWorld) -> None:
    email = uuid4()
    await capture.keeps(*[settled(uuid4(), email, subject=f"Team {n}") for n in range(30)])
    rows = await capture.http_server.pool.fetch("SELECT subject FROM captured ORDER BY id")
    assert [row["subject"] for row in rows] == [f"Team {n}" for n in range(30)]


async def test_a_large_mail_is_in_the_blob_store_once(capture: CaptureWorld) -> None:
    team, email = uuid4(), uuid4()
    first = settled(team, email, attachments=[LARGE])
    assert first.report is not None
    assert len(first.report.captured or b"") > INLINE
    await capture.keeps(first)
    await capture.keeps(settled(team, email, to=["b@dock.example"], attachments=[LARGE], grp=1))
    row = await capture.row("SELECT id, data, blob, recipients FROM captured")
    assert row["data"] is None
    assert row["blob"] == f"captured/{row['id']}"
    assert row["recipients"] == ["ada@quay.example", "b@dock.example"]
    assert await stored_blobs(capture) == [row["blob"]]
    assert await capture.blobs.get(row["blob"]) == first.report.captured


async def test_a_transaction_that_fails_keeps_nothing(capture: CaptureWorld) -> None:

    async def fail() -> None:
        async with transaction(capture.http_server.pool) as conn:
            await capture.capture.keep(conn, [settled(uuid4(), uuid4())])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await capture.http_server.pool.fetchval("SELECT count(*) FROM captured") == 0


async def test_what_the_carrier_wants_done_after_the_commit_is_still_done(capture: CaptureWorld) -> None:
    given_back = []
    settlement = settled(uuid4(), uuid4())
    assert settlement.report is not None
    settlement.report.on_settled = lambda: given_back.append("connection")
    await capture.keeps(settlement)
    assert given_back == ["connection"]


async def test_beyond_the_limit_the_oldest_mails_go_with_their_blobs(
    database_url: str, tmp_path: Path
) -> None:
    async with capture_world(database_url, tmp_path, limit=INLINE * 5) as world:
        large = [await world.mail(subject=f"Large {n}", attachments=[LARGE]) for n in range(3)]
        small = await world.mail(subject="Small")
        assert await world.capture.trim() == 2
        rows = await world.http_server.pool.fetch("SELECT email_id, blob, size FROM captured ORDER BY id")
        assert [row["email_id"] for row in rows] == [large[2], small]
        assert sum(row["size"] for row in rows) <= INLINE * 5
        assert await stored_blobs(world) == [rows[0]["blob"]]
        assert await world.capture.trim() == 0


async def test_the_limit_is_kept_in_the_background(database_url: str, tmp_path: Path) -> None:
    async with capture_world(database_url, tmp_path, limit=INLINE) as world:
        await world.mail(attachments=[LARGE])
        await world.capture.start()
        async with asyncio.timeout(10):
            # The blob goes after its row.
            while await stored_blobs(world):
                await asyncio.sleep(0.01)
        assert await world.http_server.pool.fetchval("SELECT count(*) FROM captured") == 0


async def test_clearing_removes_rows_and_blobs(capture: CaptureWorld) -> None:
    await capture.mail(attachments=[LARGE])
    await capture.mail()
    assert await capture.capture.clear() == 2
    assert await capture.capture.clear() == 0
    assert await stored_blobs(capture) == []


async def test_whoever_waits_gets_the_mail_when_it_arrives(capture: CaptureWorld) -> None:
    waiter = asyncio.create_task(capture.capture.arrivals.wait(Filters(to="ada@quay.example"), PAGE, 30))
    await capture.mail(to=["someone@else.example"])
    email = await capture.mail()
    found = await asyncio.wait_for(waiter, 5)
    assert [row.email_id for row in found] == [email]


async def test_a_mail_that_is_here_already_is_not_waited_for(capture: CaptureWorld) -> None:
    email = await capture.mail()
    found = await asyncio.wait_for(capture.capture.arrivals.wait(Filters(), PAGE, 30), 5)
    assert [row.email_id for row in found] == [email]


async def test_a_mail_of_another_process_wakes_who_waits(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "LOOK_EVERY", 60.0)
    async with capture_world(database_url, tmp_path) as world:
        listening = asyncio.Event()
        here = Arrivals(world.http_server.pool, SystemClock())

        def heard() -> None:
            here.wake_waiting()
            listening.set()

        ear = NotifyListener(database_url, CHANNEL, heard)
        await ear.start()
        await asyncio.wait_for(listening.wait(), 10)
        waiter = asyncio.create_task(here.wait(Filters(), PAGE, 50))
        email = await world.mail()
        assert [row.email_id for row in await asyncio.wait_for(waiter, 10)] == [email]
        await ear.stop()


async def test_without_any_notification_the_mail_is_found_within_a_second(capture: CaptureWorld) -> None:
    other = Arrivals(capture.http_server.pool, SystemClock())
    waiter = asyncio.create_task(other.wait(Filters(), PAGE, 30))
    await capture.mail()
    assert len(await asyncio.wait_for(waiter, 5)) == 1


async def test_waiting_ends_with_its_time_and_with_the_process(capture: CaptureWorld) -> None:
    arrivals = capture.capture.arrivals
    assert await asyncio.wait_for(arrivals.wait(Filters(), PAGE, 0.05), 5) == []
    waiter = asyncio.create_task(arrivals.wait(Filters(), PAGE, 60))
    arrivals.close()
    assert await asyncio.wait_for(waiter, 5) == []


async def test_only_so_many_may_wait(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_WAITING", 0)
    async with capture_world(database_url, tmp_path) as world:
        with pytest.raises(ServerOverloaded):
            await world.capture.arrivals.wait(Filters(), PAGE, 10)


FOUND: list[tuple[Filters, set[str]]] = [
    (Filters(to="ada@quay.example"), {"plain"}),
    (Filters(to="ADA@Quay.Example"), {"plain"}),
    (Filters(to="da@quay.example"), set()),
    (Filters(to="@quay.example"), {"plain", "like"}),
    (Filters(to="a%a@quay.example"), set()),
    (Filters(to="a_a@quay.example"), {"like"}),
    (Filters(sender="notes@harbor.example"), {"plain"}),
    (Filters(sender="harbor"), {"plain"}),
    (Filters(sender="es@harbor.example"), set()),
    (Filters(sender="other@sea.example"), {"like"}),
    (Filters(subject="100%"), {"like"}),
    (Filters(subject="%"), {"like"}),
    (Filters(subject="\\"), set()),
    (Filters(anything="BERTH"), {"plain"}),
    (Filters(anything="sea.example"), {"like"}),
    (Filters(anything="a_a"), {"like"}),
    (Filters(to="ada@quay.example", subject="nothing"), set()),
    (Filters(), {"plain", "like"}),
]


async def test_filters_compare_without_case_and_without_wildcards(capture: CaptureWorld) -> None:
    """API-08."""
    like = {"to": ["a_a@quay.example"], "subject": "100% done", "sender": "other@sea.example"}
    names: dict[UUID, str] = {await capture.mail(): "plain", await capture.mail(**like): "like"}
    for filters, expected in FOUND:
        rows = await capture.capture.arrivals.find(filters, PAGE)
        assert {names[row.email_id] for row in rows} == expected, filters
