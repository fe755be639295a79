"""Holding mail back, letting it go, giving it up (issue 3, queue control)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from kit.brought import INVARIANTS
from kit.manual_world import clock_of, parsed
from kit.smtp_sink import USUAL, Sink
from kit.world import Team, World
from pillarbox.delivery.items import EVERY_TEAM
from pillarbox.delivery.plugin import CHANNEL
from pillarbox.delivery.queue import dropping, overview_queries, pausing_queries
from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.queue.pausing_queries import EVERYWHERE, PausedScope, PauseScope
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.postgres.notify import notify_processes
from pillarbox.timeline.plugin import timeline_of

ANOTHER = UUID(int=7)


async def prepared(pillarbox: World, name: str = "Harbor") -> Team:
    team = await pillarbox.team(name)
    await team.domain()
    return team


async def hold(pillarbox: World, scope: PauseScope, reason: str | None = None) -> None:
    await pausing_queries.pause(pillarbox.pool, scope, reason, pillarbox.clock.now())


async def waits(pillarbox: World) -> list[str]:
    """The destinations of all work that nobody holds."""
    rows = await pillarbox.pool.fetch("SELECT destination FROM deliveries WHERE owner IS NULL ORDER BY 1")
    return [row["destination"] for row in rows]


def subjects(sink: Sink) -> set[str]:
    return {str(parsed(message)["subject"]) for message in sink.received}


@pytest.mark.parametrize(
    ("by_team", "destination", "held"),
    [
        (True, "quay.example", {"mine quay"}),
        (True, EVERYWHERE, {"mine quay", "mine pier"}),
        (False, "quay.example", {"mine quay", "theirs quay"}),
        (False, EVERYWHERE, {"mine quay", "mine pier", "theirs quay"}),
    ],
)
async def test_what_is_in_a_paused_scope_waits_and_the_rest_leaves(
    relayed: tuple[World, Sink], by_team: bool, destination: str, held: set[str]
) -> None:
    pillarbox, sink = relayed
    mine = await prepared(pillarbox)
    theirs = await pillarbox.team("Lighthouse")
    await theirs.domain("light.example")
    scope = PauseScope(mine.id if by_team else EVERY_TEAM, destination)
    await hold(pillarbox, scope)
    await mine.send(subject="mine quay", to=["a@quay.example"])
    await mine.send(subject="mine pier", to=["a@pier.example"])
    await theirs.send(subject="theirs quay", to=["a@quay.example"], from_="x@light.example")
    await pillarbox.turn()
    everything = {"mine quay", "mine pier", "theirs quay"}
    assert subjects(sink) == everything - held
    assert await pillarbox.turn() == 0
    await pausing_queries.resume(pillarbox.pool, scope)
    await pillarbox.turn()
    assert subjects(sink) == everything


async def test_the_queue_says_what_is_paused(relayed: tuple[World, Sink]) -> None:
    pillarbox, _ = relayed
    team = await prepared(pillarbox)
    await hold(pillarbox, PauseScope(team.id, "quay.example"))
    email = await team.send()
    clock_of(pillarbox).advance(1)
    found = await overview_queries.totals(pillarbox.pool, QueueFilter(), pillarbox.clock.now())
    assert (found.paused, found.due) == (1, 0)
    [item] = await overview_queries.items_of(pillarbox.pool, team.id, UUID(email), pillarbox.clock.now())
    assert (item.condition, item.next_attempt_at) == ("paused", None)


async def test_accepted_mail_of_a_paused_scope_is_not_handed_over(running: World) -> None:
    """The engine of the accepting process does not even get it; a resume works at once."""
    team = await running.team()
    scope = PauseScope(team.id, "quay.example")
    await hold(running, scope)
    await running.app.need(Pauses).refresh()
    email = await team.send(to=["ada@quay.example", "bob@pier.example"])
    assert (await team.email(email))["last_event"] in ("queued", "sent", "delivered")
    async with asyncio.timeout(10):
        while await waits(running) != ["quay.example"]:
            await asyncio.sleep(0.01)
    paused = "SELECT attempt FROM deliveries WHERE team_id = $1 AND destination = 'quay.example'"
    assert await team.db.value(paused) == 0
    await pausing_queries.resume(running.pool, scope)
    await notify_processes(running.pool, CHANNEL)
    async with asyncio.timeout(10):
        while await waits(running) or running.engine.items_in_memory:
            await asyncio.sleep(0.01)
    assert await team.kinds(email) == ["queued", "sent", "delivered", "sent", "delivered"]


async def test_what_a_process_has_in_memory_is_given_back_at_its_turn(relayed: tuple[World, Sink]) -> None:
    """Mail that is on the wire is finished; nothing is lost or doubled, and no window has begun."""
    pillarbox, sink = relayed
    gate = asyncio.Event()
    sink.script("RCPT", then=(gate, USUAL))
    team = await prepared(pillarbox)
    for number in range(30):
        await team.send(subject=f"mail {number}")
    clock_of(pillarbox).advance(0.001)
    assert await pillarbox.engine.look() == 30
    await sink.commands("RCPT")
    await hold(pillarbox, PauseScope(team.id))
    await pillarbox.app.need(Pauses).refresh()
    gate.set()
    await pillarbox.engine.idle()
    left = len(await waits(pillarbox))
    assert left + len(sink.received) == 30
    assert 0 < len(sink.received) < 30
    assert await team.db.value("SELECT count(first_attempt_at) FROM deliveries WHERE team_id = $1") == 0
    await pausing_queries.resume(pillarbox.pool, PauseScope(team.id))
    while await pillarbox.turn():
        pass
    assert len(sink.received) == 30
    assert len(subjects(sink)) == 30


async def test_a_pause_that_exists_takes_a_new_reason_and_keeps_its_time(relayed: tuple[World, Sink]) -> None:
    pillarbox, _ = relayed
    begun = pillarbox.clock.now()
    assert await pausing_queries.pause(pillarbox.pool, PauseScope(), "new relay", begun)
    later = begun + timedelta(hours=1)
    assert not await pausing_queries.pause(pillarbox.pool, PauseScope(), None, later)
    assert await pausing_queries.listed(pillarbox.pool) == [PausedScope(PauseScope(), "new relay", begun)]
    assert not await pausing_queries.pause(pillarbox.pool, PauseScope(), "broken relay", later)
    assert [found.reason for found in await pausing_queries.listed(pillarbox.pool)] == ["broken relay"]
    assert await pausing_queries.resume_all(pillarbox.pool) == 1


async def test_a_drop_ends_what_waits_and_leaves_what_is_held(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    sink.script("RCPT", "451 4.3.0 later")
    team = await prepared(pillarbox)
    delayed = await team.send()
    await pillarbox.turn()
    due = await team.send(to=["ada@quay.example", "bob@quay.example"])
    scheduled = await team.send(scheduled_at="in 2 hours")
    held = await team.send()
    other = await team.send(to=["ada@pier.example"])
    await team.db.run("UPDATE deliveries SET uncertain = 1 WHERE team_id = $1 AND email_id = $2", UUID(due))
    await team.db.run(
        "UPDATE deliveries SET owner = $2, leased_until = $3 WHERE team_id = $1 AND email_id = $4",
        ANOTHER,
        pillarbox.clock.now() + timedelta(seconds=30),
        UUID(held),
    )
    clock_of(pillarbox).advance(1)
    part = QueueFilter(team.id, "quay.example")
    done = await dropping.drop(
        pillarbox.pool, timeline_of(pillarbox.clock), part, pillarbox.clock.now, batch=2
    )
    assert done == 3
    for email in (delayed, due, scheduled):
        assert (await team.email(email))["last_event"] == "failed"
        assert (await team.events(email))[-1]["reason"] == "dropped_by_operator"
        assert (await team.events(email))[-1]["uncertain"] is (email == due)
    assert [event["event"] for event in await team.events(due)].count("failed") == 2
    assert (await team.email(held))["last_event"] == "queued"
    assert (await team.email(other))["last_event"] == "queued"
    assert (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps == []
    await pillarbox.turn()
    assert len(sink.received) == 1
