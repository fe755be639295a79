"""`pillarbox verify` names what is wrong with runs."""

from __future__ import annotations

import pytest

from kit.automation_rows import an_automation, chain, step
from kit.automation_runs import sent, walk
from kit.world import World
from pillarbox.automations.invariants import INVARIANTS

RUN = "INSERT INTO automation_steps (team_id, run_id, position, status) SELECT team_id, gen_random_uuid()"
DAMAGE = [
    ("DELETE FROM automation_work", {"run_without_work", "waiting_step_without_work"}),
    (
        "UPDATE automation_runs SET status = 'cancelled', completed_at = now()",
        {"work_without_run"},
    ),
    ("UPDATE automation_work SET waiting = false", {"waiting_step_without_work"}),
    ("UPDATE automation_steps SET status = 'completed' WHERE position = 1", {"ended_step_with_work"}),
    (f"{RUN}, 0, 'completed' FROM automation_runs", {"step_without_run"}),
    ("DELETE FROM automation_versions", {"run_without_version"}),
    ("UPDATE automation_work SET due_at = '9999-01-01'", {"work_out_of_reach"}),
]


async def violations(pillarbox: World) -> set[str]:
    found = set()
    for invariant in INVARIANTS:
        for row in await pillarbox.pool.fetch(invariant.sql, 10, *invariant.args):
            assert invariant.sentence.format(**dict(row))
            found.add(invariant.name)
    return found


@pytest.mark.parametrize(("damage", "named"), DAMAGE, ids=[sorted(named)[0] for _, named in DAMAGE])
async def test_what_is_wrong_is_named(pillarbox: World, damage: str, named: set[str]) -> None:
    team = await pillarbox.team()
    graph = chain(
        step("start", "trigger", event_name="user.signed_up"), step("pause", "delay", duration="1h")
    )
    await an_automation(team, graph, status="enabled")
    await sent(team, "user.signed_up")
    await walk(pillarbox)
    assert await violations(pillarbox) == set()
    await pillarbox.pool.execute(damage)
    assert await violations(pillarbox) == named


def test_every_invariant_has_its_damage() -> None:
    assert {invariant.name for invariant in INVARIANTS} == set().union(*(named for _, named in DAMAGE))
