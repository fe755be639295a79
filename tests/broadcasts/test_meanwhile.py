"""What happens to a broadcast between its sending and its last copy."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from kit.audience import a_contact, some_contacts
from kit.broadcast_rows import a_broadcast, copies_of
from kit.broadcasts import crew, made, recipients, sent, status_of
from kit.brought import INVARIANTS
from kit.manual_world import clock_of, relayed_world, run_jobs
from kit.world import World
from pillarbox.broadcasts import watch_queries
from pillarbox.delivery.queue import overview_queries
from pillarbox.delivery.queue.dropping import drop
from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.delivery.queue.queue_limit import QueueLimit
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.emails.retention import EmailRetention
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.timeline.record import Timeline

URL = "https://mail.harbor.example"
LATER = "451 4.7.1 later"

CHANGES = {
    "deleted": "DELETE FROM api_keys WHERE id = (SELECT key_id FROM broadcasts)",
    "of nobody in the team": (
        "UPDATE api_keys SET created_by = gen_random_uuid() WHERE id = (SELECT key_id FROM broadcasts)"
    ),
    "suspended": "UPDATE api_keys SET status = 'suspended' WHERE id = (SELECT key_id FROM broadcasts)",
}


async def sound(pillarbox: World) -> None:
    """`pillarbox verify` finds no gap."""
    found = await reconcile(pillarbox.pool, 10, INVARIANTS)
    assert found.gaps == []


async def look(pillarbox: World) -> None:
    clock_of(pillarbox).advance(2)
    await run_jobs(pillarbox)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_scheduled", [False, True])
async def test_the_key_that_scheduled_it_must_still_be_active(
    pillarbox: World, change: str, is_scheduled: bool
) -> None:
    """As with mail: what a key has scheduled is not sent once it is taken away; what was sent at once is."""
    team = await pillarbox.team()
    broadcast_id = await made(team)
    other = team.using(await team.key())
    body = {"scheduled_at": "in 1 minute"} if is_scheduled else {}
    assert (await other.post(f"/broadcasts/{broadcast_id}/send", body)).status_code == 200
    await pillarbox.pool.execute(CHANGES[change])
    clock_of(pillarbox).advance(61)
    await run_jobs(pillarbox)
    assert await status_of(team, broadcast_id) == ("failed" if is_scheduled else "queued")
    assert len(await recipients(team, broadcast_id)) == (0 if is_scheduled else 3)


async def test_two_that_begin_together_do_not_promise_the_same_quota(pillarbox: World) -> None:
    team = await pillarbox.team()
    await pillarbox.pool.execute("UPDATE teams SET daily_quota = 4")
    both = [await made(team, await crew(team, 3)) for _ in range(2)]
    for broadcast_id in both:
        await sent(team, broadcast_id)
    await run_jobs(pillarbox)
    found = Counter([await status_of(team, broadcast_id) for broadcast_id in both])
    assert found == {"queued": 1, "failed": 1}


async def test_a_paused_one_stays_paused_when_all_copies_are_made(database_url: str, tmp_path: Path) -> None:
    """The copies that wait for another attempt wait until it is resumed."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        broadcast_id = await made(team)
        await sent(team, broadcast_id)
        await run_jobs(pillarbox)
        sink.script("RCPT", LATER, LATER, LATER)
        await pillarbox.turn()
        assert await watch_queries.pause(team.db, UUID(broadcast_id), "Stop", pillarbox.clock.now())
        await look(pillarbox)
        clock_of(pillarbox).advance(300)
        await pillarbox.turn()
        assert sink.received == []
        assert await pillarbox.pool.fetchval("SELECT paused_for FROM broadcasts") == "Stop"
        assert await watch_queries.resume(team.db, UUID(broadcast_id), pillarbox.clock.now())
        await look(pillarbox)
        clock_of(pillarbox).advance(300)
        await pillarbox.turn()
        await sink.messages(3)
        assert await status_of(team, broadcast_id) == "sent"
        await sound(pillarbox)


async def test_emails_of_a_paused_one_may_be_over_their_time(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        broadcast_id = await made(team, await crew(team, 130))
        await sent(team, broadcast_id)
        await run_jobs(pillarbox)
        await pillarbox.turn()
        await sink.messages(100)
        assert await watch_queries.pause(team.db, UUID(broadcast_id), "Stop", pillarbox.clock.now())
        clock_of(pillarbox).advance(timedelta(days=40))
        removed = await EmailRetention(
            pillarbox.pool, pillarbox.clock, pillarbox.app.need(BlobStore), emails=30, bodies=7
        ).purge_emails()
        assert removed >= 100
        await sound(pillarbox)


async def test_one_that_is_broken_does_not_hold_up_the_others(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        people = await some_contacts(team, 3)
        broken = await a_broadcast(team, people)
        await pillarbox.pool.execute("DELETE FROM contents")
        good = [await a_broadcast(team, people) for _ in range(2)]
        for _ in range(3):
            await pillarbox.turn()
        await sink.messages(6)
        for broadcast in good:
            assert [one["last_event"] for one in await copies_of(team, broadcast)] == ["delivered"] * 3
        assert [one["email_id"] for one in await copies_of(team, broken)] == [None] * 3


@pytest.mark.parametrize("change", ["cancel", "unsubscribe"])
async def test_a_copy_that_was_refused_for_now_ends_soundly(
    database_url: str, tmp_path: Path, change: str
) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        broadcast = await made(team, await crew(team, 1))
        await sent(team, broadcast)
        await run_jobs(pillarbox)
        [ada] = await recipients(team, broadcast)
        sink.script("RCPT", LATER)
        await pillarbox.turn()
        if change == "cancel":
            await team.post(f"/broadcasts/{broadcast}/cancel")
        else:
            await team.call("PATCH", f"/contacts/{ada}", {"unsubscribed": True})
        clock_of(pillarbox).advance(300)
        await pillarbox.turn()
        [copy] = await copies_of(team, UUID(broadcast))
        assert (copy["last_event"], sink.received) == ("canceled", [])
        assert await team.kinds(str(copy["email_id"])) == ["queued", "sent", "delivery_delayed", "canceled"]
        await look(pillarbox)
        await sound(pillarbox)


@pytest.mark.parametrize("command", ["show", "retry", "drop"])
async def test_the_queue_of_a_destination_has_its_copies(
    database_url: str, tmp_path: Path, command: str
) -> None:
    """`pillarbox queue … --domain quay.example`: copies go there as other mail does."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        broadcast = await a_broadcast(team, [await a_contact(team, "ada@quay.example")])
        sink.script("RCPT", LATER)
        await pillarbox.turn()
        now, pool = pillarbox.clock.now(), pillarbox.pool
        part, other = QueueFilter(destination="quay.example"), QueueFilter(destination="orchard.example")
        if command == "show":
            assert (await overview_queries.totals(pool, part, now)).items == 1
            assert (await overview_queries.totals(pool, other, now)).items == 0
            [group] = await overview_queries.queue_groups(pool, part, now, 5)
            assert group.items == 1
        elif command == "retry":
            assert await overview_queries.retry_now(pool, other, now) == 0
            assert await overview_queries.retry_now(pool, part, now) == 1
            await pillarbox.turn()
            await sink.messages(1)
        else:
            timeline = pillarbox.app.need(Timeline)
            assert await drop(pool, timeline, other, pillarbox.clock.now) == 0
            assert await drop(pool, timeline, part, pillarbox.clock.now) == 1
            assert [one["last_event"] for one in await copies_of(team, broadcast)] == ["failed"]


async def test_copies_leave_room_in_the_queue(database_url: str, tmp_path: Path) -> None:
    """Those to a server that is down wait in the queue until it is nearly full; other mail is still taken,
    and when there is room again they go on."""
    async with relayed_world(database_url, tmp_path, public_url=URL, queue_limit="100") as (pillarbox, sink):
        team, limit = await pillarbox.team(), pillarbox.app.need(QueueLimit)
        await team.domain()
        people = await some_contacts(team, 190)
        broadcast = await a_broadcast(team, people)
        sink.script("RCPT", then=LATER)
        await pillarbox.turn()
        await limit.look()
        waiting = await pillarbox.pool.fetchval("SELECT count(*) FROM deliveries")
        assert 80 < waiting <= 100
        await pillarbox.turn()
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM deliveries") == waiting
        email = await team.send()
        sink.script("RCPT")
        for _ in range(6):
            clock_of(pillarbox).advance(300)
            await pillarbox.turn()
            await limit.look()
        await sink.messages(191)
        assert (await team.kinds(email))[-1] == "delivered"
        assert {one["last_event"] for one in await copies_of(team, broadcast)} == {"delivered"}
