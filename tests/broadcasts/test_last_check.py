"""The last check of copies: who leaves gets none that had not begun (broadcasts.md 6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from kit.audience import a_contact, a_topic, some_contacts
from kit.broadcast_rows import a_broadcast, copies_of
from kit.database_link import database_link
from kit.ledger import open_work
from kit.manual_world import relayed_world
from kit.process import connected
from kit.smtp_sink import Sink
from kit.world import Team, world
from pillarbox.kernel.postgres.database import RETRIED
from pillarbox.kernel.process import faults

CONNECTED = "delivery.connected=delay:0.5@1"
"""Longer than the answer of a check is valid."""

MANY = 2000
SOON = 1.0
"""Seconds that a command which is on its way may take on a busy machine."""


@asynccontextmanager
async def harbor(
    database_url: str, folder: Path, *, started: bool = False
) -> AsyncIterator[tuple[Team, Sink]]:
    """A team on a clock that goes by itself; its mail goes to a server in the test."""
    async with Sink() as sink:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        async with world(database_url, folder, started=started, route=route) as pillarbox:
            team = await pillarbox.team()
            await team.domain()
            yield team, sink


async def changed(team: Team, change: str, broadcast: UUID, contact: UUID, topic: UUID) -> None:
    """Make the change by the API, which answers after its commit."""
    calls = {
        "cancel": ("POST", f"/broadcasts/{broadcast}/cancel", None),
        "unsubscribe": ("PATCH", f"/contacts/{contact}", {"unsubscribed": True}),
        "delete": ("DELETE", f"/contacts/{contact}", None),
        "leave the topic": (
            "PATCH",
            f"/contacts/{contact}/topics",
            [{"id": str(topic), "subscription": "opt_out"}],
        ),
        "suppress": ("POST", "/suppressions", {"email": "ada@quay.example"}),
    }
    answer = await team.call(*calls[change])
    assert answer.status_code in (200, 201), answer.text


async def units_used(team: Team) -> int:
    """Of its quotas, as `GET /usage` says."""
    emails = (await team.get("/usage")).json()["emails"]
    assert emails["daily"]["sent"] == emails["monthly"]["sent"]
    return int(emails["daily"]["sent"])


@pytest.mark.parametrize("change", ["cancel", "unsubscribe", "delete", "leave the topic", "suppress"])
async def test_a_copy_whose_session_is_open_is_stopped(
    database_url: str, tmp_path: Path, change: str
) -> None:
    """Its message is composed and the server is connected; nothing of the mail has been said."""
    async with harbor(database_url, tmp_path) as (team, sink):
        ada, topic = await a_contact(team, "ada@quay.example"), await a_topic(team)
        broadcast = await a_broadcast(team, [ada], topic_id=topic)
        with faults.armed(CONNECTED):
            turn = asyncio.create_task(team.world.turn())
            await sink.connections(1)
            await changed(team, change, broadcast, ada, topic)
            await turn
        [copy] = await copies_of(team, broadcast)
        assert copy["last_event"] == ("suppressed" if change == "suppress" else "canceled")
        assert sink.received == []
        assert await open_work(team.world.pool) == 0
        # The session is as good as new.
        await team.send(to="bob@quay.example")
        await team.world.turn()
        [_message] = await sink.messages(1)
        assert "MAIL" in sink.sessions[0].verbs


@pytest.mark.parametrize("change", ["cancel", "suppress"])
async def test_a_copy_that_may_have_left_already_says_so_when_it_is_stopped(
    database_url: str, tmp_path: Path, change: str
) -> None:
    """Its process died after the final dot, before the outcome was committed."""
    async with harbor(database_url, tmp_path) as (team, sink):
        ada, topic = await a_contact(team, "ada@quay.example"), await a_topic(team)
        broadcast = await a_broadcast(team, [ada], topic_id=topic)
        sink.script("CONNECT", then="421 4.3.2 shutting down")
        await team.world.turn()
        await changed(team, change, broadcast, ada, topic)
        await team.db.run("UPDATE deliveries SET due_at = now(), uncertain = 1 WHERE team_id = $1")
        async with asyncio.timeout(60):
            while await open_work(team.world.pool):
                await team.world.turn()
                await asyncio.sleep(0.2)
        [copy] = await copies_of(team, broadcast)
        last = (await team.events(str(copy["email_id"])))[-1]
        assert last["event"] == ("suppressed" if change == "suppress" else "canceled")
        assert last["uncertain"] is True


@pytest.mark.parametrize("change", ["cancel", "unsubscribe", "suppress"])
async def test_a_copy_whose_server_is_out_of_reach_is_stopped_too(
    database_url: str, tmp_path: Path, change: str
) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        ada, topic = await a_contact(team, "ada@quay.example"), await a_topic(team)
        broadcast = await a_broadcast(team, [ada], topic_id=topic)
        sink.script("CONNECT", then="421 4.3.2 shutting down")
        await team.world.turn()
        assert await open_work(team.world.pool) == 1
        await changed(team, change, broadcast, ada, topic)
        await team.world.pool.execute("UPDATE deliveries SET due_at = now()")
        async with asyncio.timeout(60):
            while await open_work(team.world.pool):
                await team.world.turn()
                await asyncio.sleep(0.2)
        [copy] = await copies_of(team, broadcast)
        assert copy["last_event"] == ("suppressed" if change == "suppress" else "canceled")
        assert all("MAIL" not in session.verbs for session in sink.sessions)


async def test_copies_whose_commit_was_not_answered_go_out_when_the_database_is_back(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are leased to the process, which does not have them: no lease has to run out."""
    async with (
        database_link(database_url) as link,
        relayed_world(link.url, tmp_path) as (pillarbox, sink),
        connected(database_url) as conn,
    ):
        team = await pillarbox.team()
        await team.domain()
        broadcast = await a_broadcast(team, [await a_contact(team, "ada@quay.example")])
        passed = faults.point

        async def stalled_behind_commit(name: str) -> None:
            if name == "broadcast.copies_written":
                link.stalls_behind = b"COMMIT"
            await passed(name)

        monkeypatch.setattr(faults, "point", stalled_behind_commit)
        turn = asyncio.create_task(pillarbox.turn())
        async with asyncio.timeout(30):
            while not await open_work(conn):
                await asyncio.sleep(0.02)
        link.cut()
        link.flow()
        await asyncio.wait([turn])
        assert isinstance(turn.exception(), RETRIED)
        await link.open()
        while await pillarbox.turn():
            pass
        await sink.messages(1)
        assert (await copies_of(team, broadcast))[0]["last_event"] == "delivered"


async def test_copies_of_a_paused_broadcast_wait(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        ada = await a_contact(team, "ada@quay.example")
        broadcast = await a_broadcast(team, [ada])
        pool = team.world.pool
        with faults.armed(CONNECTED):
            turn = asyncio.create_task(team.world.turn())
            await sink.connections(1)
            await pool.execute("UPDATE broadcasts SET paused_at = now(), paused_for = 'bounces'")
            await turn
        [copy] = await copies_of(team, broadcast)
        assert (copy["last_event"], sink.received) == ("queued", [])
        row = await pool.fetchrow("SELECT owner, reason, tries, due_at > now() AS later FROM deliveries")
        assert tuple(row) == (None, "The broadcast is paused.", 0, True)
        await pool.execute("UPDATE broadcasts SET paused_at = NULL, paused_for = NULL")
        await pool.execute("UPDATE deliveries SET due_at = now()")
        await team.world.turn()
        await sink.messages(1)
        assert (await copies_of(team, broadcast))[0]["last_event"] == "delivered"


async def test_a_cancel_in_the_middle(database_url: str, tmp_path: Path) -> None:
    """broadcasts.md 9, point 6: sent and unsent are all, none goes twice, no copy begins after the answer."""
    async with harbor(database_url, tmp_path, started=True) as (team, sink):
        people = await some_contacts(team, MANY)
        broadcast = await a_broadcast(team, people)
        team.world.engine.wake()
        await sink.messages(200)
        answer = await team.post(f"/broadcasts/{broadcast}/cancel")
        answered = asyncio.get_running_loop().time()
        assert answer.status_code == 200
        async with asyncio.timeout(30):
            while await open_work(team.world.pool):
                await asyncio.sleep(0.05)
        found = Counter(copy["last_event"] for copy in await copies_of(team, broadcast))
        assert found["delivered"] == len(sink.received) < MANY
        assert len({message.recipients[0] for message in sink.received}) == len(sink.received)
        assert found["delivered"] + found["canceled"] + found[None] == MANY
        assert max(message.began for message in sink.received) < answered + SOON
        assert (await team.get(f"/broadcasts/{broadcast}")).json()["status"] == "canceled"


@pytest.mark.parametrize(("change", "units"), [("cancel", 0), ("unsubscribe", 0), ("suppress", 1)])
async def test_a_copy_that_is_stopped_gives_its_unit_back(
    database_url: str, tmp_path: Path, change: str, units: int
) -> None:
    """As any mail that is canceled (conventions section 8). What is suppressed was judged, and counts."""
    async with harbor(database_url, tmp_path) as (team, sink):
        ada, topic = await a_contact(team, "ada@quay.example"), await a_topic(team)
        broadcast = await a_broadcast(team, [ada], topic_id=topic)
        await team.world.pool.execute("UPDATE teams SET daily_quota = 5, monthly_quota = 9")
        with faults.armed(CONNECTED):
            turn = asyncio.create_task(team.world.turn())
            await sink.connections(1)
            assert await units_used(team) == 1
            await changed(team, change, broadcast, ada, topic)
            await turn
        assert await units_used(team) == units
