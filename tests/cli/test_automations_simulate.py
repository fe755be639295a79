"""`pillarbox automations simulate`: what a run would do, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from cli.conftest import Installation
from kit.automation_rows import an_automation, connection, step
from kit.automation_runs import a_template
from kit.world import world

RULE = {"type": "rule", "field": "event.amount", "operator": "gte", "value": 10}
KNOWN = {"type": "rule", "field": "contact.first_name", "operator": "eq", "value": "Ada"}
COUNTED = ("emails", "contacts", "events", "automation_runs", "automation_steps", "automation_work", "jobs")


class Made(NamedTuple):
    automation: str
    two: str
    gone: str


@pytest.fixture
def made(harbor: Installation) -> Made:
    return asyncio.run(fill(harbor))


async def fill(harbor: Installation) -> Made:
    """A team with automations to simulate."""
    async with world(harbor.url, harbor.folder, started=False) as here:
        team = await here.team("Automated")
        template = await a_template(
            team,
            subject="Plan {{{PLAN}}}",
            html="<p>{{{contact.first_name|you}}}: {{{PLAN}}}</p>",
            variables=[{"key": "PLAN", "type": "string"}],
        )
        use = {"id": template, "variables": {"PLAN": {"var": "event.plan"}}}
        await team.call("POST", "/events", {"name": "user.signed_up", "schema": {"plan": "string"}})
        topic = await team.post("/topics", {"name": "News", "default_subscription": "opt_out"})
        graph = {
            "steps": [
                step("start", "trigger", event_name="user.signed_up"),
                step("name", "contact_update", first_name="Ada"),
                step("hello", "send_email", template=use),
                step("news", "send_email", template=use, topic_id=topic.json()["id"]),
                step("pause", "wait_for_event", event_name="user.paid", timeout="3 days", filter_rule=RULE),
                step("known", "condition", **KNOWN),
                step("late", "delay", duration="1 hour"),
                step("nudge", "send_email", template=use, subject="Still there?"),
                step("gone", "contact_delete"),
            ],
            "connections": [
                connection("start", "name"),
                connection("name", "hello"),
                connection("hello", "news"),
                connection("news", "pause"),
                connection("pause", "known", "event_received"),
                connection("pause", "nudge", "timeout"),
                connection("known", "late", "condition_met"),
                connection("known", "gone", "condition_not_met"),
            ],
        }
        two = {
            "steps": [
                step("left", "trigger", event_name="user.left"),
                step("came", "trigger", event_name="user.came"),
            ],
            "connections": [],
        }
        gone = {
            "steps": [
                step("start", "trigger", event_name="user.left"),
                step("gone", "contact_delete"),
                step("mail", "send_email", template={"id": "no-such-template"}),
                step("end", "delay", duration="1 minute"),
                step("late", "add_to_segment", segment_id="0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44"),
            ],
            "connections": [
                connection("start", "gone"),
                connection("gone", "mail"),
                connection("mail", "end"),
                connection("end", "late"),
            ],
        }
        return Made(*[await an_automation(team, one) for one in (graph, two, gone)])


def simulated(harbor: Installation, automation: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = harbor.json(
        "automations", "simulate", automation, "--contact", "Ada@Quay.example", *more
    )
    return found


def steps_of(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["after_seconds"], one["key"] or one["event"], one["status"]) for one in found["happened"]]


def counts(harbor: Installation) -> list[int]:
    return [harbor.sql(f"SELECT count(*) FROM {table}")[0][0] for table in COUNTED]


def test_a_run_with_a_timeout(harbor: Installation, made: Made) -> None:
    before = counts(harbor)
    found = simulated(harbor, made.automation, "--payload", '{"plan": "pro"}')
    days = 3 * 86_400
    assert steps_of(found) == [
        (0, "start", "completed"),
        (0, "name", "completed"),
        (0, "hello", "completed"),
        (0, "news", "skipped"),
        (0, "pause", "waiting"),
        (days, "pause", "completed"),
        (days, "nudge", "completed"),
    ]
    assert (found["status"], found["contact"]["is_new"]) == ("completed", True)
    assert [(one["key"], one["subject"], one["html"]) for one in found["emails"]] == [
        ("hello", "Plan pro", "<p>Ada: pro</p>"),
        ("nudge", "Still there?", "<p>Ada: pro</p>"),
    ]
    assert {one["key"]: one["status"] for one in found["steps"]}["gone"] == "skipped"
    assert counts(harbor) == before


def test_events_that_come_meanwhile(harbor: Installation, made: Made) -> None:
    """One that does not fit leaves it waiting; one behind the end comes too late."""
    found = simulated(
        *(harbor, made.automation, "--payload", '{"plan": 3}'),
        *("--then", '1 day 12 hours: user.paid {"amount": 5}', "--then", '2 days:user.paid{"amount":10}'),
        *("--then", "1 week: user.paid"),
    )
    two = 2 * 86_400
    assert steps_of(found)[5:] == [
        (129_600, "user.paid", "not awaited"),
        (two, "user.paid", "received"),
        (two, "pause", "completed"),
        (two, "known", "completed"),
        (two, "late", "waiting"),
        (two + 3600, "late", "completed"),
        (7 * 86_400, "user.paid", "too late"),
    ]
    assert [one["subject"] for one in found["emails"]] == ["Plan 3"]


def test_an_event_at_the_end_of_a_wait_is_too_late(harbor: Installation, made: Made) -> None:
    found = simulated(
        *(harbor, made.automation, "--payload", '{"plan": "a"}'),
        *("--then", '3 days: user.paid {"amount": 10}'),
    )
    assert steps_of(found)[-1] == (3 * 86_400, "user.paid", "too late")
    assert len(found["emails"]) == 2


def test_a_step_that_fails(harbor: Installation, made: Made) -> None:
    found = simulated(harbor, made.automation)
    assert found["status"] == "failed"
    [failed] = [one for one in found["happened"] if one["error"] is not None]
    assert (failed["key"], failed["error"]["name"]) == ("hello", "missing_variable")


def test_steps_behind_the_deletion_of_the_contact(harbor: Installation, made: Made) -> None:
    found = simulated(harbor, made.gone)
    assert steps_of(found) == [
        (0, "start", "completed"),
        (0, "gone", "completed"),
        (0, "mail", "skipped"),
        (0, "end", "waiting"),
        (60, "end", "completed"),
        (60, "late", "skipped"),
    ]
    assert found["status"] == "completed"


def test_for_people(harbor: Installation, made: Made) -> None:
    place = ("automations", "simulate", made.automation, "--contact", "ada@quay.example")
    shown = harbor.run(*place, "--payload", '{"plan": "pro"}', "--bodies")
    assert shown.exit_code == 0, shown.output
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "Contact ada@quay.example (the event would make it)" in lines
    assert "Result completed after 3 d" in lines
    assert "3 d pause wait_for_event completed timeout" in lines
    assert "Not reached: known, late, gone" in lines
    assert "Ada: pro" in lines


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--payload", "[]"), "not an object"),
        (("--payload", "{"), "not JSON"),
        (("--payload", '{"plan": {}}'), "payload.plan"),
        (("--then", "user.paid"), "no event with its time"),
        (("--then", "2 months: user.paid"), "--then"),
        (("--then", "2 days: user.paid {"), "not JSON"),
        (("--trigger", "pause"), "no trigger"),
        (("--then", "1 day: resend:x"), "Names that begin with"),
    ],
)
def test_what_is_wrong_is_said(
    harbor: Installation, made: Made, arguments: tuple[str, ...], reason: str
) -> None:
    shown = harbor.run("automations", "simulate", made.automation, "--contact", "a@quay.example", *arguments)
    assert shown.exit_code == 1
    assert reason in shown.stderr


def test_one_of_several_triggers(harbor: Installation, made: Made) -> None:
    refused = harbor.run("automations", "simulate", made.two, "--contact", "a@quay.example")
    assert "several triggers; name one with --trigger: left, came" in refused.stderr
    found = simulated(harbor, made.two, "--trigger", "came")
    assert (found["event"], steps_of(found)) == ("user.came", [(0, "came", "completed")])
    wrong = harbor.run("automations", "simulate", made.two, "--contact", "nobody")
    assert wrong.exit_code == 1
