"""Work leases: a dead or frozen process loses its items, and nothing is sent by two (architecture 2.5)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from kit.clock import ManualClock
from kit.process import connected
from kit.smtp_sink import USUAL, Sink
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.delivery.lease_expiry import CONFIRM_SECONDS
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.kernel.process.process_table import boot_id, started

ZONE = "quay.example MX 10 mx.quay.example\nmx.quay.example A 127.0.0.1"
SETTINGS = {"route": "direct", "allow_private": "127.0.0.0/8"}
ANOTHER = UUID(int=7)


async def held_by(team: Team, owner: UUID, *, seconds: float) -> None:
    """Pretend that another process has leased everything."""
    until = team.world.clock.now() + timedelta(seconds=seconds)
    await team.db.run(
        "UPDATE deliveries SET owner = $2, leased_until = $3, attempt = attempt + 1 WHERE team_id = $1",
        owner,
        until,
    )


async def prepared(pillarbox: World) -> tuple[Team, str]:
    team = await pillarbox.team()
    await team.domain()
    return team, await team.send()


async def test_an_item_is_left_alone_while_its_lease_lasts(database_url: str, tmp_path: Path) -> None:
    """DUR-03."""
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            remote_smtp_port=str(sink.port),
            **SETTINGS,
        ) as pillarbox,
    ):
        team, email = await prepared(pillarbox)
        await held_by(team, ANOTHER, seconds=30)
        pillarbox.clock.advance(29)
        assert await pillarbox.turn() == 0
        pillarbox.clock.advance(2)
        assert await pillarbox.turn() == 0
        pillarbox.clock.advance(CONFIRM_SECONDS)
        assert await pillarbox.turn() == 1
        await sink.messages(1)
        last = (await team.events(email))[-1]
        assert (last["event"], last["uncertain"], last["attempt"]) == ("delivered", True, 2)


async def test_the_items_of_a_dead_process_are_taken_at_once(database_url: str, tmp_path: Path) -> None:
    """A process on this host whose pid is gone holds nothing any more."""
    dead = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    born = started(dead.pid)
    dead.kill()
    dead.wait()
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            remote_smtp_port=str(sink.port),
            **SETTINGS,
        ) as pillarbox,
    ):
        team, _ = await prepared(pillarbox)
        await held_by(team, ANOTHER, seconds=30)
        await pillarbox.pool.execute(
            "INSERT INTO processes VALUES ($1, $2, $3, $4, '', now(), now())",
            ANOTHER,
            boot_id(),
            dead.pid,
            born,
        )
        assert await pillarbox.turn() == 1
        await sink.messages(1)
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM processes WHERE id = $1", ANOTHER) == 0


async def test_an_item_of_the_dead_that_is_locked_holds_nobody_up(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, clock=ManualClock(), started=False, **SETTINGS) as pillarbox:
        team, email = await prepared(pillarbox)
        await team.send()
        await held_by(team, ANOTHER, seconds=30)
        await pillarbox.pool.execute(
            "INSERT INTO processes VALUES ($1, $2, $3, $4, '', now(), now())",
            ANOTHER,
            boot_id(),
            2**22 + 1,
            1,
        )
        claims = pillarbox.app.need(ItemClaims)
        registered = "SELECT count(*) FROM processes WHERE id = $1"
        async with pillarbox.pool.acquire() as conn, conn.transaction():
            await conn.execute("SELECT FROM deliveries WHERE email_id = $1 FOR UPDATE", UUID(email))
            async with asyncio.timeout(10):
                assert await claims.recover() == 1
            assert await pillarbox.pool.fetchval(registered, ANOTHER) == 1, "it still has one"
        assert await claims.recover() == 1
        assert await pillarbox.pool.fetchval(registered, ANOTHER) == 0


async def test_a_process_that_ends_in_order_leaves_the_register(database_url: str, tmp_path: Path) -> None:
    """So that the others have its slots at their next heartbeat; not while it holds work of its own."""
    async with world(database_url, tmp_path, clock=ManualClock(), started=False, **SETTINGS) as pillarbox:
        claims, owner = pillarbox.app.need(ItemClaims), pillarbox.app.kit.runtime.process_id
        team, _ = await prepared(pillarbox)
        await claims.write_heartbeat("delivery")
        await held_by(team, owner, seconds=30)
        await claims.leave()
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM processes WHERE id = $1", owner) == 1
        await team.db.run("UPDATE deliveries SET owner = NULL, leased_until = NULL WHERE team_id = $1")
        await claims.leave()
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM processes WHERE id = $1", owner) == 0


async def test_a_stop_ends_with_leaving(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, **SETTINGS) as pillarbox:
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM processes") == 1
    async with connected(database_url) as conn:
        assert await conn.fetchval("SELECT count(*) FROM processes") == 0


async def test_a_lease_that_runs_out_in_mid_transfer_forbids_the_final_dot(
    database_url: str, tmp_path: Path
) -> None:
    """DUR-03: the frozen holder wakes up, sees that its time is over, and does not finish."""
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            remote_smtp_port=str(sink.port),
            **SETTINGS,
        ) as pillarbox,
    ):
        gate = asyncio.Event()
        sink.script("RCPT", (gate, USUAL))
        team, email = await prepared(pillarbox)
        pillarbox.clock.advance(0.001)
        assert await pillarbox.engine.look() == 1
        await sink.commands("RCPT")
        pillarbox.clock.advance(31)
        gate.set()
        await pillarbox.engine.idle()
        assert not sink.received
        assert (await team.email(email))["last_event"] == "queued"
        assert await pillarbox.turn() == 0
        pillarbox.clock.advance(CONFIRM_SECONDS)
        assert await pillarbox.turn() == 1
        await sink.messages(1)
        assert (await team.events(email))[-1]["uncertain"] is True


async def test_a_final_outcome_counts_after_the_lease_a_retry_decision_does_not(
    database_url: str, tmp_path: Path
) -> None:
    """The claim of another process fences the delay; a delivery that happened is a fact."""
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            remote_smtp_port=str(sink.port),
            **SETTINGS,
        ) as pillarbox,
    ):
        gate = asyncio.Event()
        sink.script("DOT", (gate, "451 4.3.0 later"), (gate, USUAL))
        team, delayed = await prepared(pillarbox)
        pillarbox.clock.advance(0.001)
        await pillarbox.engine.look()
        await sink.commands("DATA")
        await held_by(team, ANOTHER, seconds=30)
        gate.set()
        await pillarbox.engine.idle()
        assert await team.kinds(delayed) == ["queued", "sent"]
        owner = await team.db.value("SELECT owner FROM deliveries WHERE team_id = $1")
        assert owner == ANOTHER

        await team.db.run("UPDATE deliveries SET owner = NULL, leased_until = NULL WHERE team_id = $1")
        gate.clear()
        pillarbox.clock.advance(0.001)
        await pillarbox.engine.look()
        await sink.commands("DATA", 2)
        await held_by(team, ANOTHER, seconds=30)
        gate.set()
        await pillarbox.engine.idle()
        assert (await team.email(delayed))["last_event"] == "delivered"
        assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1") == 0


async def test_a_stop_gives_back_what_was_not_started(database_url: str, tmp_path: Path) -> None:
    """OPS-03: what waits in memory is free in the database the moment the process is gone."""
    gate = asyncio.Event()
    async with Sink() as sink:
        sink.script("RCPT", then=(gate, USUAL))
        async with world(
            database_url,
            tmp_path,
            zone=Zone(ZONE),
            remote_smtp_port=str(sink.port),
            **SETTINGS,
        ) as pillarbox:
            team = await pillarbox.team()
            await team.domain()
            for _ in range(30):
                await team.send()
            await sink.connections(2)
            asyncio.get_running_loop().call_later(0.2, gate.set)
            pool = pillarbox.pool
            assert await pool.fetchval("SELECT count(*) FROM deliveries WHERE owner IS NOT NULL") > 10
        async with world(database_url, tmp_path, started=False) as after:
            rows = await after.pool.fetch("SELECT owner FROM deliveries")
            assert all(row["owner"] is None for row in rows)
            assert len(rows) + len(sink.received) == 30


def test_this_process_is_known_to_live() -> None:
    assert started(os.getpid()) is not None
