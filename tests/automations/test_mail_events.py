"""Waits for what happens to mail (automations.md 3.5)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.automation_rows import an_automation, chain, connection, step
from kit.automation_runs import ADA, a_template, go, happens, outputs, run_of, runs, sent, statuses, walk
from kit.manual_world import clock_of, manual_world
from kit.world import Team, World
from pillarbox.automations.execution.mail_forwarding import MailEventForwarder
from pillarbox.automations.execution.parts import subscription
from pillarbox.automations.graphs.graph import MAIL_EVENTS
from pillarbox.automations.mail_events import KEPT, NAME
from pillarbox.automations.retention import RunRetention
from pillarbox.timeline.rules import ClickDetail, EventDetail, EventKind

START = step("start", "trigger", event_name="user.signed_up")


def graph(template: str, *between: dict[str, Any], name: str = "opened", **config: Any) -> dict[str, Any]:
    """A mail, what stands between, and a wait for what happens to it."""
    wait = step("pause", "wait_for_event", event_name=f"resend:email.{name}", **config)
    made = chain(START, step("hello", "send_email", template={"id": template}), *between, wait)
    made["steps"].append(step("thanks", "delay", duration="1 hour"))
    made["connections"].append(connection("pause", "thanks", "event_received"))
    return made


async def sent_mail(team: Team, automation: str) -> str:
    """The id of the mail that the only run has sent."""
    return str(outputs(await run_of(team, automation))["hello"]["email_id"])


async def signed_up(team: Team, made: dict[str, Any]) -> str:
    """An enabled automation with one run that waits, its mail delivered."""
    automation = await an_automation(team, made, status="enabled")
    await sent(team, "user.signed_up")
    await go(team.world)
    await team.world.turn()
    await go(team.world)
    return automation


async def test_a_wait_ends_when_the_mail_of_its_run_is_opened(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.domain()
    automation = await signed_up(team, graph(await a_template(team)))
    assert statuses(await run_of(team, automation))["pause"] == "waiting"
    other = await team.send(to=ADA)
    await pillarbox.turn()
    await happens(team, other, EventKind.OPENED)
    await go(pillarbox)
    assert statuses(await run_of(team, automation))["pause"] == "waiting"
    await happens(team, await sent_mail(team, automation), EventKind.OPENED)
    await go(pillarbox)
    run = await run_of(team, automation)
    assert outputs(run)["pause"] == {"outcome": "event_received"}
    assert statuses(run)["thanks"] == "waiting"


async def test_what_happened_before_the_wait_began_counts(pillarbox: World) -> None:
    """Mail that was delivered at once, while the run waited for something else."""
    team = await pillarbox.team()
    await team.domain()
    made = graph(await a_template(team), step("day", "delay", duration="1 day"), name="delivered")
    automation = await signed_up(team, made)
    assert statuses(await run_of(team, automation))["day"] == "waiting"
    clock_of(pillarbox).advance(timedelta(days=1).total_seconds())
    await go(pillarbox)
    assert outputs(await run_of(team, automation))["pause"] == {"outcome": "event_received"}


async def test_without_mail_of_the_run_any_mail_to_the_contact_counts(pillarbox: World) -> None:
    """What happened before the wait began does not."""
    team = await pillarbox.team()
    await team.domain()
    made = chain(START, step("pause", "wait_for_event", event_name="resend:email.delivered"))
    automation = await an_automation(team, made, status="enabled")
    await team.send(to=ADA)
    await pillarbox.turn()
    await sent(team, "user.signed_up")
    await go(pillarbox)
    assert statuses(await run_of(team, automation))["pause"] == "waiting"
    await team.send(to="bob@quay.example")
    await pillarbox.turn()
    await go(pillarbox)
    assert statuses(await run_of(team, automation))["pause"] == "waiting"
    await team.send(to=f"Ada <{ADA}>")
    await pillarbox.turn()
    await go(pillarbox)
    assert outputs(await run_of(team, automation))["pause"] == {"outcome": "event_received"}


async def test_filters_and_conditions_read_the_data_of_the_event(database_url: str, tmp_path: Path) -> None:
    offer = "https://quay.example/offer"
    rule = {"type": "rule", "field": "event.click.link", "operator": "eq", "value": offer}
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        made = graph(await a_template(team), name="clicked", filter_rule=rule)
        made["steps"].append(
            {
                "key": "link",
                "type": "condition",
                "config": {
                    **rule,
                    "field": "wait_events.resend:email.clicked.click.link",
                    "operator": "starts_with",
                },
            }
        )
        made["connections"].append(connection("pause", "link", "event_received"))
        automation = await signed_up(team, made)
        email_id = await sent_mail(team, automation)
        for link in ("https://quay.example/other", offer):
            click = ClickDetail("192.0.2.1", link, pillarbox.clock.now(), "Mozilla/5.0")
            await happens(team, email_id, EventKind.CLICKED, EventDetail(click=click))
            await go(pillarbox)
            ended = statuses(await run_of(team, automation))["pause"] == "completed"
            assert ended == (link == offer)
        assert outputs(await run_of(team, automation))["link"] == {"result": True}


async def test_a_wait_that_begins_while_its_event_is_distributed_ends(
    database_url: str, tmp_path: Path
) -> None:
    """The event was accepted while the transaction of the step before the wait was open."""
    from pillarbox.automations.execution.state import open_runs, write
    from pillarbox.automations.execution.versions import GraphVersions

    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        made = chain(
            START,
            step("short", "delay", duration="1 minute"),
            step("pause", "wait_for_event", event_name="user.paid"),
        )
        automation = await an_automation(team, made, status="enabled")
        await sent(team, "user.signed_up")
        await walk(pillarbox)
        clock_of(pillarbox).advance(60)
        run_id = UUID((await runs(team, automation))[0]["id"])
        await pillarbox.pool.execute(
            "UPDATE automation_work SET order_at = due_at, owner = $1, leased_until = now() + interval '1 h'",
            UUID(int=1),
        )
        async with team.db.transaction() as db:
            opened = await open_runs(db, pillarbox.app.need(GraphVersions), [run_id], pillarbox.clock.now())
            await sent(team, "user.paid")
            distributing = asyncio.create_task(walk(pillarbox))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(distributing), 0.5)
            opened[run_id].walk.finish(1)
            await write(db, [opened[run_id].walk])
        await distributing
        await walk(pillarbox)
        assert outputs(await run_of(team, automation))["pause"] == {"outcome": "event_received"}


@pytest.mark.parametrize("name", sorted(MAIL_EVENTS))
async def test_every_event_of_mail_can_be_waited_for(pillarbox: World, name: str) -> None:
    team = await pillarbox.team()
    made = chain(START, step("pause", "wait_for_event", event_name=name))
    automation = await an_automation(team, made, status="enabled")
    shown = (await team.get(f"/automations/{automation}")).json()
    assert shown["steps"][1]["config"]["event_name"] == name
    subscribed = "SELECT events FROM webhooks WHERE team_id = $1 AND endpoint = $2"
    assert await pillarbox.pool.fetchval(subscribed, team.id, NAME) == [MAIL_EVENTS[name]]
    assert (await team.get("/webhooks")).json()["data"] == []


@pytest.mark.parametrize("name", ["resend:email.sent", "resend:x", "resend:email.opened.twice"])
async def test_other_reserved_names_are_refused(pillarbox: World, name: str) -> None:
    team = await pillarbox.team()
    made = chain(START, step("pause", "wait_for_event", event_name=name))
    answer = await team.post("/automations", {"name": "Waits", **made})
    assert (answer.status_code, answer.json()["name"]) == (422, "validation_error")
    trigger = chain(step("start", "trigger", event_name="resend:email.opened"))
    assert (await team.post("/automations", {"name": "Starts", **trigger})).status_code == 422


async def test_a_subscription_ends_a_day_after_nothing_needs_it(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = chain(START, step("pause", "wait_for_event", event_name="resend:email.opened"))
    automation = await an_automation(team, made, status="enabled")
    retention = RunRetention(pillarbox.pool, pillarbox.clock, subscription(pillarbox.app.kit))
    clock_of(pillarbox).advance(KEPT.total_seconds() + 1)
    assert (await retention.collect()).endswith("0 subscriptions")
    assert (await team.post(f"/automations/{automation}/stop")).status_code == 200
    assert (await retention.collect()).endswith("1 subscriptions")


async def test_the_events_of_a_dead_process_are_forwarded_once(database_url: str, tmp_path: Path) -> None:
    """Forwarding is one transaction: before its commit nothing has happened, after it nothing is left."""
    from pillarbox.kernel.process import faults

    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        automation = await signed_up(team, graph(await a_template(team)))
        await happens(team, await sent_mail(team, automation), EventKind.OPENED)
        forwarder = pillarbox.app.need(MailEventForwarder)
        with faults.armed("automations.forwarded=raise"), pytest.raises(Exception, match="forwarded"):
            await forwarder.look()
        assert [await forwarder.look(), await forwarder.look()] == [1, 0]
        await go(pillarbox)
        assert outputs(await run_of(team, automation))["pause"] == {"outcome": "event_received"}
