"""Rules of tens of thousands of comparisons: others have their turn meanwhile, and memory has its bounds."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.automation_rows import an_automation, chain, connection, step
from kit.automation_runs import ADA, a_dead_process, a_template, mails, outputs, run_of, runs, sent, walk
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import World
from pillarbox.automations.execution import engine, receiving, state, timers
from pillarbox.automations.execution import versions as remembered
from pillarbox.automations.execution.versions import GraphVersions
from pillarbox.automations.graphs.evaluation import EvaluationInput, holds, holds_in_turns
from pillarbox.automations.graphs.graph import LIGHT
from pillarbox.automations.graphs.rule_parsing import rule
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults

START = step("start", "trigger", event_name="user.signed_up")


def leaf(text: str) -> dict[str, Any]:
    return {"type": "rule", "field": "event.text", "operator": "contains", "value": text}


def many(count: int) -> dict[str, Any]:
    """So many comparisons, none of them true."""
    rules = [leaf(f"b{number}") for number in range(count)]
    while len(rules) > 1:
        rules = [{"type": "or", "rules": rules[at : at + 20]} for at in range(0, len(rules), 20)]
    return rules[0]


async def test_others_have_their_turn_while_a_large_rule_is_decided() -> None:
    wanted, facts = rule(many(8000), "rule"), EvaluationInput({"text": "a" * 100})
    deciding = asyncio.create_task(holds_in_turns(wanted, facts))
    turns = 0
    while not deciding.done():
        await asyncio.sleep(0)
        turns += 1
    assert await deciding is False
    assert turns >= 8000 / 20


@pytest.mark.parametrize("kind", ["and", "or"])
@pytest.mark.parametrize("texts", [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")])
async def test_in_turns_a_rule_says_the_same(kind: str, texts: tuple[str, str]) -> None:
    other = "or" if kind == "and" else "and"
    first, last = ({"type": other, "rules": [leaf(text), leaf("a")]} for text in texts)
    facts = EvaluationInput({"text": "a"})
    for shown in (first, {"type": kind, "rules": [first, last]}, {"type": kind, "rules": [leaf("a"), last]}):
        wanted = rule(shown, "rule")
        assert await holds_in_turns(wanted, facts) is holds(wanted, facts)


async def test_runs_of_a_heavy_graph_are_carried_out_one_by_one(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = chain(START, {"key": "asks", "type": "condition", "config": many(LIGHT + 1)})
    automation = await an_automation(team, graph, status="enabled")
    for number in range(3):
        await sent(team, "user.signed_up", f"c{number}@quay.example", text="a")
    with faults.armed("automations.written=raise@2"):
        await walk(pillarbox)
    assert len(await runs(team, automation, "completed")) == 2
    assert len(await runs(team, automation, "running")) == 1


async def test_an_event_leaves_heavy_conditions_for_later(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = chain(START, step("paid", "wait_for_event", event_name="user.paid"))
    graph["steps"].append({"key": "asks", "type": "condition", "config": many(LIGHT + 1)})
    graph["connections"].append(connection("paid", "asks", "event_received"))
    automation = await an_automation(team, graph, status="enabled")
    await sent(team, "user.signed_up", text="a")
    await walk(pillarbox)
    await sent(team, "user.paid")
    await walk(pillarbox)
    run = await run_of(team, automation)
    assert run["status"] == "completed"
    assert outputs(run)["asks"] == {"result": False}


class Slow:
    """Rules are not decided before the test lets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        for module in (state, timers, receiving):
            monkeypatch.setattr(module, "holds_in_turns", self.holds)

    async def holds(self, wanted: Any, facts: EvaluationInput) -> bool:
        self.asked.set()
        await self.go.wait()
        return await holds_in_turns(wanted, facts)


@pytest.mark.parametrize("how", ["stop", "delete", "contact"])
@pytest.mark.parametrize("behind", ["trigger", "contact_update"])
async def test_what_ends_a_run_does_not_wait_for_its_rules(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, behind: str
) -> None:
    slow = Slow(monkeypatch)
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        heavy = {"key": "asks", "type": "condition", "config": many(LIGHT + 1)}
        changes = [step("named", "contact_update", first_name="Ada")] if behind == "contact_update" else []
        mail = step("hello", "send_email", template={"id": await a_template(team)})
        graph = chain(START, *changes, heavy)
        graph["steps"].append(mail)
        graph["connections"].append(connection("asks", "hello", "condition_not_met"))
        automation = await an_automation(team, graph, status="enabled")
        await sent(team, "user.signed_up", ADA, text="a")
        walking = asyncio.create_task(walk(pillarbox))
        async with asyncio.timeout(10):
            await slow.asked.wait()
        url, began = f"/automations/{automation}", time.monotonic()
        match how:
            case "stop":
                ended = await team.post(f"{url}/stop")
            case "delete":
                ended = await team.call("DELETE", url)
            case _:
                ended = await team.call("DELETE", f"/contacts/{ADA}")
        assert ended.status_code == 200, ended.text
        assert time.monotonic() - began < 10
        slow.go.set()
        await walking
        assert await mails(team) == []
        left = await pillarbox.pool.fetch("SELECT status FROM automation_runs WHERE status <> 'cancelled'")
        assert left == []
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM automation_work") == 0


async def test_who_disables_does_not_wait_for_the_filters_of_waits(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await pillarbox.team()
    wait = step("paid", "wait_for_event", event_name="user.paid", filter_rule=leaf("a"))
    automation = await an_automation(team, chain(START, wait), status="enabled")
    listens = chain(step("start", "trigger", event_name="user.paid"))
    other = await an_automation(team, listens, status="enabled")
    await sent(team, "user.signed_up", ADA)
    await walk(pillarbox)
    slow = Slow(monkeypatch)
    await sent(team, "user.paid", ADA, text="a")
    walking = asyncio.create_task(walk(pillarbox))
    async with asyncio.timeout(10):
        await slow.asked.wait()
    began = time.monotonic()
    for one in (automation, other):
        assert (await team.post(f"/automations/{one}/stop")).status_code == 200
    assert time.monotonic() - began < 10
    slow.go.set()
    await walking
    assert len(await runs(team, automation, "cancelled")) == 1
    assert await runs(team, other) == []


@pytest.mark.parametrize(("automations", "comparisons"), [(1, LIGHT + 1), (receiving.MOST_FILTERS + 1, 1)])
async def test_who_deletes_a_contact_does_not_wait_for_the_filters_of_waits(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch, automations: int, comparisons: int
) -> None:
    """Nor does a transaction stay idle until the database ends it, and the event is told again for ever."""
    team = await pillarbox.team()
    wait = step("paid", "wait_for_event", event_name="user.paid", filter_rule=many(comparisons))
    for _ in range(automations):
        await an_automation(team, chain(START, wait), status="enabled")
    await sent(team, "user.signed_up", ADA)
    await walk(pillarbox)
    slow = Slow(monkeypatch)
    await sent(team, "user.paid", ADA, text="a")
    walking = asyncio.create_task(walk(pillarbox))
    async with asyncio.timeout(10):
        await slow.asked.wait()
    idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    began = time.monotonic()
    assert await pillarbox.pool.fetchval(f"{idle} AND datname = current_database()") == 0
    assert (await team.call("DELETE", f"/contacts/{ADA}")).status_code == 200
    assert time.monotonic() - began < 10
    slow.go.set()
    await walking
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM events") == 0
    ended = await pillarbox.pool.fetch("SELECT status FROM automation_runs")
    assert [row["status"] for row in ended] == ["cancelled"] * automations


async def test_a_large_filter_ends_its_wait(pillarbox: World) -> None:
    team = await pillarbox.team()
    large = {"type": "or", "rules": [many(LIGHT + 1), leaf("a")]}
    wait = step("paid", "wait_for_event", event_name="user.paid", filter_rule=large)
    automation = await an_automation(team, chain(START, wait), status="enabled")
    await sent(team, "user.signed_up", ADA)
    await walk(pillarbox)
    await sent(team, "user.paid", ADA, text="c")
    await walk(pillarbox)
    assert len(await runs(team, automation, "running")) == 1
    await sent(team, "user.paid", ADA, text="a")
    await walk(pillarbox)
    assert len(await runs(team, automation, "completed")) == 1
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM events") == 0


async def test_a_filter_is_asked_once_for_all_waits(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Any]()

    async def counted(wanted: Any, facts: EvaluationInput) -> bool:
        asked.append(wanted)
        return await holds_in_turns(wanted, facts)

    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        wait = step("paid", "wait_for_event", event_name="user.paid", filter_rule=leaf("a"))
        automation = await an_automation(team, chain(START, wait), status="enabled")
        for _ in range(5):
            await sent(team, "user.signed_up", ADA)
        await walk(pillarbox)
        monkeypatch.setattr(receiving, "holds_in_turns", counted)
        await sent(team, "user.paid", ADA, text="a")
        await walk(pillarbox)
        assert len(await runs(team, automation, "completed")) == 5
        assert len(asked) == 1


async def test_one_event_ends_many_waits_of_its_contact(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = chain(START, step("paid", "wait_for_event", event_name="user.paid"))
    automation = await an_automation(team, graph, status="enabled")
    for _ in range(45):
        await sent(team, "user.signed_up", ADA)
    await walk(pillarbox)
    await sent(team, "user.paid", ADA)
    await walk(pillarbox)
    assert (
        await pillarbox.pool.fetchval(
            "SELECT count(*) FROM automation_runs WHERE automation_id = $1 AND status = 'completed' "
            "AND waited IS NOT NULL",
            UUID(automation),
        )
        == 45
    )


async def test_graphs_are_forgotten_by_their_size(pillarbox: World, monkeypatch: pytest.MonkeyPatch) -> None:
    team = await pillarbox.team()
    config = many(40)
    graph = chain(START, {"key": "asks", "type": "condition", "config": config})
    automations = [UUID(await an_automation(team, graph)) for _ in range(3)]
    monkeypatch.setattr(remembered, "MOST_OCTETS", 7_000)
    db, versions = TeamDb(pillarbox.pool, team.id), GraphVersions()
    found = [await versions.graph(db, automation, 1) for automation in automations]
    assert await versions.graph(db, automations[2], 1) is found[2]
    assert await versions.graph(db, automations[0], 1) is not found[0]


async def test_a_team_whose_work_stands_still_leaves_room_for_others(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_HELD", 8)
    monkeypatch.setattr(engine, "MOST_OF_TEAM", 6)
    async with manual_world(database_url, tmp_path) as pillarbox:
        slow, other = await pillarbox.team(), await pillarbox.team()
        await an_automation(slow, chain(START), status="enabled")
        automation = await an_automation(other, chain(START), status="enabled")
        for number in range(10):
            await sent(slow, "user.signed_up", f"c{number}@quay.example")
        while await run_jobs(pillarbox):
            pass
        steps = pillarbox.app.need(engine.StepEngine)
        async with pillarbox.pool.acquire() as conn, conn.transaction():
            await conn.execute("SELECT FROM automation_runs WHERE team_id = $1 FOR UPDATE", slow.id)
            assert await steps.look() == 6
            await sent(other, "user.signed_up")
            while await run_jobs(pillarbox):
                pass
            assert await steps.look() == 1
            while not await runs(other, automation, "completed"):
                await asyncio.sleep(0)
        await walk(pillarbox)


async def test_of_a_team_with_heavy_graphs_little_is_claimed(pillarbox: World) -> None:
    team = await pillarbox.team()
    graph = chain(START, {"key": "asks", "type": "condition", "config": many(LIGHT + 1)})
    automation = await an_automation(team, graph, status="enabled")
    await sent(team, "user.signed_up", text="a")
    await walk(pillarbox)
    for number in range(12):
        await sent(team, "user.signed_up", f"c{number}@quay.example", text="a")
    while await run_jobs(pillarbox):
        pass
    assert await pillarbox.app.need(engine.StepEngine).look() == engine.MOST_HEAVY
    await walk(pillarbox)
    assert len(await runs(team, automation, "completed")) == 13


async def test_work_of_the_dead_that_is_locked_holds_nobody_up(pillarbox: World) -> None:
    team = await pillarbox.team()
    automation = await an_automation(team, chain(START), status="enabled")
    for number in range(2):
        await sent(team, "user.signed_up", f"c{number}@quay.example")
    while await run_jobs(pillarbox):
        pass
    await pillarbox.pool.execute(
        "UPDATE automation_work SET owner = $1, leased_until = $2, attempt = 1",
        await a_dead_process(pillarbox),
        pillarbox.clock.now() + timedelta(seconds=60),
    )
    async with pillarbox.pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM automation_work ORDER BY run_id LIMIT 1 FOR UPDATE")
        await walk(pillarbox)
        assert len(await runs(team, automation, "completed")) == 1
    clock_of(pillarbox).advance(timedelta(seconds=6))
    await walk(pillarbox)
    assert len(await runs(team, automation, "completed")) == 2
