"""`pillarbox webhooks listen` and `trigger`: events on a terminal and at a program of one's own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import svix

from kit.manual_world import clock_of
from kit.process import environment
from kit.receiver import WEBHOOKS, receiver, status
from kit.webhooks import hook, publish
from kit.world import Team, World, world
from pillarbox.application import SLICES
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.listening.listener import WebhookListener, listen, listener_periodic
from pillarbox.webhooks.plugin import bodies_of
from pillarbox.webhooks.samples import SAMPLES

LISTENERS = "SELECT count(*) FROM webhooks WHERE kind = 'listener'"


async def opened(team: Team, *kinds: str) -> WebhookListener:
    app = team.world.app
    return await listen(
        team.world.pool,
        team.id,
        kinds or ["domain.updated"],
        clock=team.world.clock,
        ids=app.need(Ids),
        ring=app.need(KeyRing),
        bodies=bodies_of(SLICES),
    )


async def test_a_listener_has_every_event_once_and_is_never_called(running: World) -> None:
    team = await running.team()
    found = await opened(team, "domain.updated", "email.delivered")
    await publish(team, "domain.updated", "domain.created", number=1)
    email = await team.send()
    await team.settled(email)
    events = [(one.kind, json.loads(one.body)["data"]) for one in await found.take()]
    assert [kind for kind, _ in events] == ["domain.updated", "email.delivered"]
    assert events[0][1] == {"number": 1}
    assert events[1][1]["email_id"] == email
    assert await found.take() == []
    assert (await team.get("/webhooks")).json()["data"] == []
    await found.close(running.app.need(Ids))
    assert await running.pool.fetchval(LISTENERS) == 0


async def test_an_event_that_commits_late_is_heard_all_the_same(pillarbox: World) -> None:
    team = await pillarbox.team()
    found = await opened(team)
    early = pillarbox.app.need(Ids).stamp()
    await publish(team, number=2)
    assert len(await found.take()) == 1
    await pillarbox.pool.execute(
        "INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at)"
        " VALUES ($1, $2, $3, 'domain.updated', $4, 0, 'infinity')",
        team.id,
        found.id,
        *early,
    )
    assert [one.event_id for one in await found.take()] == [early.id]


async def test_a_listener_without_a_reader_is_removed_after_an_hour(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    team = await pillarbox.team()
    left, read = await opened(team), await opened(team)
    (collecting,) = listener_periodic(pillarbox.pool, clock, pillarbox.app.need(Ids))
    clock.advance(timedelta(minutes=50))
    await read.take()
    assert await collecting.work() == "0 listeners"
    clock.advance(timedelta(minutes=11))
    assert await collecting.work() == "1 listeners"
    rows = await pillarbox.pool.fetch("SELECT id FROM webhooks")
    assert [row["id"] for row in rows] == [read.id]
    assert left.id != read.id


def test_there_is_a_sample_of_every_kind() -> None:
    assert list(SAMPLES) == list(KINDS)
    json.dumps(SAMPLES)


async def spawn(pillarbox: World, folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    options = ("--data", str(folder), "--database-url", pillarbox.app.kit.settings.database_url or "")
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pillarbox", "webhooks", *arguments, *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )


async def test_the_commands(database_url: str, tmp_path: Path) -> None:
    """An event is triggered, printed, forwarded signed, and posted to the real webhook; an interrupt removes
    the listener."""
    async with (
        receiver() as program,
        receiver() as at,
        world(database_url, tmp_path, **WEBHOOKS) as pillarbox,
    ):
        team = await pillarbox.team()
        await hook(team, "email.bounced", endpoint=at.url)
        program.answers(status(418))
        listening = await spawn(pillarbox, tmp_path, "listen", "--forward", program.url)
        assert listening.stdout is not None
        async with asyncio.timeout(30):
            first = (await listening.stdout.readline()).decode()
            assert first.startswith("Listening to the events of Harbor.")
            triggering = await spawn(pillarbox, tmp_path / "triggering", "trigger", "email.bounced")
            output, complaint = await triggering.communicate()
            assert triggering.returncode == 0, complaint
            assert output == b"A sample of email.bounced is on its way to 2 webhooks.\n"
            lines = [(await listening.stdout.readline()).decode() for _ in range(3)]
        assert "email.bounced" in lines[0]
        assert '"subType": "NoEmail"' in lines[1]
        assert lines[2].strip().endswith(": 418")
        (forwarded,) = program.arrivals
        secret = first.rpartition(" ")[2].strip()
        svix.Webhook(secret).verify(forwarded.body, forwarded.headers)
        (called,) = await at.wait_for(1)
        assert (called.event, called.body) == (forwarded.event, forwarded.body)
        os.kill(listening.pid, signal.SIGINT)
        assert await asyncio.wait_for(listening.wait(), 20) == 0
        assert await pillarbox.pool.fetchval(LISTENERS) == 0

        refused = await spawn(pillarbox, tmp_path / "triggering", "trigger", "email.eaten")
        _, complaint = await asyncio.wait_for(refused.communicate(), 30)
        assert refused.returncode == 1
        assert b"There is no event 'email.eaten'" in complaint
