"""Each fault point with its expected ledger: a process that dies there, and a failure that nobody foresaw."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest

from conftest import Databases
from kit.clock import ManualClock
from kit.ledger import Journal, acknowledged, arrivals, compare, of_run, open_work, states, uncertain
from kit.load import LoadClient
from kit.process import KEY, WorkerProcesses, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import RemoteServers, remote_servers
from kit.smtp_sink import Sink
from kit.world import FINAL, Team, World, mail, world
from pillarbox.app import SETTINGS
from pillarbox.kernel.process import faults
from pillarbox.kernel.process.faults import POINTS
from pillarbox.kernel.process.fork_server_channel import environment
from pillarbox.kernel.process.workers import HandOver
from pillarbox.kernel.settings.settings import ConfigError, read_settings, settings_of

pytestmark = pytest.mark.sweep

ONCE, TWICE, PERHAPS_TWICE = {1}, {2}, {1, 2}

KILLED = {
    "accept.before_commit": ONCE,
    "accept.after_commit": ONCE,
    "delivery.claimed": ONCE,
    "delivery.connected": ONCE,
    "delivery.after_mail": ONCE,
    "delivery.before_dot": ONCE,
    "delivery.after_dot": PERHAPS_TWICE,
    "delivery.after_250": TWICE,
    "delivery.in_settle": TWICE,
    "timeline.events@1": ONCE,
    "timeline.events@2": TWICE,
    "webhooks.rows": TWICE,
}
"""How often a mail may arrive whose process dies there; a passage of `timeline.events` belongs to the accept,
the next one to the settlement."""

RAISED = {
    **dict.fromkeys(KILLED, ONCE),
    "delivery.after_dot": TWICE,
    "delivery.after_250": TWICE,
}
"""The same for a failure inside the program: settlements are written again, so only these two doubt."""

DISPATCHING = {"webhooks.claimed", "webhooks.before_send", "webhooks.after_answer", "webhooks.in_settle"}
"""Tried in tests/webhooks/test_deaths.py."""

RECEIVING = {"receive.before_commit", "receive.after_commit"}
"""Tried in tests/receiving/test_durable.py."""

SENDING = {"accept.within"}
"""Tried in tests/inboxes/test_sending_deaths.py."""

UNACKNOWLEDGED = {"accept.before_commit", "timeline.events@1"}


def fault(point: str, deed: str) -> str:
    name, _, passage = point.partition("@")
    return f"{name}={deed}" + (f"@{passage}" if passage else "")


IMPORTING = {
    *("import.stored", "import.batch_written", "import.batch_committed"),
    *("import.undo_written", "import.undo_committed"),
}
"""Tried in test_import_kills.py."""

BROADCASTING = {
    *("broadcast.snapshot", "broadcast.copies_written", "broadcast.copies_committed"),
    "broadcast.winner_chosen",
}
"""Tried in tests/broadcasts/test_deaths.py and test_copy_deaths.py."""

AUDIENCE = {
    *("bulk_act.batch_written", "bulk_act.batch_committed"),
    *("personal_data.step_written", "personal_data.step_committed"),
    *("forms.mail_written", "forms.confirmed"),
}
"""Tried in test_audience_kills.py."""

EVENTS = {"events.before_commit", "events.after_commit", "events.told"}
"""Tried in tests/events/test_deaths.py and test_distribution.py."""

AUTOMATIONS = {
    "automations.claimed",
    "automations.written",
    "automations.committed",
    "automations.forwarded",
}
"""Tried in tests/automations/test_deaths.py and test_mail_events.py."""


IDEMPOTENCY = {"idempotency.looked_up"}
"""Tried in tests/inboxes/test_sends_at_once.py."""


def test_every_point_is_tried() -> None:
    elsewhere = (
        IDEMPOTENCY
        | DISPATCHING
        | RECEIVING
        | IMPORTING
        | BROADCASTING
        | SENDING
        | EVENTS
        | AUDIENCE
        | AUTOMATIONS
    )
    assert {point.partition("@")[0] for point in KILLED} | elsewhere == set(POINTS)
    assert KILLED.keys() == RAISED.keys()


def test_a_misspelt_fault_stops_the_start() -> None:
    for text in (
        "accept.nowhere=kill",
        "accept.before_commit=explode",
        "accept.before_commit",
        "delivery.claimed=kill@0",
    ):
        with pytest.raises(ConfigError, match="PILLARBOX_FAULT"):
            read_settings(SETTINGS, {}, {"PILLARBOX_FAULT": text})
    read_settings(SETTINGS, {}, {"PILLARBOX_FAULT": "delivery.claimed=kill@20,timeline.events=delay:0.5%3"})


def test_a_replacement_only_has_the_lasting_faults() -> None:
    assert (
        faults.for_replacements("delivery.claimed=kill@2,timeline.events=delay:0.5%3")
        == "timeline.events=delay:0.5%3"
    )
    assert faults.for_replacements("delivery.claimed=kill") == ""


def test_workers_get_the_faults_and_nothing_else_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(faults.VARIABLE, "delivery.claimed=kill@2,timeline.events=delay:0.5%3")
    monkeypatch.setenv("PILLARBOX_SECRET_KEY", "not for the environment")
    hand_over = HandOver(
        settings=settings_of({"data": str(tmp_path)}),
        factory="",
        listeners={},
        shared_memory=0,
        capture_token="",
        metrics_folder=None,
    )
    assert [name for name in environment() if name.startswith("PILLARBOX_")] == []
    first = json.loads(hand_over.request(replaces=False))
    assert first == {"listeners": [], "fault": "delivery.claimed=kill@2,timeline.events=delay:0.5%3"}
    assert json.loads(hand_over.request(replaces=True))["fault"] == "timeline.events=delay:0.5%3"
    monkeypatch.setenv(faults.VARIABLE, "delivery.claimed=kill@2")
    assert json.loads(hand_over.request(replaces=True))["fault"] == ""


async def test_a_fault_happens_at_its_passage() -> None:
    raised = []
    with faults.armed("delivery.claimed=raise@3,delivery.connected=raise%2"):
        for point in ["delivery.claimed", "delivery.connected"] * 5:
            try:
                await faults.point(point)
            except faults.FaultRaised:
                raised.append(point)
            else:
                raised.append("")
    assert [at for at, point in enumerate(raised) if point == "delivery.claimed"] == [4]
    assert [at for at, point in enumerate(raised) if point == "delivery.connected"] == [3, 7]
    assert not faults.are_armed()


# A process dies --------------------------------------------------------------------------------------


@dataclass
class Yard:
    """Workers that come and go on one database, and the server that all their mail goes to."""

    workers: WorkerProcesses
    far: RemoteServers
    url: str
    folder: Path


@pytest.fixture(scope="module")
def yard(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder, url = tmp_path_factory.mktemp("yard"), databases.fresh()
    asyncio.run(first_team(url))
    with (
        remote_servers(folder / "far", {"127.0.0.1": {}}) as far,
        worker_processes(url, folder, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        yield Yard(workers, far, url, folder)
    databases.drop(url)


async def killed_at(point: str, yard: Yard, courier: LoadClient) -> None:
    """One mail whose process dies at the point, and the process after it."""
    await asyncio.to_thread(yard.workers.start, fault(point, "kill"))
    posting = asyncio.create_task(courier.post(["{token}@quay.example"]))
    assert await asyncio.to_thread(yard.workers.died) == -9
    await asyncio.to_thread(yard.workers.start)
    await posting
    await settled(yard.url, 30)
    assert await asyncio.to_thread(yard.workers.stop) == 0


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", KILLED)
async def test_a_process_that_dies_at_a_point_loses_nothing(yard: Yard, point: str, rounds: int) -> None:
    """DUR-01, DUR-02, DUR-04, DUR-06: what was acknowledged arrives; twice only behind the final dot."""
    async with LoadClient(yard.workers.at, KEY, Journal(yard.folder / "ledger"), lines=1) as courier:
        for _ in range(rounds):
            await killed_at(point, yard, courier)
    async with connected(yard.url) as conn:
        accepted = of_run(courier.run, acknowledged(yard.folder / "ledger"))
        arrived = of_run(courier.run, arrivals(yard.far.journal))
        found = compare(accepted, arrived, await states(conn))
        found.assert_sound(doubled=rounds * (max(KILLED[point]) - 1))
        assert len(accepted) == rounds
        assert rounds * min(KILLED[point]) <= len(arrived) <= rounds * max(KILLED[point])
        assert found.doubled.keys() <= await uncertain(conn)
        assert await open_work(conn) == 0
    await reconciled(yard.url)


# A failure that nobody foresaw -----------------------------------------------------------------------


class PassingTime(ManualClock):
    """A clock that the test moves, and that moves by itself a little with every reading."""

    def now(self) -> datetime:
        self.advance(0.001)
        return super().now()


async def until_final(pillarbox: World, clock: PassingTime, team: Team, email: str) -> None:
    """Let time pass, while nothing runs, until the email has its end."""
    async with asyncio.timeout(20):
        while (await team.email(email))["last_event"] not in FINAL:
            await pillarbox.engine.idle()
            clock.advance(5)
            pillarbox.engine.wake()
            await asyncio.sleep(0.01)


async def failed_at(point: str, pillarbox: World, clock: PassingTime, team: Team, sink: Sink) -> None:
    """One mail for which something fails at the point."""
    before, key = len(sink.received), str(uuid4())
    with faults.armed(fault(point, "raise")):
        answer = await team.post("/emails", mail(), idempotency_key=key)
        assert answer.status_code == (500 if point in UNACKNOWLEDGED else 200)
        if point in UNACKNOWLEDGED:
            answer = await team.post("/emails", mail(), idempotency_key=key)
        email = answer.json()["id"]
        await until_final(pillarbox, clock, team, email)
    arrived = sink.received[before:]
    assert len(arrived) in RAISED[point]
    assert len({message_id(each.content) for each in arrived}) == 1
    events = await team.events(email)
    assert events[-1]["event"] == "delivered"
    assert any(event["uncertain"] for event in events) or len(arrived) == 1
    assert [event["created_at"] for event in events] == sorted(event["created_at"] for event in events)


def message_id(content: bytes) -> bytes:
    (found,) = re.findall(rb"^Message-ID: (.*)\r$", content, re.MULTILINE | re.IGNORECASE)
    return bytes(found)


@pytest.mark.parametrize("rounds", [1, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", RAISED)
async def test_a_failure_at_a_point_loses_nothing(
    database_url: str, tmp_path: Path, point: str, rounds: int
) -> None:
    """DUR-05, DUR-07: in a process that lives on the work comes back by its retry or its lease; an attempt
    that may have reached the other side is shown as uncertain, and the events stand in their order."""
    clock = PassingTime()
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=clock,
            route=f"relay:smtp://127.0.0.1:{sink.port}",
            require_verified_domain="never",
        ) as pillarbox,
    ):
        team = await pillarbox.team()
        for _ in range(rounds):
            await failed_at(point, pillarbox, clock, team, sink)
        assert await team.db.value("SELECT count(*) FROM emails WHERE team_id = $1") == rounds
        assert await open_work(pillarbox.pool) == 0
    assert all(session.ended.is_set() for session in sink.sessions)
