"""Graphs (automations.md 2 and 3): what is accepted, how it is shown, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from kit.automation_rows import chain, connection, lone_trigger, step
from pillarbox.automations.graphs import normal, parsing
from pillarbox.automations.graphs.durations import duration, of_seconds
from pillarbox.automations.graphs.graph import Graph
from pillarbox.kernel.wire.problems import Problem

ID = "9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b"
TRIGGER = step("start", "trigger", event_name="e")
RULE = {"type": "rule", "field": "event.plan", "operator": "eq", "value": "pro"}


def parsed(graph: dict[str, Any]) -> Graph:
    return parsing.graph(graph["steps"], graph["connections"])


def refusal(graph: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Problem) as raised:
        parsed(graph)
    assert raised.value.status == 422
    return raised.value.name, raised.value.message


def after_trigger(kind: str, **config: Any) -> dict[str, Any]:
    """A graph of a trigger and one more step."""
    return chain(TRIGGER, step("it", kind, **config))


def shown(kind: str, **config: Any) -> dict[str, Any]:
    """How the config of a step is shown."""
    [_, found] = normal.steps(parsed(after_trigger(kind, **config)))
    return cast(dict[str, Any], found["config"])


def rule_of(depth: int) -> dict[str, Any]:
    """Rules in each other, so deep."""
    return RULE if depth == 1 else {"type": "and", "rules": [rule_of(depth - 1)]}


# The whole ----------------------------------------------------------------------------------------

DELAYS = [step(f"s{number}", "delay", duration="1m") for number in range(150)]

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no steps": ({"steps": [], "connections": []}, "Invalid `steps` field. Use at least 1 item."),
    "151 steps": (chain(TRIGGER, *DELAYS), "Invalid `steps` field. Use at most 150 items."),
    "no trigger": (chain(DELAYS[0]), "The automation needs at least one `trigger` step."),
    "a key twice": (
        chain(TRIGGER, DELAYS[0], DELAYS[0]),
        "Invalid `steps[2].key` field. `s0` is the key of another step.",
    ),
    "a key with a blank": (
        {"steps": [step("a b", "trigger", event_name="e")], "connections": []},
        "Invalid `steps[0].key` field.",
    ),
    "a long key": (
        {"steps": [step("a" * 101, "trigger", event_name="e")], "connections": []},
        "Invalid `steps[0].key` field.",
    ),
    "another type": (chain(TRIGGER, step("x", "fly")), "Invalid `steps[1].type` field. Use `trigger`,"),
    "a step that is text": ({"steps": ["x"], "connections": []}, "Invalid `steps[0]` field."),
    "a cycle": (
        {
            "steps": [TRIGGER, *DELAYS[:2]],
            "connections": [connection("start", "s0"), connection("s0", "s1"), connection("s1", "s0")],
        },
        "The steps form a cycle, which `s0` belongs to or follows.",
    ),
    "itself": (
        {"steps": [TRIGGER, DELAYS[0]], "connections": [connection("s0", "s0")]},
        "Invalid `connections[0].to` field. A step cannot lead to itself.",
    ),
    "an unknown target": (
        {"steps": [TRIGGER], "connections": [connection("start", "x")]},
        "Invalid `connections[0].to` field. There is no step of this key.",
    ),
    "an unknown source": (
        {"steps": [TRIGGER], "connections": [connection("x", "start")]},
        "Invalid `connections[0].from` field. There is no step of this key.",
    ),
    "to a trigger": (
        {"steps": [TRIGGER, DELAYS[0]], "connections": [connection("s0", "start")]},
        "Invalid `connections[0].to` field. Nothing leads to a trigger.",
    ),
    "an unreachable step": (
        {"steps": [TRIGGER, *DELAYS[:3]], "connections": [connection("start", "s0"), connection("s1", "s2")]},
        "The step `s1` cannot be reached from a trigger.",
    ),
    "default from a condition": (
        {
            "steps": [TRIGGER, step("if", "condition", **RULE), DELAYS[0]],
            "connections": [connection("start", "if"), connection("if", "s0")],
        },
        "Invalid `connections[1].type` field. From a step of type `condition` it must be `condition_met` or",
    ),
    "timeout from a delay": (
        {
            "steps": [TRIGGER, *DELAYS[:2]],
            "connections": [connection("start", "s0"), connection("s0", "s1", "timeout")],
        },
        "Invalid `connections[1].type` field. From a step of type `delay` it must be `default`.",
    ),
    "an unknown type": (
        {"steps": [TRIGGER, DELAYS[0]], "connections": [connection("start", "s0", "maybe")]},
        "Invalid `connections[0].type` field. Use `default`,",
    ),
    "501 connections": (
        {"steps": [TRIGGER, DELAYS[0]], "connections": [connection("start", "s0")] * 501},
        "Invalid `connections` field. Use at most 500 items.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_graph_is_refused(case: str) -> None:
    graph, message = WRONG[case]
    name, said = refusal(graph)
    assert name == "validation_error"
    assert said.startswith(message)


def test_the_least_and_the_largest_graph() -> None:
    assert parsed(lone_trigger()).triggers[0].key == "start"
    largest = parsed(chain(TRIGGER, *DELAYS[:149]))
    assert largest.order == tuple(range(150))
    assert len(parsed({"steps": [TRIGGER], "connections": []}).steps) == 1


def test_branches_may_meet_and_the_same_connection_counts_once() -> None:
    graph = parsed(
        {
            "steps": [
                step("end", "contact_delete"),
                TRIGGER,
                step("if", "condition", **RULE),
                step("left", "delay", duration="1m"),
            ],
            "connections": [
                connection("start", "if", "default"),
                connection("if", "left", "condition_met"),
                connection("if", "end", "condition_not_met"),
                connection("left", "end"),
                connection("start", "if"),
            ],
        }
    )
    assert len(graph.connections) == 4
    assert graph.order == (1, 2, 3, 0)
    assert graph.following(2, "condition_met") == (3,)
    assert graph.following(2, "condition_not_met") == (0,)
    assert graph.following(0, "default") == ()
    both = [connection("if", "end", kind) for kind in ("condition_met", "condition_not_met")]
    steps = [TRIGGER, step("if", "condition", **RULE), step("end", "contact_delete")]
    assert len(parsed({"steps": steps, "connections": [connection("start", "if"), *both]}).connections) == 3


# Steps --------------------------------------------------------------------------------------------

MAIL = {
    "template": {
        "variables": {
            "PLAN": {"var": "event.plan", "x": 1},
            "SEATS": 3,
            "OPEN": True,
            "NOTHING": None,
            "ITEMS": [1, {"name": "Tea", "price": 2.5}],
            "SHOP": {"city": "Quay"},
        },
        "id": " welcome ",
        "other": 1,
    },
    "topic_id": ID.upper(),
    "reply_to": "help@harbor.example",
    "from": " Harbor <hi@harbor.example> ",
    "subject": "Hi",
    "unknown": [],
}

SHOWN: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mail": (
        "send_email",
        MAIL,
        {
            "template": {
                "id": "welcome",
                "variables": {
                    "PLAN": {"var": "event.plan"},
                    "SEATS": 3,
                    "OPEN": True,
                    "ITEMS": [1, {"name": "Tea", "price": 2.5}],
                    "SHOP": {"city": "Quay"},
                },
            },
            "subject": "Hi",
            "from": "Harbor <hi@harbor.example>",
            "reply_to": "help@harbor.example",
            "topic_id": ID,
        },
    ),
    "the least mail": (
        "send_email",
        {"template": {"id": ID}, "from": None, "reply_to": [], "subject": ""},
        {"template": {"id": ID}},
    ),
    "several reply to": (
        "send_email",
        {"template": {"id": ID}, "reply_to": ["a@harbor.example", "b@harbor.example"]},
        {"template": {"id": ID}, "reply_to": ["a@harbor.example", "b@harbor.example"]},
    ),
    "a delay in seconds": ("delay", {"seconds": 3600}, {"duration": "1 hour"}),
    "both forms of a delay": ("delay", {"duration": "2h", "seconds": 60}, {"duration": "2h"}),
    "a wait": (
        "wait_for_event",
        {"filter_rule": {**RULE, "extra": 1}, "timeout": "3 days", "event_name": "user.paid"},
        {"event_name": "user.paid", "timeout": "3 days", "filter_rule": RULE},
    ),
    "the least wait": ("wait_for_event", {"event_name": "e", "timeout": None}, {"event_name": "e"}),
    "a condition": (
        "condition",
        {"rules": [RULE, {**RULE, "operator": "exists", "value": 3}], "type": "or"},
        {
            "type": "or",
            "rules": [RULE, {"type": "rule", "field": "event.plan", "operator": "exists"}],
        },
    ),
    "a changed contact": (
        "contact_update",
        {
            "properties": {"plan": {"var": "event.plan"}, "old": None},
            "unsubscribed": False,
            "first_name": None,
        },
        {
            "first_name": None,
            "unsubscribed": False,
            "properties": {"plan": {"var": "event.plan"}, "old": None},
        },
    ),
    "a deleted contact": ("contact_delete", {"sure": True}, {}),
    "a segment": ("add_to_segment", {"segment_id": ID}, {"segment_id": ID}),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_config_is_shown_in_normal_form(case: str) -> None:
    kind, config, expected = SHOWN[case]
    found = shown(kind, **config)
    assert (found, list(found)) == (expected, list(expected))
    assert shown(kind, **found) == found


MISSING: dict[str, tuple[str, dict[str, Any], str]] = {
    "trigger": ("trigger", {}, "event_name"),
    "delay": ("delay", {}, "duration"),
    "send_email": ("send_email", {}, "template"),
    "template": ("send_email", {"template": {}}, "template.id"),
    "wait": ("wait_for_event", {"timeout": "1m"}, "event_name"),
    "condition": ("condition", {}, "type"),
    "field": ("condition", {"type": "rule"}, "field"),
    "operator": ("condition", {"type": "rule", "field": "event.a"}, "operator"),
    "value": ("condition", {"type": "rule", "field": "event.a", "operator": "eq"}, "value"),
    "rules": ("condition", {"type": "and"}, "rules"),
    "contact_update": ("contact_update", {}, "first_name"),
    "no properties": ("contact_update", {"properties": {}}, "first_name"),
    "segment": ("add_to_segment", {"segment_id": None}, "segment_id"),
    "var": ("contact_update", {"first_name": {}}, "first_name.var"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_member_is_named_by_its_path(case: str) -> None:
    kind, config, member = MISSING[case]
    graph = after_trigger(kind, **config)
    assert refusal(graph) == ("missing_required_field", f"Missing `steps[1].config.{member}` field.")


def test_a_step_needs_key_type_and_config() -> None:
    for member in ("key", "type", "config"):
        graph = {
            "steps": [{name: value for name, value in TRIGGER.items() if name != member}],
            "connections": [],
        }
        assert refusal(graph) == ("missing_required_field", f"Missing `steps[0].{member}` field.")
    for member in ("from", "to"):
        graph = {"steps": [TRIGGER], "connections": [{**connection("start", "start"), member: ""}]}
        assert refusal(graph) == ("missing_required_field", f"Missing `connections[0].{member}` field.")


VAR = {"template": {"id": "t", "variables": {"A": {"var": "nothing.x"}}}}

WRONG_CONFIGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a name of 101": ("wait_for_event", {"event_name": "x" * 101}, "event_name"),
    "a name with a line end": ("wait_for_event", {"event_name": "a\nb"}, "event_name"),
    "a name like an id": ("wait_for_event", {"event_name": ID}, "event_name"),
    "a reserved name": ("wait_for_event", {"event_name": "resend:x"}, "event_name"),
    "31 days": ("delay", {"duration": "31 days"}, "duration"),
    "a number": ("delay", {"duration": 60}, "duration"),
    "many seconds": ("delay", {"seconds": 2_592_001}, "seconds"),
    "no seconds": ("delay", {"seconds": 0}, "seconds"),
    "a long wait": ("wait_for_event", {"event_name": "e", "timeout": "5 weeks"}, "timeout"),
    "a filter of contacts": (
        "wait_for_event",
        {"event_name": "e", "filter_rule": {**RULE, "field": "contact.email"}},
        "filter_rule.field",
    ),
    "a template as text": ("send_email", {"template": "welcome"}, "template"),
    "no sender": ("send_email", {"template": {"id": "t"}, "from": "Harbor"}, "from"),
    "a subject of two lines": ("send_email", {"template": {"id": "t"}, "subject": "a\r\nb"}, "subject"),
    "51 to reply to": ("send_email", {"template": {"id": "t"}, "reply_to": ["a@b.example"] * 51}, "reply_to"),
    "arrays in arrays": (
        "send_email",
        {"template": {"id": "t", "variables": {"A": [[1]]}}},
        "template.variables.A[0]",
    ),
    "objects in objects": (
        "send_email",
        {"template": {"id": "t", "variables": {"A": {"b": {"c": 1}}}}},
        "template.variables.A.b",
    ),
    "a long array": (
        "send_email",
        {"template": {"id": "t", "variables": {"A": ["x" * 1000, "y" * 1000]}}},
        "template.variables.A",
    ),
    "a bad key": ("send_email", {"template": {"id": "t", "variables": {"A-B": 1}}}, "template.variables.A-B"),
    "reserved": (
        "send_email",
        {"template": {"id": "t", "variables": {"FIRST_NAME": "x"}}},
        "template.variables.FIRST_NAME",
    ),
    "a long value": (
        "send_email",
        {"template": {"id": "t", "variables": {"A": "x" * 2001}}},
        "template.variables.A",
    ),
    "an unknown source": ("send_email", VAR, "template.variables.A.var"),
    "text for unsubscribed": ("contact_update", {"unsubscribed": "yes"}, "unsubscribed"),
    "null for unsubscribed": ("contact_update", {"unsubscribed": None}, "unsubscribed"),
    "a number for a name": ("contact_update", {"first_name": 3}, "first_name"),
    "a rule of another type": ("condition", {**RULE, "type": "not"}, "type"),
    "another operator": ("condition", {**RULE, "operator": "like"}, "operator"),
    "text to compare": ("condition", {**RULE, "operator": "gt"}, "value"),
    "true to compare": ("condition", {**RULE, "operator": "lte", "value": True}, "value"),
    "a number to contain": ("condition", {**RULE, "operator": "contains", "value": 3}, "value"),
    "an object to equal": ("condition", {**RULE, "value": {}}, "value"),
    "no rules": ("condition", {"type": "and", "rules": []}, "rules"),
    "21 rules": ("condition", {"type": "or", "rules": [RULE] * 21}, "rules"),
    "six deep": ("condition", rule_of(6), "rules[0].rules[0].rules[0].rules[0].rules[0]"),
    "no path": ("condition", {**RULE, "field": "event"}, "field"),
    "an empty path": ("condition", {**RULE, "field": "event."}, "field"),
    "an unknown field": ("condition", {**RULE, "field": "contact.age"}, "field"),
    "no property": ("condition", {**RULE, "field": "contact.properties"}, "field"),
    "no path of an event": ("condition", {**RULE, "field": "wait_events.paid"}, "field"),
}


@pytest.mark.parametrize("case", WRONG_CONFIGS)
def test_a_wrong_config_is_refused_by_its_path(case: str) -> None:
    kind, config, member = WRONG_CONFIGS[case]
    name, said = refusal(after_trigger(kind, **config))
    assert (name, said.split(" field. ")[0]) == ("validation_error", f"Invalid `steps[1].config.{member}`")


def test_ids_are_uuids() -> None:
    for kind, config, member in (
        ("add_to_segment", {"segment_id": "x"}, "segment_id"),
        ("send_email", {"template": {"id": "t"}, "topic_id": 7}, "topic_id"),
    ):
        said = f"The `steps[1].config.{member}` must be a valid UUID."
        assert refusal(after_trigger(kind, **config)) == ("invalid_parameter", said)


def test_fields_that_may_be_read() -> None:
    for field in (
        "event.a",
        "event.a.b.c",
        "contact.created_at",
        "contact.properties.plan",
        "wait_events.user.paid.amount",
        "wait_events.paid.amount",
    ):
        assert shown("condition", **{**RULE, "field": field})["field"] == field
    assert shown("condition", **rule_of(5)) == rule_of(5)


# Durations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30 minutes", 1800),
        ("1 week", 604_800),
        ("1 day 12 hours", 129_600),
        ("90m", 5400),
        ("1d12h", 129_600),
        (" 1.5 hours ", 5400),
        ("1 sec", 1),
        ("2 hr 3 min 4s", 7384),
        ("30 days", 2_592_000),
        ("1W", 604_800),
    ],
)
def test_a_duration_is_read_and_shown_as_it_was_given(text: str, seconds: int) -> None:
    found = duration(text, "duration")
    assert (found.length, found.text) == (timedelta(seconds=seconds), text.strip())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "minutes",
        "-1 hour",
        "0 minutes",
        "1 day 0 hours",
        "1 month",
        "2 years",
        "31 days",
        "30 days 1s",
        "1,5 hours",
        "1 hour and 2 minutes",
        "\u0661 hour",
        "1e9 s",
        "1 s" * 40,
        "9" * 90 + " s",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    graph = after_trigger("delay", duration=text)
    assert refusal(graph)[0] == ("validation_error" if text else "missing_required_field")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(60, "1 minute"), (90, "90 seconds"), (5400, "90 minutes"), (604_800, "1 week"), (0.5, "0.5 seconds")],
)
def test_seconds_are_shown_in_the_largest_unit_that_is_whole(seconds: float, text: str) -> None:
    found = of_seconds(seconds, "seconds")
    assert (found.length, found.text) == (timedelta(seconds=seconds), text)
    assert duration(text, "duration") == found


@pytest.mark.parametrize("seconds", [1e-300, 1e-7, 0.1 + 0.2, 1 / 3, 2591999.9999999995])
def test_seconds_of_many_digits_can_be_read_again(seconds: float) -> None:
    found = of_seconds(seconds, "seconds")
    assert duration(found.text, "duration") == found
