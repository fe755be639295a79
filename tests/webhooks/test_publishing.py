"""What is published to webhooks, in which transaction, and what it costs (WH-02, DUR-02; architecture
2.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from kit.manual_world import clock_of, manual_world
from kit.webhooks import hook, publish
from kit.world import World
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, after_commit, transaction
from pillarbox.kernel.process import faults
from pillarbox.timeline.announcing import EmailEventPublisher
from pillarbox.timeline.record import PublishedEvent, Timeline
from pillarbox.timeline.rules import EventKind, TimelineEntry
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.publish import Publisher, WebhookEvent

TABLES = ("webhook_events", "webhook_deliveries", "webhook_outcomes", "webhook_attempts")
EMAIL_KINDS = [kind for kind in KINDS if kind.startswith("email.")]


async def rows(pillarbox: World) -> dict[str, int]:
    return {table: await pillarbox.pool.fetchval(f"SELECT count(*) FROM {table}") for table in TABLES}


async def test_without_webhooks_nothing_is_written(pillarbox: World) -> None:
    team, other = await pillarbox.team(), await pillarbox.team("Quay")
    await hook(other, *KINDS)
    unwanted = await hook(team, "domain.deleted", "email.received")
    await unwanted.change(status="disabled")
    await team.domain()
    await team.send(to=["ada@quay.example", "bounced@pillarbox.test"])
    await pillarbox.turn()
    await publish(team, *KINDS)
    assert set((await rows(pillarbox)).values()) == {0}
    await unwanted.change(status="enabled")
    await team.send()
    await pillarbox.turn()
    assert set((await rows(pillarbox)).values()) == {0}


async def test_the_hook_is_not_even_called_for_a_team_that_wants_nothing(pillarbox: World) -> None:
    """The statement that appends the history returns that nobody subscribes: no statement more."""
    team = await pillarbox.team()
    email = UUID(await team.send())
    app = pillarbox.app
    published: list[EventKind] = []

    class Recording(EmailEventPublisher):
        async def publish(self, conn: Connection, events: Sequence[PublishedEvent]) -> None:
            published.extend(event.kind for event in events)

    listening = Timeline(app.need(Ids), Recording(app.need(Publisher)))

    async def record(kind: EventKind) -> None:
        async with transaction(pillarbox.pool) as conn:
            await listening.record(
                conn,
                [
                    TimelineEntry(
                        team_id=team.id, email_id=email, position=0, kind=kind, at=app.kit.clock.now()
                    )
                ],
            )

    await hook(await pillarbox.team("Quay"), *KINDS)
    await record(EventKind.SENT)
    assert published == []
    made = await hook(team, "email.delivered")
    await record(EventKind.DELIVERED)
    await record(EventKind.OPENED)
    assert published == [EventKind.DELIVERED]
    await made.change(status="disabled")
    await record(EventKind.COMPLAINED)
    assert published == [EventKind.DELIVERED]
    await pillarbox.turn()


async def test_every_mail_is_published_however_its_end_is_written(pillarbox: World) -> None:
    """The first end after a change meets a webhook that nobody knew of; later ones are written with what they
    tell."""
    team, other = await pillarbox.team(), await pillarbox.team("Quay")

    async def sent(count: int) -> None:
        for _ in range(count):
            await asyncio.gather(team.send(), other.send(), team.send())
            await pillarbox.turn()

    await sent(2)
    made = await hook(team, "email.delivered")
    await sent(3)
    assert await made.kinds() == ["email.delivered"] * 6
    both = await hook(team, "email.sent", "email.delivered")
    await sent(1)
    assert await made.kinds() == ["email.delivered"] * 8
    assert sorted(await both.kinds()) == ["email.delivered"] * 2 + ["email.sent"] * 2
    await made.change(status="disabled")
    await sent(1)
    assert len(await both.kinds()) == 8
    answer = await team.call("DELETE", f"/webhooks/{both.id}")
    assert answer.status_code == 200
    await sent(1)
    elsewhere = await hook(other, "email.sent")
    await sent(2)
    assert await elsewhere.kinds() == ["email.sent"] * 2
    async with pillarbox.pool.acquire() as conn:
        counts = await conn.fetch("SELECT kind, count(*) FROM timeline GROUP BY 1 ORDER BY 1")
    assert [tuple(row) for row in counts] == [(kind, 30) for kind in ("delivered", "queued", "sent")]


async def test_one_event_has_one_id_for_all_webhooks_of_a_team(pillarbox: World) -> None:
    team = await pillarbox.team()
    first, second = await hook(team, "domain.updated"), await hook(team, "domain.updated", "email.sent")
    await publish(team, name="harbor.example")
    assert await first.events() == await second.events()
    assert await first.payloads() == await second.payloads()
    await team.send()
    await pillarbox.turn()
    assert await first.kinds() == ["domain.updated"]
    assert await second.kinds() == ["domain.updated", "email.sent"]
    assert (await rows(pillarbox))["webhook_events"] == 1


async def test_what_happened_before_is_not_delivered(pillarbox: World) -> None:
    team = await pillarbox.team()
    early = await hook(team)
    await publish(team)
    late = await hook(team)
    await publish(team)
    assert len(await early.events()) == 2
    assert await late.events() == (await early.events())[1:]


async def test_a_transaction_that_is_rolled_back_leaves_no_event(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "domain.updated", "email.delivered")
    email = UUID(await team.send())
    app = pillarbox.app
    woken: list[int] = []

    async def stumble() -> None:
        async with transaction(pillarbox.pool) as conn:
            await app.need(Publisher).publish(
                conn, [WebhookEvent(team.id, "domain.updated", app.kit.clock.now(), {})]
            )
            entry = TimelineEntry(
                team_id=team.id, email_id=email, position=0, kind=EventKind.DELIVERED, at=app.kit.clock.now()
            )
            assert await app.need(Timeline).record(conn, [entry]) == [entry]
            after_commit(conn, lambda: woken.append(1))
            raise LookupError

    with pytest.raises(LookupError):
        await stumble()
    assert await made.events() == []
    assert woken == []
    async with transaction(pillarbox.pool) as conn:
        after_commit(conn, lambda: woken.append(2))
        assert woken == []
    assert woken == [2]
    await pillarbox.turn()


async def test_the_dispatcher_is_woken_after_the_commit_and_only_for_work(pillarbox: World) -> None:
    team = await pillarbox.team()
    app = pillarbox.app
    woken: list[str] = []
    publisher = Publisher(app.need(Ids), lambda: woken.append("woken"))
    event = WebhookEvent(team.id, "domain.updated", app.kit.clock.now(), {})
    async with transaction(pillarbox.pool) as conn:
        await publisher.publish(conn, [event])
    assert woken == []
    await hook(team)
    async with transaction(pillarbox.pool) as conn:
        for _ in range(3):
            await publisher.publish(conn, [event])
        assert woken == []
    assert woken == ["woken"]


async def test_an_accept_that_fails_at_the_rows_leaves_neither_email_nor_event(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, *EMAIL_KINDS)
    with faults.armed("webhooks.rows=raise"):
        answer = await team.post(
            "/emails",
            {
                "from": "a@harbor.example",
                "to": "b@quay.example",
                "subject": "x",
                "text": "y",
                "scheduled_at": "in 1 hour",
            },
        )
    assert answer.status_code == 500
    assert await team.db.value("SELECT count(*) FROM emails WHERE team_id = $1") == 0
    assert await made.events() == []


async def test_listeners_get_rows_that_are_never_due(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "domain.updated", "email.delivered")
    await pillarbox.pool.execute("UPDATE webhooks SET kind = 'listener' WHERE id = $1", UUID(made.id))
    await publish(team)
    await team.send()
    await pillarbox.turn()
    due = await pillarbox.pool.fetch("SELECT kind, due_at = 'infinity' AS never FROM webhook_deliveries")
    assert {(row["kind"], row["never"]) for row in due} == {
        ("domain.updated", True),
        ("email.delivered", True),
    }


async def test_thousands_of_events_are_one_statement(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    seen: list[str] = []
    app = pillarbox.app
    events = [WebhookEvent(team.id, "domain.updated", app.kit.clock.now(), {"at": at}) for at in range(3000)]
    async with transaction(pillarbox.pool) as conn:
        conn._con.add_query_logger(lambda query: seen.append(query.query))
        await app.need(Publisher).publish(conn, events)
    assert len([query for query in seen if "INSERT" in query]) == 1
    assert len(await made.owed()) == 3000


async def test_a_move_of_time_is_the_only_order_there_is(pillarbox: World) -> None:
    """Events of one webhook are due in the order in which they happened."""
    team = await pillarbox.team()
    made = await hook(team)
    for at in range(5):
        clock_of(pillarbox).advance(1)
        await publish(team, at=at)
    dues = [row["due_at"] for row in await made.owed()]
    assert dues == sorted(dues)
    assert [body["data"]["at"] for body in await made.payloads()] == list(range(5))


async def test_only_the_tables_of_webhooks_are_written(database_url: str, tmp_path: Path) -> None:
    """Publishing for one team locks nothing that an accept of another needs."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        made = await hook(team)
        watching = await asyncpg.connect(database_url)
        try:
            async with transaction(pillarbox.pool) as conn:
                app = pillarbox.app
                await app.need(Publisher).publish(
                    conn, [WebhookEvent(team.id, "domain.updated", app.kit.clock.now(), {})]
                )
                await watching.execute("SET lock_timeout = '200ms'")
                await watching.execute(
                    "UPDATE webhooks SET last_status_code = 200 WHERE team_id = $1", team.id
                )
        finally:
            await watching.close()
        assert len(await made.events()) == 1
