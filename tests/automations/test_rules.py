"""What rules say (automations.md 3.2), what values become (3.3), and which steps are still ahead (5)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from kit.automation_rows import connection, step
from pillarbox.automations.graphs import parsing
from pillarbox.automations.graphs.evaluation import ContactFacts, EvaluationInput, holds, read
from pillarbox.automations.graphs.progress import ReachedStep, outcome_of, statuses
from pillarbox.automations.graphs.resolving import Kind, Mismatch, MissingValue, ResolvedValue, resolved
from pillarbox.automations.graphs.rule_parsing import field, rule, value

ADA = ContactFacts(
    id=UUID("9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b"),
    email="ada@quay.example",
    first_name="Ada",
    last_name=None,
    unsubscribed=False,
    created_at=datetime(2026, 10, 2, 7, tzinfo=UTC),
    properties={"plan": "pro", "seats": 3},
)

FACTS = EvaluationInput(
    event={
        "plan": "pro",
        "seats": 3,
        "price": 2.5,
        "open": True,
        "none": None,
        "empty": "",
        "list": ["a", 1],
        "nothing": [],
        "object": {"deep": {"er": "x"}},
        "hollow": {},
        "ends": "2026-10-02T07:00:00.000Z",
    },
    contact=ADA,
    waited={"user": {"paid": {"amount": 1}}, "user.paid": {"amount": 2, "on": "1970-01-01T00:00:01.000Z"}},
    event_name="signed_up",
    dates={"signed_up": frozenset({"ends"}), "user.paid": frozenset({"on"})},
)
ENDS = 1_790_924_400_000


def says(name: str, operator: str, wanted: Any = None, facts: EvaluationInput = FACTS) -> bool:
    shown = {"type": "rule", "field": name, "operator": operator, "value": wanted}
    return holds(rule(shown, "rule"), facts)


TRUE: list[tuple[str, str, Any]] = [
    ("event.plan", "eq", "pro"),
    ("event.seats", "eq", 3),
    ("event.seats", "eq", 3.0),
    ("event.open", "eq", True),
    ("event.none", "eq", None),
    ("event.absent", "eq", None),
    ("event.absent.deeper", "eq", None),
    ("event.plan.deeper", "eq", None),
    ("event.object.deep.er", "eq", "x"),
    ("event.seats", "neq", "3"),
    ("event.open", "neq", 1),
    ("event.open", "neq", "true"),
    ("event.absent", "neq", "x"),
    ("event.list", "neq", "a"),
    ("event.object", "neq", None),
    ("event.seats", "gt", 2.5),
    ("event.seats", "gte", 3),
    ("event.price", "lt", 3),
    ("event.price", "lte", 2.5),
    ("event.ends", "eq", "2026-10-02T07:00:00.000Z"),
    ("event.ends", "gte", ENDS),
    ("event.ends", "lt", ENDS + 1),
    ("wait_events.user.paid.on", "lte", 1000),
    ("event.plan", "contains", "r"),
    ("event.plan", "starts_with", "pr"),
    ("event.plan", "ends_with", "ro"),
    ("event.list", "contains", "a"),
    ("event.open", "exists", None),
    ("event.empty", "exists", None),
    ("event.empty", "is_empty", None),
    ("event.nothing", "is_empty", None),
    ("event.hollow", "is_empty", None),
    ("event.none", "is_empty", None),
    ("event.absent", "is_empty", None),
    ("contact.email", "ends_with", "@quay.example"),
    ("contact.first_name", "eq", "Ada"),
    ("contact.last_name", "is_empty", None),
    ("contact.unsubscribed", "eq", False),
    ("contact.created_at", "starts_with", "2026-10-02 07:00:00"),
    ("contact.id", "starts_with", "9f8e"),
    ("contact.properties.plan", "eq", "pro"),
    ("contact.properties.absent", "is_empty", None),
    ("wait_events.user.paid.amount", "eq", 2),
    ("wait_events.other.paid.amount", "eq", None),
]

FALSE: list[tuple[str, str, Any]] = [
    ("event.seats", "eq", "3"),
    ("event.open", "eq", 1),
    ("event.open", "eq", "true"),
    ("event.none", "neq", None),
    ("event.none", "exists", None),
    ("event.absent", "exists", None),
    ("event.seats", "gt", 3),
    ("event.plan", "gt", 0),
    ("event.plan", "lte", 0),
    ("event.open", "gte", 0),
    ("event.absent", "lt", 1),
    ("event.plan", "contains", "R"),
    ("event.seats", "contains", "3"),
    ("event.list", "contains", "1"),
    ("event.list", "starts_with", "a"),
    ("event.object", "contains", "deep"),
    ("event.seats", "is_empty", None),
    ("event.open", "is_empty", None),
    ("contact.created_at", "gt", 0),
]


@pytest.mark.parametrize(("name", "operator", "wanted"), TRUE)
def test_a_rule_that_is_true(name: str, operator: str, wanted: Any) -> None:
    assert says(name, operator, wanted)


@pytest.mark.parametrize(("name", "operator", "wanted"), FALSE)
def test_a_rule_that_is_false(name: str, operator: str, wanted: Any) -> None:
    assert not says(name, operator, wanted)


def test_rules_in_rules() -> None:
    yes = {"type": "rule", "field": "event.plan", "operator": "exists"}
    no = {"type": "rule", "field": "event.absent", "operator": "exists"}
    for shown, expected in (
        ({"type": "and", "rules": [yes, yes]}, True),
        ({"type": "and", "rules": [yes, no]}, False),
        ({"type": "or", "rules": [no, yes]}, True),
        ({"type": "or", "rules": [no, no]}, False),
        ({"type": "and", "rules": [{"type": "or", "rules": [no, yes]}, yes]}, True),
    ):
        assert holds(rule(shown, "rule"), FACTS) is expected


def test_a_contact_that_is_gone_has_nothing() -> None:
    assert says("contact.email", "is_empty", facts=EvaluationInput({}))
    assert read(field("contact.properties.plan", "field"), EvaluationInput({})) is None


# Values -------------------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, Kind, ResolvedValue | MissingValue | None]] = {
    "a constant": ("x", "string", ResolvedValue("x", is_foreign=False)),
    "a number": (3, "number", ResolvedValue(3, is_foreign=False)),
    "a constant true as text": (True, "string", ResolvedValue("true", is_foreign=False)),
    "a constant true": (True, "boolean", ResolvedValue(True, is_foreign=False)),
    "null": (None, "string", MissingValue(is_foreign=False)),
    "a constant text for a number": ("3", "number", None),
    "a constant number for a text": (3, "string", None),
    "a field": ({"var": "event.plan"}, "string", ResolvedValue("pro", is_foreign=True)),
    "a number as text": ({"var": "event.seats"}, "string", ResolvedValue("3", is_foreign=True)),
    "a fraction as text": ({"var": "event.price"}, "string", ResolvedValue("2.5", is_foreign=True)),
    "true as text": ({"var": "event.open"}, "string", ResolvedValue("true", is_foreign=True)),
    "true as a number": ({"var": "event.open"}, "number", None),
    "text as a number": ({"var": "event.plan"}, "number", None),
    "text as true": ({"var": "event.plan"}, "boolean", None),
    "an array": ({"var": "event.list"}, "string", None),
    "an object": ({"var": "event.object"}, "string", None),
    "absent": ({"var": "event.absent"}, "string", MissingValue(is_foreign=True)),
    "a field of null": ({"var": "event.none"}, "number", MissingValue(is_foreign=True)),
}


@pytest.mark.parametrize("case", VALUES)
def test_what_a_value_becomes(case: str) -> None:
    given, kind, expected = VALUES[case]
    found = resolved(value(given, "value"), kind, FACTS)
    if expected is None:
        assert isinstance(found, Mismatch)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), (" -2.50 ", -2.5), ("1e3", 1000.0), ("", None), ("1,5", None), ("0x1", None), ("1e999", None),
     ("9" * 300, None), ("Infinity", None), ("\u0661", None), ("03", None)],
)  # fmt: skip
def test_numeric_text_is_a_number(text: str, number: float | None) -> None:
    found = resolved(value({"var": "event.n"}, "value"), "number", EvaluationInput({"n": text}))
    if number is None:
        assert isinstance(found, Mismatch)
    else:
        assert found == ResolvedValue(number, is_foreign=True)


def test_text_that_is_too_long_does_not_fit() -> None:
    one = value({"var": "event.n"}, "value")
    assert isinstance(resolved(one, "string", EvaluationInput({"n": "x" * 2001})), Mismatch)
    assert isinstance(resolved(one, "string", EvaluationInput({"n": 10**5000})), Mismatch)


# Progress -----------------------------------------------------------------------------------------

GRAPH = parsing.graph(
    [
        step("start", "trigger", event_name="e"),
        step("other", "trigger", event_name="f"),
        step("wait", "wait_for_event", event_name="g"),
        step("came", "delay", duration="1m"),
        step("late", "delay", duration="1m"),
        step("end", "delay", duration="1m"),
        step("apart", "delay", duration="1m"),
    ],
    [
        connection("start", "wait"),
        connection("other", "apart"),
        connection("wait", "came", "event_received"),
        connection("wait", "late", "timeout"),
        connection("came", "end"),
        connection("late", "end"),
    ],
)
DONE, WAITING = ReachedStep("completed", "default"), ReachedStep("waiting", None)


def test_steps_ahead_are_pending_and_all_others_are_skipped() -> None:
    first = statuses(GRAPH, 0, {}, ended=False)
    assert first == ("pending", "skipped", "pending", "pending", "pending", "pending", "skipped")
    waiting = statuses(GRAPH, 0, {0: DONE, 2: WAITING}, ended=False)
    assert waiting == ("completed", "skipped", "waiting", "pending", "pending", "pending", "skipped")
    late = {0: DONE, 2: ReachedStep("completed", "timeout"), 4: WAITING}
    assert statuses(GRAPH, 0, late, ended=False) == (
        ("completed", "skipped", "completed", "skipped", "waiting", "pending", "skipped")
    )
    assert statuses(GRAPH, 0, late, ended=True) == (
        ("completed", "skipped", "completed", "skipped", "skipped", "skipped", "skipped")
    )


def test_how_a_step_ended() -> None:
    wait, delay = GRAPH.steps[2], GRAPH.steps[3]
    assert outcome_of(wait, "completed", {"outcome": "timeout"}) == "timeout"
    assert outcome_of(wait, "completed", {"outcome": "event_received"}) == "event_received"
    assert [outcome_of(wait, status, None) for status in ("waiting", "skipped", "failed")] == [None] * 3
    assert [outcome_of(delay, status, None) for status in ("completed", "skipped")] == ["default"] * 2
    assert [outcome_of(delay, status, None) for status in ("waiting", "failed")] == [None] * 2
