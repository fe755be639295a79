"""Runs in a database that was restored: they go on when the operator says so, or not at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kit.automation_rows import an_automation, chain, step
from kit.automation_runs import a_template, mails, runs, sent, walk
from kit.manual_world import clock_of
from kit.world import World
from pillarbox.automations.invariants import INVARIANTS
from pillarbox.backup import restored
from pillarbox.backup.restored import RestoredChoice
from pillarbox.kernel.postgres.database import transaction
from pillarbox.timeline.record import Timeline


@pytest.mark.parametrize("is_released", [True, False], ids=["released", "dropped"])
async def test_what_was_open_waits_for_the_operator(pillarbox: World, is_released: bool) -> None:
    team, now = await pillarbox.team(), pillarbox.clock.now
    graph = chain(
        step("start", "trigger", event_name="user.signed_up"),
        step("pause", "delay", duration="1 hour"),
        step("mail", "send_email", template={"id": await a_template(team)}),
    )
    automation = await an_automation(team, graph, status="enabled")
    await sent(team, "user.signed_up")
    await walk(pillarbox)
    async with transaction(pillarbox.pool) as conn:
        await restored.put_aside(conn, "backup", now(), now())
    clock_of(pillarbox).advance(timedelta(hours=2))
    await walk(pillarbox)
    assert [one["status"] for one in await runs(team, automation)] == ["running"]
    [found] = await restored.summary(pillarbox.pool, now())
    assert (found.kind, found.items) == ("automations", 1)
    if is_released:
        assert await restored.release(pillarbox.pool, RestoredChoice(), None, now) == 1
    else:
        assert await restored.drop(pillarbox.pool, RestoredChoice(), pillarbox.app.need(Timeline), now) == 1
    assert await restored.origin(pillarbox.pool) is None
    await walk(pillarbox)
    [run] = await runs(team, automation)
    assert run["status"] == ("completed" if is_released else "cancelled")
    assert await mails(team) == ["Welcome"] * is_released
    for invariant in INVARIANTS:
        assert await pillarbox.pool.fetch(invariant.sql, 10, *invariant.args) == []
