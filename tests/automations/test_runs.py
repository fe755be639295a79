"""Runs (automations.md 5): what events start, and what steps do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.automation_rows import an_automation, chain, connection, lone_trigger, step
from kit.automation_runs import (
    ADA,
    a_template,
    errors,
    mails,
    outputs,
    run_of,
    runs,
    sent,
    statuses,
    walk,
)
from kit.inbox_rows import an_inbox
from kit.manual_world import clock_of, manual_world
from kit.world import Team

START = step("start", "trigger", event_name="user.signed_up")
ENABLED = {"status": "enabled"}


@asynccontextmanager
async def a_team(database_url: str, folder: Path) -> AsyncIterator[Team]:
    async with manual_world(database_url, folder, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        yield team


def wait(team: Team, **time: float) -> None:
    clock_of(team.world).advance(timedelta(**time))


async def go(team: Team) -> int:
    return await walk(team.world)


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return a_team(database_url, tmp_path)


async def test_an_event_starts_a_run_and_makes_the_contact(team: Team) -> None:
    automation = await an_automation(team, lone_trigger(), **ENABLED)
    await sent(team, "user.signed_up", "Ada@Quay.example")
    await sent(team, "user.left")
    await go(team)
    run = await run_of(team, automation)
    assert list(run) == [
        "object",
        "id",
        "status",
        "started_at",
        "completed_at",
        "created_at",
        "steps",
    ]
    assert (run["object"], run["status"]) == ("automation_run", "completed")
    assert run["created_at"] <= run["started_at"] <= run["completed_at"]
    [shown] = run["steps"]
    assert list(shown) == [
        "key",
        "type",
        "status",
        "started_at",
        "completed_at",
        "output",
        "error",
        "created_at",
    ]
    assert (shown["key"], shown["status"], shown["output"]) == ("start", "completed", None)
    [contact] = (await team.get("/contacts")).json()["data"]
    assert (contact["email"], contact["unsubscribed"]) == (ADA, False)


async def test_two_events_are_two_runs_and_nobody_listens_to_others(team: Team) -> None:
    automation = await an_automation(team, lone_trigger(), **ENABLED)
    disabled = await an_automation(team, lone_trigger())
    await sent(team, "user.signed_up")
    await sent(team, "user.signed_up")
    await sent(team, "nobody.listens", "bob@quay.example")
    await go(team)
    assert len(await runs(team, automation)) == 2
    assert await runs(team, disabled) == []
    assert len((await team.get("/contacts")).json()["data"]) == 1


async def test_each_matching_trigger_starts_its_own_run(team: Team) -> None:
    graph = {
        "steps": [
            START,
            step("again", "trigger", event_name="user.signed_up"),
            step("d", "delay", duration="1h"),
        ],
        "connections": [connection("start", "d"), connection("again", "d")],
    }
    automation = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    found = await runs(team, automation)
    shown = [
        statuses((await team.get(f"/automations/{automation}/runs/{one['id']}")).json()) for one in found
    ]
    assert sorted(shown, key=str) == [
        {"start": "completed", "again": "skipped", "d": "waiting"},
        {"start": "skipped", "again": "completed", "d": "waiting"},
    ]


async def test_the_state_when_the_event_was_accepted_decides(team: Team) -> None:
    enabled_later = await an_automation(team)
    disabled_before = await an_automation(team, **ENABLED)
    off_and_on = await an_automation(team, **ENABLED)
    await sent(team, "user.signed_up")
    wait(team, seconds=1)
    await team.call("PATCH", f"/automations/{enabled_later}", ENABLED)
    await team.call("PATCH", f"/automations/{disabled_before}", {"status": "disabled"})
    for status in ("disabled", "enabled"):
        await team.call("PATCH", f"/automations/{off_and_on}", {"status": status})
    await go(team)
    for automation in (enabled_later, disabled_before, off_and_on):
        assert await runs(team, automation) == []


async def test_a_delay_waits_for_as_long_as_it_says(team: Team) -> None:
    graph = chain(START, step("pause", "delay", duration="2 hours"), step("gone", "contact_delete"))
    automation = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    run = await run_of(team, automation)
    assert statuses(run) == {"start": "completed", "pause": "waiting", "gone": "pending"}
    assert (run["status"], run["completed_at"]) == ("running", None)
    wait(team, minutes=119)
    assert await go(team) == 0
    wait(team, minutes=1)
    await go(team)
    run = await run_of(team, automation)
    assert (run["status"], set(statuses(run).values())) == ("completed", {"completed"})
    assert (await team.get("/contacts")).json()["data"] == []


async def test_an_email_is_sent_of_the_published_template_with_values_of_the_event(team: Team) -> None:
    """What came with the event is escaped, what stands in the graph is not."""
    template = await a_template(
        team,
        html="<p>{{{PLAN}}} {{{SEATS}}} {{{NOTE}}} {{{YES}}} {{{contact.email}}}</p>",
        text="{{{ITEMS}}} {{{BOUGHT}}}",
        variables=[
            {"key": "PLAN", "type": "string"},
            {"key": "SEATS", "type": "number"},
            {"key": "NOTE", "type": "string"},
            {"key": "YES", "type": "string"},
            {"key": "ITEMS", "type": "string"},
            {"key": "BOUGHT", "type": "string"},
        ],
    )
    variables = {
        "PLAN": {"var": "event.plan"},
        "SEATS": {"var": "event.seats"},
        "NOTE": "<b>new</b>",
        "YES": True,
        "ITEMS": [{"name": "Tea", "price": 2.5}],
        "BOUGHT": {"var": "event.bought"},
    }
    mail = step(
        "hello",
        "send_email",
        template={"id": template, "variables": variables},
        subject="For {{{PLAN}}}",
        reply_to="desk@harbor.example",
    )
    automation = await an_automation(team, chain(START, mail), **ENABLED)
    await sent(team, "user.signed_up", plan="<pro>", seats="3", bought=["Tea", 1])
    await go(team)
    run = await run_of(team, automation)
    assert run["status"] == "completed", run
    email = await team.email(outputs(run)["hello"]["email_id"])
    assert email["to"] == [ADA]
    assert email["subject"] == "For <pro>"
    assert email["html"] == f"<p>&lt;pro&gt; 3 <b>new</b> true {ADA}</p>"
    assert email["text"] == '[{"name":"Tea","price":2.5}] ["Tea",1]'
    assert email["reply_to"] == ["desk@harbor.example"]


async def test_a_template_that_changes_while_a_run_waits_is_sent_as_it_is_published_then(team: Team) -> None:
    template = await a_template(team)
    graph = chain(
        START,
        step("pause", "delay", duration="1 day"),
        step("hello", "send_email", template={"id": template}),
    )
    automation = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    await team.call("PATCH", f"/templates/{template}", {"subject": "New"})
    await team.post(f"/templates/{template}/publish")
    await team.call("PATCH", f"/templates/{template}", {"subject": "Draft"})
    wait(team, days=1)
    await go(team)
    assert (await run_of(team, automation))["status"] == "completed"
    assert await mails(team) == ["New"]
    [email] = (await team.get("/emails?source=automation")).json()["data"]
    assert email["subject"] == "New"


async def test_an_email_without_a_sender_fails_its_run(team: Team) -> None:
    """Parallel branches that have not begun are skipped, those that wait too."""
    template = await a_template(team, from_=None)
    graph = {
        "steps": [
            START,
            step("pause", "wait_for_event", event_name="user.paid"),
            step("short", "delay", duration="1 minute"),
            step("hello", "send_email", template={"id": template}),
            step("later", "delay", duration="1 minute"),
        ],
        "connections": [
            connection("start", "pause"),
            connection("start", "short"),
            connection("short", "hello"),
            connection("hello", "later"),
        ],
    }
    automation = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    wait(team, minutes=1)
    await go(team)
    run = await run_of(team, automation)
    assert (run["status"], errors(run)) == ("failed", {"hello": "missing_from"})
    assert statuses(run) == {
        "start": "completed",
        "pause": "skipped",
        "short": "completed",
        "hello": "failed",
        "later": "skipped",
    }
    assert await team.world.pool.fetchval("SELECT count(*) FROM automation_work") == 0


async def test_a_wait_ends_with_the_first_event_that_fits(database_url: str, tmp_path: Path) -> None:
    """Events from before, of others and that do not fit leave it waiting."""
    rule = {"type": "rule", "field": "event.amount", "operator": "gte", "value": 10}
    async with a_team(database_url, tmp_path) as team:
        graph = {
            "steps": [
                START,
                step("pause", "wait_for_event", event_name="user.paid", timeout="3 days", filter_rule=rule),
                step(
                    "much",
                    "condition",
                    type="rule",
                    field="wait_events.user.paid.amount",
                    operator="gt",
                    value=99,
                ),
                step("late", "contact_delete"),
                step("thanks", "delay", duration="1 hour"),
            ],
            "connections": [
                connection("start", "pause"),
                connection("pause", "much", "event_received"),
                connection("pause", "late", "timeout"),
                connection("much", "thanks", "condition_met"),
            ],
        }
        automation = await an_automation(team, graph, **ENABLED)
        await sent(team, "user.paid", amount=500)
        await sent(team, "user.signed_up")
        await go(team)
        await sent(team, "user.paid", amount=9)
        await sent(team, "user.paid", "bob@quay.example", amount=100)
        await go(team)
        assert statuses(await run_of(team, automation))["pause"] == "waiting"
        await sent(team, "user.paid", amount=100)
        await go(team)
        run = await run_of(team, automation)
        assert outputs(run)["pause"] == {"outcome": "event_received"}
        assert outputs(run)["much"] == {"result": True}
        assert statuses(run) == {
            "start": "completed",
            "pause": "completed",
            "much": "completed",
            "late": "skipped",
            "thanks": "waiting",
        }


async def test_a_wait_without_an_event_times_out(team: Team) -> None:
    graph = {
        "steps": [START, step("pause", "wait_for_event", event_name="user.paid", timeout="3 days")],
        "connections": [connection("start", "pause")],
    }
    automation = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    wait(team, days=3)
    await sent(team, "user.paid")
    await go(team)
    run = await run_of(team, automation)
    assert (run["status"], outputs(run)["pause"]) == ("completed", {"outcome": "timeout"})


async def test_both_outcomes_of_a_wait_may_lead_to_one_step_which_runs_once(team: Team) -> None:
    template = await a_template(team)
    graph = {
        "steps": [
            START,
            step("pause", "wait_for_event", event_name="user.paid", timeout="1 hour"),
            step("other", "delay", duration="30 minutes"),
            step("hello", "send_email", template={"id": template}),
        ],
        "connections": [
            connection("start", "pause"),
            connection("start", "other"),
            connection("other", "hello"),
            connection("pause", "hello", "timeout"),
            connection("pause", "hello", "event_received"),
        ],
    }
    automation = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    for _ in range(3):
        wait(team, minutes=30)
        await sent(team, "user.paid")
        await go(team)
    run = await run_of(team, automation)
    assert (run["status"], set(statuses(run).values())) == ("completed", {"completed"})
    assert await mails(team) == ["Welcome"]


async def test_a_disabled_automation_lets_its_runs_finish_and_a_stopped_one_does_not(team: Team) -> None:
    graph = chain(START, step("pause", "delay", duration="1 day"))
    disabled = await an_automation(team, graph, **ENABLED)
    stopped = await an_automation(team, graph, **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    await team.call("PATCH", f"/automations/{disabled}", {"status": "disabled"})
    await team.post(f"/automations/{stopped}/stop")
    wait(team, days=1)
    await go(team)
    assert (await run_of(team, disabled))["status"] == "completed"
    run = await run_of(team, stopped)
    assert (run["status"], statuses(run)["pause"]) == ("cancelled", "skipped")
    assert run["completed_at"] is not None


async def test_a_contact_who_left_gets_no_mail_and_the_run_goes_on(team: Team) -> None:
    """From everything, or from the topic of the step."""
    template = await a_template(team)
    segment = (await team.post("/segments", {"name": "Left"})).json()["id"]
    topic = (await team.post("/topics", {"name": "News", "default_subscription": "opt_in"})).json()["id"]
    graph = chain(
        START,
        step("hello", "send_email", template={"id": template}, topic_id=topic),
        step("note", "add_to_segment", segment_id=segment),
    )
    automation = await an_automation(team, graph, **ENABLED)
    await team.post("/contacts", {"email": ADA, "unsubscribed": True})
    await team.post(
        "/contacts", {"email": "bob@quay.example", "topics": [{"id": topic, "subscription": "opt_out"}]}
    )
    for address in (ADA, "bob@quay.example", "eve@quay.example"):
        await sent(team, "user.signed_up", address)
    await go(team)
    found = await runs(team, automation)
    shown = [(await team.get(f"/automations/{automation}/runs/{one['id']}")).json() for one in found]
    assert sorted(statuses(run)["hello"] for run in shown) == ["completed", "skipped", "skipped"]
    assert {run["status"] for run in shown} == {"completed"}
    assert {statuses(run)["note"] for run in shown} == {"completed"}
    assert len((await team.get(f"/contacts?segment_id={segment}")).json()["data"]) == 3
    assert await mails(team) == ["Welcome"]


async def test_a_contact_is_updated_with_values_and_fallbacks(team: Team) -> None:
    for key, kind in (("plan", "string"), ("seats", "number")):
        await team.post("/contact-properties", {"key": key, "type": kind})
    update = step(
        "note",
        "contact_update",
        first_name={"var": "event.name"},
        last_name=None,
        unsubscribed=True,
        properties={"plan": "pro", "seats": {"var": "event.seats"}},
    )
    automation = await an_automation(team, chain(START, update), **ENABLED)
    await team.post("/contacts", {"email": ADA, "first_name": "A", "last_name": "B"})
    await sent(team, "user.signed_up", seats="3")
    await go(team)
    assert (await run_of(team, automation))["status"] == "completed"
    contact = (await team.get(f"/contacts/{ADA}")).json()
    assert (contact["first_name"], contact["last_name"], contact["unsubscribed"]) == ("A", None, True)
    values = {key: one["value"] for key, one in contact["properties"].items()}
    assert values == {"plan": "pro", "seats": 3}


async def test_what_a_step_names_may_be_gone_when_it_begins(team: Team) -> None:
    template = await a_template(team)
    segment = (await team.post("/segments", {"name": "Left"})).json()["id"]
    topic = (await team.post("/topics", {"name": "News", "default_subscription": "opt_in"})).json()["id"]
    plan = (await team.post("/contact-properties", {"key": "plan", "type": "string"})).json()["id"]
    steps = {
        "template_not_found": step("x", "send_email", template={"id": template}),
        "topic_not_found": step("x", "send_email", template={"id": template}, topic_id=topic),
        "segment_not_found": step("x", "add_to_segment", segment_id=segment),
        "property_not_found": step("x", "contact_update", properties={"plan": "pro"}),
        "invalid_variable": step("x", "contact_update", unsubscribed={"var": "event.word"}),
        "domain_not_verified": step(
            "x", "send_email", template={"id": await a_template(team, from_="a@elsewhere.example")}
        ),
        "missing_variable": step(
            "x",
            "send_email",
            template={
                "id": await a_template(
                    team, html="<p>{{{NAME}}}</p>", variables=[{"key": "NAME", "type": "string"}]
                )
            },
        ),
    }
    automations = {
        name: await an_automation(team, chain(START, one), **ENABLED) for name, one in steps.items()
    }
    await team.call("DELETE", f"/segments/{segment}")
    await team.call("DELETE", f"/topics/{topic}")
    await team.call("DELETE", f"/contact-properties/{plan}")
    await sent(team, "user.signed_up", word="yes")
    await team.call("DELETE", f"/templates/{template}")
    await go(team)
    found = {name: errors(await run_of(team, one)) for name, one in automations.items()}
    assert found == {name: {"x": name} for name in steps}
    assert await mails(team) == []


async def test_the_inbox_that_sends_sends_as_much_as_its_policy_allows(team: Team) -> None:
    """Mails are made many at a time: those within the limit are sent, the others fail by themselves."""
    await an_inbox(team, "hi")
    template = await a_template(team)
    automation = await an_automation(
        team, chain(START, step("x", "send_email", template={"id": template})), **ENABLED
    )

    async def found(people: str, **policy: Any) -> list[tuple[str, str]]:
        """Return the errors of new runs, with their messages."""
        assert (await team.call("PUT", "/inboxes/hi@harbor.example/policy", policy)).status_code == 200
        before = {run["id"] for run in await runs(team, automation)}
        for person in people:
            await sent(team, "user.signed_up", f"{person}@quay.example")
        await go(team)
        paths = [
            f"/automations/{automation}/runs/{run['id']}"
            for run in await runs(team, automation)
            if run["id"] not in before
        ]
        steps = [(await team.get(path)).json()["steps"][1] for path in paths]
        return [(one["error"]["name"], one["error"]["message"]) for one in steps if one["error"]]

    limited = await found("abcde", messages_per_hour=2)
    message = "The policy of this inbox allows 2 messages in one hour."
    assert limited == [("quota_exceeded", message)] * 3
    assert len(await mails(team)) == 2
    message = "The policy of this inbox blocks mail to f@quay.example."
    assert await found("f", blocked_recipients=["quay.example"]) == [("refused_by_policy", message)]


async def test_a_run_that_deletes_its_contact_goes_on_and_others_of_it_end(team: Team) -> None:
    template = await a_template(team)
    graph = {
        "steps": [
            START,
            step("gone", "contact_delete"),
            step("there", "condition", type="rule", field="contact.email", operator="exists"),
            step("mail", "send_email", template={"id": template}),
            step("pause", "wait_for_event", event_name="user.paid"),
            step("end", "delay", duration="1 hour"),
        ],
        "connections": [
            connection("start", "gone"),
            connection("gone", "there"),
            connection("there", "mail", "condition_not_met"),
            connection("mail", "pause"),
            connection("mail", "end"),
        ],
    }
    deleting = await an_automation(team, graph, **ENABLED)
    other = await an_automation(team, chain(START, step("pause", "delay", duration="1 hour")), **ENABLED)
    await sent(team, "user.signed_up")
    await go(team)
    run = await run_of(team, deleting)
    assert statuses(run) == {
        "start": "completed",
        "gone": "completed",
        "there": "completed",
        "mail": "skipped",
        "pause": "skipped",
        "end": "waiting",
    }
    assert (await run_of(team, other))["status"] == "cancelled"
    wait(team, hours=1)
    await go(team)
    assert (await run_of(team, deleting))["status"] == "completed"


async def test_deleting_a_contact_cancels_what_runs_for_it(team: Team) -> None:
    automation = await an_automation(team, chain(START, step("pause", "delay", duration="1 hour")), **ENABLED)
    await sent(team, "user.signed_up")
    await sent(team, "user.signed_up", "bob@quay.example")
    await go(team)
    assert (await team.call("DELETE", f"/contacts/{ADA}")).status_code == 200
    assert sorted(one["status"] for one in await runs(team, automation)) == ["cancelled", "running"]


async def test_runs_are_listed_by_status(team: Team) -> None:
    automation = await an_automation(team, chain(START, step("pause", "delay", duration="1 hour")), **ENABLED)
    other = await an_automation(team)
    for number in range(3):
        await sent(team, "user.signed_up", f"c{number}@quay.example")
    await go(team)
    await team.call("DELETE", "/contacts/c1@quay.example")
    everything = await runs(team, automation)
    assert [one["id"] for one in everything] == sorted((one["id"] for one in everything), reverse=True)
    assert len(await runs(team, automation, "running,failed")) == 2
    [cancelled] = await runs(team, automation, "cancelled")
    refused = await team.get(f"/automations/{automation}/runs?status=waiting")
    assert refused.status_code == 422
    assert "Invalid `status` parameter." in refused.json()["message"]
    page = (await team.get(f"/automations/{automation}/runs?limit=1&status=running")).json()
    assert page["has_more"] is True
    rest = (await team.get(f"/automations/{automation}/runs?after={page['data'][0]['id']}")).json()
    assert [one["id"] for one in rest["data"]] == [
        one["id"] for one in everything if one["id"] < page["data"][0]["id"]
    ]
    foreign = await team.get(f"/automations/{other}/runs/{cancelled['id']}")
    assert (foreign.status_code, foreign.json()["message"]) == (404, "Automation run not found")


async def test_a_quota_that_is_used_up_fails_the_step(team: Team) -> None:
    template = await a_template(team)
    automation = await an_automation(
        team, chain(START, step("hello", "send_email", template={"id": template})), **ENABLED
    )
    await team.world.pool.execute("UPDATE teams SET daily_quota = 2 WHERE id = $1", team.id)
    for number in range(3):
        await sent(team, "user.signed_up", f"c{number}@quay.example")
    await go(team)
    assert sorted(one["status"] for one in await runs(team, automation)) == [
        "completed",
        "completed",
        "failed",
    ]
    assert len(await mails(team)) == 2
