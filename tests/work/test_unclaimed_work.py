"""`pillarbox verify` names work that nothing will claim, in each of the four tables that have any."""

from __future__ import annotations

import pytest

from kit.automation_rows import an_automation, chain, step
from kit.automation_runs import sent, walk
from kit.brought import INVARIANTS
from kit.webhooks import hook, publish
from kit.world import World
from pillarbox.delivery.items import QUARANTINED

FAR = "9999-01-01"
DAMAGE = [
    (
        "UPDATE deliveries SET owner = NULL, leased_until = NULL, due_at = '{quarantined}', reason = 'fatal'",
        "delivery_quarantined",
    ),
    (
        "UPDATE webhook_deliveries SET owner = NULL, leased_until = NULL, due_at = '{far}'",
        "delivery_out_of_reach",
    ),
    ("UPDATE automation_work SET due_at = '{far}'", "work_out_of_reach"),
    ("UPDATE jobs SET due_at = '{far}'", "job_out_of_reach"),
    ("UPDATE jobs SET attempt = tries + 4, begun = 3", "job_given_up"),
]


async def named(pillarbox: World) -> set[str]:
    """The invariants that do not hold, of those that are about work in time."""
    found = set()
    for invariant in INVARIANTS:
        if invariant.name in {name for _, name in DAMAGE}:
            for row in await pillarbox.pool.fetch(invariant.sql, 10, *invariant.args):
                assert invariant.sentence.format(**dict(row))
                found.add(invariant.name)
    return found


@pytest.mark.parametrize(("damage", "name"), DAMAGE, ids=[name for _, name in DAMAGE])
async def test_work_that_nothing_claims_is_named(pillarbox: World, damage: str, name: str) -> None:
    """What a restore holds is not among it."""
    team = await pillarbox.team()
    graph = chain(
        step("start", "trigger", event_name="user.signed_up"), step("pause", "delay", duration="1h")
    )
    await an_automation(team, graph, status="enabled")
    await sent(team, "user.signed_up")
    await walk(pillarbox)
    await hook(team)
    await publish(team)
    await team.send()
    await sent(team, "user.signed_up")
    assert await named(pillarbox) == set()
    await pillarbox.pool.execute(damage.format(quarantined=QUARANTINED, far=FAR))
    assert await named(pillarbox) == {name}
    if "{far}" in damage:
        await pillarbox.pool.execute(f"UPDATE {damage.split()[1]} SET restored_due_at = now()")
        assert await named(pillarbox) == set()
