"""Mail that crashes processes is quarantined, and the rest goes on (DUR-13)."""

from __future__ import annotations

import asyncio
from uuid import UUID

from kit.manual_world import clock_of, parsed
from kit.smtp_sink import USUAL, Sink
from kit.world import Team, World
from pillarbox.delivery.items import Item
from pillarbox.delivery.lease_expiry import CONFIRM_SECONDS
from pillarbox.delivery.queries import ClaimShare
from pillarbox.delivery.queue import overview_queries, quarantine
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.overview import QueueFilter

LEASE = 31
PAUSE = 301
"""Longer than a suspect waits for its next attempt."""


async def prepared(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await team.domain()
    return team


async def taken(pillarbox: World) -> list[Item]:
    """Claim all that is due, as a process does that is going to die."""
    clock_of(pillarbox).advance(0.001)
    claims = pillarbox.app.need(ItemClaims)
    return [item for pair in await claims.due() for item in await claims.claim([ClaimShare(pair, 50)])]


async def dies_with(pillarbox: World, poison: str) -> None:
    """A process takes everything, begins with one email and ends in the middle of it."""
    claims = pillarbox.app.need(ItemClaims)
    clock_of(pillarbox).advance(PAUSE)
    for item in await taken(pillarbox):
        if item.uncertain and str(item.email_id) == poison:
            assert await claims.begin(item)
    clock_of(pillarbox).advance(LEASE)
    await claims.recover()
    clock_of(pillarbox).advance(CONFIRM_SECONDS)
    await claims.recover()


def subjects(sink: Sink) -> list[str]:
    return [str(parsed(message)["subject"]) for message in sink.received]


async def test_an_email_that_ends_three_processes_is_put_aside(relayed: tuple[World, Sink]) -> None:
    """DUR-13: after the loss that makes it a suspect. Those that were in memory with it never began."""
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    poison = await team.send(subject="poison")
    await team.send(subject="innocent")
    for _ in range(1 + 3):
        await dies_with(pillarbox, poison)
    await pillarbox.turn()
    assert subjects(sink) == ["innocent"]
    [item] = await overview_queries.items_of(pillarbox.pool, team.id, UUID(poison), pillarbox.clock.now())
    assert (item.condition, item.next_attempt_at) == ("quarantined", None)
    assert item.reason == quarantine.FATAL
    clock_of(pillarbox).advance(10 * 86400)
    assert await pillarbox.turn() == 0

    assert await overview_queries.retry_now(pillarbox.pool, QueueFilter(), pillarbox.clock.now()) == 1
    assert await pillarbox.turn() == 1
    assert subjects(sink) == ["innocent", "poison"]
    assert (await team.email(poison))["last_event"] == "delivered"


async def test_two_dead_processes_are_bad_luck(relayed: tuple[World, Sink]) -> None:
    """DUR-13: and so is the one before them, which had it in memory."""
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    unlucky = await team.send(subject="unlucky")
    for _ in range(1 + 2):
        await dies_with(pillarbox, unlucky)
    clock_of(pillarbox).advance(PAUSE)
    await pillarbox.turn()
    assert subjects(sink) == ["unlucky"]
    assert (await team.events(unlucky))[-1]["uncertain"] is True


async def test_an_outcome_clears_the_suspicion(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    sink.script("RCPT", "451 4.3.0 later")
    team = await prepared(pillarbox)
    unlucky = await team.send()
    await dies_with(pillarbox, unlucky)
    await dies_with(pillarbox, unlucky)
    await pillarbox.turn()
    assert await team.db.value("SELECT begun FROM deliveries WHERE team_id = $1") == 0


async def test_suspects_go_out_one_at_a_time(relayed: tuple[World, Sink]) -> None:
    """So that at most one of them can be held to have ended the third process."""
    pillarbox, sink = relayed
    gate = asyncio.Event()
    sink.script("RCPT", (gate, USUAL))
    team = await prepared(pillarbox)
    for _ in range(3):
        await team.send()
    await team.db.run("UPDATE deliveries SET uncertain = 2, begun = 1 WHERE team_id = $1")
    clock_of(pillarbox).advance(0.001)
    assert await pillarbox.engine.look() == 3
    await sink.commands("RCPT")
    assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1 AND begun = 2") == 1
    gate.set()
    await pillarbox.engine.idle()
    assert len(sink.received) == 3


async def test_an_email_that_cannot_be_read_does_not_block_others(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    await team.send(subject="first")
    broken = await team.send(subject="broken")
    await team.send(subject="last")
    await team.db.run("UPDATE emails SET sender = 'nobody' WHERE team_id = $1 AND id = $2", UUID(broken))
    for _ in range(4):
        await pillarbox.turn()
    assert sorted(subjects(sink)) == ["first", "last"]
    [item] = await overview_queries.items_of(pillarbox.pool, team.id, UUID(broken), pillarbox.clock.now())
    assert (item.condition, item.reason) == ("quarantined", quarantine.UNREADABLE)


async def test_a_suspect_waits_until_a_storm_of_dying_processes_has_passed(
    relayed: tuple[World, Sink],
) -> None:
    """At once after the first loss and the second, then after five minutes."""
    pillarbox, _ = relayed
    team = await prepared(pillarbox)
    unlucky = await team.send()
    waits = []
    for _ in range(3):
        await dies_with(pillarbox, unlucky)
        due = await team.db.value("SELECT due_at FROM deliveries WHERE team_id = $1")
        waits.append((due - pillarbox.clock.now()).total_seconds())
    assert waits == [0, 0, 300]
