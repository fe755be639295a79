"""What events of one contact bring about comes in their order: two processes, each slow at other moments."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from kit.automation_rows import an_automation, chain, connection, step
from kit.automation_runs import ADA, sent, walk
from kit.http_client import http_client
from kit.manual_world import clock_of, run_jobs
from kit.process import KEY, connected, first_team, reconciled, worker_processes
from kit.world import World
from pillarbox.automations.execution import work_queries
from pillarbox.automations.execution.claims import StepClaims
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.kernel.process.faults import armed

pytestmark = pytest.mark.sweep

LEFT = """
    SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM automation_work)
           + (SELECT count(*) FROM jobs WHERE kind LIKE 'events.distribute%')
"""
CONTACTS = "SELECT address, first_name, last_name FROM contacts"
MAILS = "SELECT to_list::text AS address, subject FROM emails ORDER BY id"
POINTS = (
    "events.told",
    "automations.claimed",
    "automations.written",
    "automations.committed",
    "accept.within",
    "accept.after_commit",
)

SET_FIRST = step("first", "contact_update", first_name={"var": "event.n"})
SET_LAST = step("last", "contact_update", last_name={"var": "contact.first_name"})


def number_mail(key: str, word: str) -> dict[str, Any]:
    template = {"id": "number", "variables": {"N": {"var": "event.n"}, "WORD": word}}
    return step(key, "send_email", template=template)


@dataclass
class Reference:
    """Events one after the other, each with all that follows from it at once."""

    first: dict[str, str] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    mails: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def event(self, email: str, n: str) -> None:
        """Of `GRAPHS`, automation by automation."""
        self.first[email] = self.last[email] = n
        self.mails[email] += [f"one {n}", f"{'even' if n[-1] in '02468' else 'odd'} {n}"]


GRAPHS = [
    chain(
        step("start", "trigger", event_name="order.placed"),
        SET_FIRST,
        SET_LAST,
        number_mail("mail", "one"),
    ),
    {
        "steps": [
            step("start", "trigger", event_name="order.placed"),
            step(
                "is_even",
                "condition",
                type="or",
                rules=[
                    {"type": "rule", "field": "contact.first_name", "operator": "ends_with", "value": digit}
                    for digit in "02468"
                ],
            ),
            number_mail("even", "even"),
            number_mail("odd", "odd"),
        ],
        "connections": [
            connection("start", "is_even"),
            connection("is_even", "even", "condition_met"),
            connection("is_even", "odd", "condition_not_met"),
        ],
    },
]
"""The second one asks what the first one has written, so its runs see the order too."""


def faults(random: Random) -> str:
    """Delays at every N-th passage of each point, another N for each."""
    return ",".join(
        f"{point}=delay:{random.uniform(0.002, 0.04):.3f}%{random.randint(1, 4)}" for point in POINTS
    )


async def prepared(client: httpx.AsyncClient) -> None:
    variables = [{"key": "N", "type": "string"}, {"key": "WORD", "type": "string"}]
    content = {"name": "number", "alias": "number", "from": "hi@harbor.example", "html": "<p>Hello</p>"}
    subject = "{{{WORD}}} {{{N}}}"
    answer = await client.post("/templates", json={**content, "subject": subject, "variables": variables})
    assert answer.status_code == 201, answer.text
    assert (await client.post("/templates/number/publish")).status_code == 200
    for graph in GRAPHS:
        answer = await client.post("/automations", json={"name": "Order", "status": "enabled", **graph})
        assert answer.status_code == 201, answer.text


async def done(url: str) -> None:
    """Wait until no event waits and no step is left."""
    async with asyncio.timeout(60), connected(url) as conn:
        while await conn.fetchval(LEFT):
            await asyncio.sleep(0.05)


async def compared(conn: asyncpg.Connection, reference: Reference) -> None:
    rows = await conn.fetch(CONTACTS)
    assert {row["address"]: row["first_name"] for row in rows} == reference.first
    assert {row["address"]: row["last_name"] for row in rows} == reference.last
    mails: defaultdict[str, list[str]] = defaultdict(list)
    for row in await conn.fetch(MAILS):
        mails[row["address"].strip('{}[]"')].append(row["subject"])
    assert mails == reference.mails


@pytest.mark.parametrize("together", [True, False], ids=["one_array", "one_by_one"])
async def test_effects_of_events_of_a_contact_come_in_their_order(
    database_url: str, tmp_path: Path, together: bool
) -> None:
    random, reference = Random(f"order {together}"), Reference()
    await first_team(database_url)
    body = []
    for n in range(5):
        for number in range(12):
            email = f"c{number}@quay.example"
            body.append({"event": "order.placed", "email": email, "payload": {"n": str(n)}})
            reference.event(email, str(n))
    with worker_processes(database_url, tmp_path) as workers:
        for place in range(2):
            workers.start(faults(random), place=place)
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            await prepared(client)
            for some in [body] if together else [[one] for one in body]:
                answer = await client.post("/events/send", json=some)
                assert answer.status_code == 202, answer.text
            await done(database_url)
    async with connected(database_url) as conn:
        await compared(conn, reference)
    await reconciled(database_url)


async def test_effects_keep_their_order_while_processes_die(database_url: str, tmp_path: Path) -> None:
    """Two processes are killed again and again, at other points each time, and slow at others."""
    random, reference = Random("order and deaths"), Reference()
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        for place in range(2):
            workers.start(faults(random), place=place)
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            await prepared(client)
            for n in range(6):
                body = []
                for number in range(8):
                    email = f"c{number}@quay.example"
                    body.append({"event": "order.placed", "email": email, "payload": {"n": str(n)}})
                    reference.event(email, str(n))
                answer = await client.post("/events/send", json=body)
                assert answer.status_code == 202, answer.text
                await asyncio.sleep(random.uniform(0.02, 0.3))
                workers.kill(place=n % 2)
                workers.start(faults(random), place=n % 2)
            await done(database_url)
    async with connected(database_url) as conn:
        await compared(conn, reference)
    await reconciled(database_url)


@pytest.fixture
def few_contacts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement looks at three contacts."""
    monkeypatch.setattr(work_queries, "CONTACTS_AT_ONCE", 3)


async def test_a_step_that_is_tried_again_keeps_its_place(pillarbox: World) -> None:
    """What is behind it for its contact waits; other contacts go on."""
    team = await pillarbox.team()
    graph = chain(step("start", "trigger", event_name="order.placed"), SET_FIRST)
    await an_automation(team, graph, status="enabled")
    with armed("automations.written=raise@1"):
        await sent(team, "order.placed", n="1")
        await walk(pillarbox)
    await sent(team, "order.placed", n="2")
    await sent(team, "order.placed", "bo@quay.example", n="3")
    await walk(pillarbox)
    assert await first_names(pillarbox) == {ADA: None, "bo@quay.example": "3"}
    clock_of(pillarbox).advance(timedelta(seconds=6))
    await walk(pillarbox)
    assert await first_names(pillarbox) == {ADA: "2", "bo@quay.example": "3"}


async def test_a_wait_that_ends_has_the_place_of_what_ended_it(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = {
        "steps": [
            step("start", "trigger", event_name="order.placed"),
            step("paid", "wait_for_event", event_name="order.paid"),
            step("first", "contact_update", first_name={"var": "wait_events.order.paid.n"}),
        ],
        "connections": [connection("start", "paid"), connection("paid", "first", "event_received")],
    }
    await an_automation(team, graph, status="enabled")
    other = chain(step("start", "trigger", event_name="name.given"), SET_FIRST)
    await an_automation(team, other, status="enabled")
    await sent(team, "order.placed")
    await walk(pillarbox)
    for name, n in (("name.given", "1"), ("order.paid", "2"), ("name.given", "3")):
        await sent(team, name, n=n)
    while await run_jobs(pillarbox):
        pass
    seen, engine = [], pillarbox.app.need(StepEngine)
    while await engine.look():
        await engine.idle()
        seen.append((await first_names(pillarbox))[ADA])
    assert [name for name, _ in groupby(seen) if name is not None] == ["1", "2", "3"]


async def test_a_condition_behind_a_wait_sees_what_the_events_before_have_changed(pillarbox: World) -> None:
    team = await pillarbox.team()
    rule = {"type": "rule", "field": "contact.first_name", "operator": "eq", "value": "1"}
    graph = {
        "steps": [
            step("start", "trigger", event_name="order.placed"),
            step("paid", "wait_for_event", event_name="order.paid"),
            step("named", "condition", **rule),
            step("last", "contact_update", last_name="Seen"),
        ],
        "connections": [
            connection("start", "paid"),
            connection("paid", "named", "event_received"),
            connection("named", "last", "condition_met"),
        ],
    }
    await an_automation(team, graph, status="enabled")
    other = chain(step("start", "trigger", event_name="name.given"), SET_FIRST)
    await an_automation(team, other, status="enabled")
    await sent(team, "order.placed")
    await walk(pillarbox)
    await sent(team, "name.given", n="1")
    await sent(team, "order.paid")
    while await run_jobs(pillarbox):
        pass
    await walk(pillarbox)
    assert await pillarbox.pool.fetchval("SELECT last_name FROM contacts") == "Seen"


async def test_a_delay_that_ends_waits_for_the_step_that_is_carried_out(pillarbox: World) -> None:
    """Its place is before that of the step, whose process had not seen that the delay is over."""
    team = await pillarbox.team()
    graph = chain(step("start", "trigger", event_name="order.placed"), SET_FIRST)
    await an_automation(team, graph, status="enabled")
    for n in "12":
        await sent(team, "order.placed", n=n)
    while await run_jobs(pillarbox):
        pass
    pool, now, team_id = pillarbox.pool, clock_of(pillarbox).now(), UUID(str(team.id))
    first, second = StepClaims(pool, UUID(int=1)), StepClaims(pool, UUID(int=2))
    assert len(await first.claim([(team_id, 10)], now)) == 1
    await pool.execute(
        "UPDATE automation_work SET order_at = NULL, due_at = due_at - interval '1 hour' WHERE owner IS NULL"
    )
    assert await second.claim([(team_id, 10)], now) == []
    await pool.execute("UPDATE automation_work SET owner = NULL, leased_until = NULL")
    (item,) = await second.claim([(team_id, 10)], now)
    assert item.order_at < now - timedelta(minutes=50)


async def test_nothing_is_claimed_before_a_delay_that_has_yet_to_get_its_place(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = chain(step("start", "trigger", event_name="order.placed"), SET_FIRST)
    await an_automation(team, graph, status="enabled")
    for n in "12":
        await sent(team, "order.placed", n=n)
    while await run_jobs(pillarbox):
        pass
    pool, now, team_id = pillarbox.pool, clock_of(pillarbox).now(), UUID(str(team.id))
    oldest = "(SELECT min(run_id::text)::uuid FROM automation_work)"
    await pool.execute(f"UPDATE automation_work SET order_at = NULL WHERE run_id = {oldest}")
    claims = StepClaims(pool, UUID(int=1))
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute(f"SELECT FROM automation_work WHERE run_id = {oldest} FOR UPDATE")
        assert await claims.claim([(team_id, 10)], now) == []
    (item,) = await claims.claim([(team_id, 10)], now)
    assert item.run_id == await pool.fetchval(f"SELECT {oldest}")


@pytest.mark.usefixtures("few_contacts")
async def test_steps_that_cannot_be_claimed_hide_nobody(pillarbox: World) -> None:
    """Of ten contacts, more than are looked at in one statement, all but one cannot go on."""
    team = await pillarbox.team()
    graph = chain(step("start", "trigger", event_name="order.placed"), SET_FIRST)
    await an_automation(team, graph, status="enabled")
    for number in range(10):
        await sent(team, "order.placed", f"c{number}@quay.example", n="1")
    while await run_jobs(pillarbox):
        pass
    await pillarbox.pool.execute(
        "UPDATE automation_work SET due_at = due_at + interval '1 hour'"
        " WHERE contact_id <> (SELECT max(contact_id::text)::uuid FROM automation_work)"
    )
    engine = pillarbox.app.need(StepEngine)
    await engine._look_until_empty()
    await engine.idle()
    await walk(pillarbox)
    await engine._look_until_empty()
    await engine.idle()
    assert list((await first_names(pillarbox)).values()).count("1") == 1
    clock_of(pillarbox).advance(timedelta(hours=1))
    for _ in range(5):
        await walk(pillarbox)
    assert list((await first_names(pillarbox)).values()).count("1") == 10


async def test_work_of_the_release_before_gets_its_place(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = chain(step("start", "trigger", event_name="order.placed"), SET_FIRST)
    await an_automation(team, graph, status="enabled")
    for n in "12":
        await sent(team, "order.placed", n=n)
    while await run_jobs(pillarbox):
        pass
    await pillarbox.pool.execute("UPDATE automation_work SET order_at = NULL")
    await walk(pillarbox)
    assert await first_names(pillarbox) == {ADA: "2"}


async def first_names(pillarbox: World) -> dict[str, str | None]:
    return {row["address"]: row["first_name"] for row in await pillarbox.pool.fetch(CONTACTS)}
