"""What holds of every graph: shown and read again it is the same, and its order is topological."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kit.automation_rows import step
from pillarbox.automations.graphs import normal, parsing
from pillarbox.automations.graphs.evaluation import EvaluationInput, holds
from pillarbox.automations.graphs.graph import Graph
from pillarbox.automations.graphs.progress import ReachedStep, statuses
from pillarbox.automations.graphs.rule_parsing import rule
from pillarbox.kernel.wire.json_body import decode
from pillarbox.kernel.wire.problems import Problem

TEXTS = st.text(max_size=6)
NUMBERS = st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = TEXTS | NUMBERS | st.booleans() | st.none()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(("event.a", "event.a.b", "event.c", "contact.email", "wait_events.e.a"))
COMPARISONS = st.one_of(
    st.builds(lambda f, o, v: leaf(f, o, v), FIELDS, st.sampled_from(("eq", "neq")), SCALARS),
    st.builds(lambda f, o, v: leaf(f, o, v), FIELDS, st.sampled_from(("gt", "gte", "lt", "lte")), NUMBERS),
    st.builds(
        lambda f, o, v: leaf(f, o, v),
        FIELDS,
        st.sampled_from(("contains", "starts_with", "ends_with")),
        TEXTS,
    ),
    st.builds(lambda f, o: leaf(f, o, None), FIELDS, st.sampled_from(("exists", "is_empty"))),
)


def groups(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Rules of these rules."""
    return st.builds(
        lambda kind, rules: {"type": kind, "rules": rules},
        st.sampled_from(("and", "or")),
        st.lists(inner, min_size=1, max_size=2),
    )


RULES = COMPARISONS | groups(COMPARISONS) | groups(groups(COMPARISONS))
CONFIGS: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("delay", {"duration": "90m"}, ("default",)),
    ("contact_delete", {}, ("default",)),
    ("wait_for_event", {"event_name": "e"}, ("event_received", "timeout")),
    (
        "condition",
        {"type": "rule", "field": "event.a", "operator": "exists"},
        ("condition_met", "condition_not_met"),
    ),
)


def leaf(field: str, operator: str, value: object) -> dict[str, Any]:
    return {"type": "rule", "field": field, "operator": operator, "value": value}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """A graph whose steps lead to later ones alone, in any order of the list."""
    count = draw(st.integers(1, 8))
    steps = [step("s0", "trigger", event_name="e")]
    outcomes: list[tuple[str, ...]] = [("default",)]
    connections = []
    for number in range(1, count):
        kind, config, ways = draw(st.sampled_from(CONFIGS))
        steps.append(step(f"s{number}", kind, **config))
        outcomes.append(ways)
        sources = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3))
        for source in sources:
            way = draw(st.sampled_from(outcomes[source]))
            connections.append({"from": f"s{source}", "to": f"s{number}", "type": way})
    return draw(st.permutations(steps)), draw(st.permutations(connections))


def parsed(given_graph: tuple[list[Any], list[Any]]) -> Graph:
    return parsing.graph(*given_graph)


def taken_or_refused(steps: list[Any], connections: list[Any]) -> bool:
    """Whether it is a graph, or refused as the contract says; anything else is raised."""
    try:
        parsing.graph(steps, connections)
    except Problem as refused:
        return refused.status == 422
    return True


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_a_graph_that_is_shown_is_the_same_graph(given_graph: tuple[list[Any], list[Any]]) -> None:
    graph = parsed(given_graph)
    stored = json.dumps([normal.steps(graph), normal.connections(graph)])
    assert parsing.graph(*json.loads(stored)) == graph


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_the_order_has_every_step_behind_those_that_lead_to_it(
    given_graph: tuple[list[Any], list[Any]],
) -> None:
    graph = parsed(given_graph)
    places = {position: place for place, position in enumerate(graph.order)}
    assert sorted(places) == list(range(len(graph.steps)))
    assert all(places[one.source] < places[one.target] for one in graph.connections)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data())
def test_a_connection_backwards_is_refused(
    given_graph: tuple[list[Any], list[Any]], data: st.DataObject
) -> None:
    """Whatever is added to it, a graph with a way back is refused."""
    steps, connections = given_graph
    assume(connections)
    one = data.draw(st.sampled_from(connections))
    back = {"from": one["to"], "to": one["from"], "type": "default"}
    kinds = {each["key"]: each["type"] for each in steps}
    ways = {"wait_for_event": "timeout", "condition": "condition_met"}
    back["type"] = ways.get(kinds[one["to"]], "default")
    with pytest.raises(Problem, match=r"leads to a trigger|form a cycle"):
        parsing.graph(steps, [*connections, back])


@settings(max_examples=50, deadline=None)
@given(RULES, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_a_rule_says_the_same_when_it_is_shown_and_read_again(
    given_rule: dict[str, Any], payload: dict[str, Any]
) -> None:
    """And it never raises, whatever the payload has."""
    one = rule(given_rule, "rule")
    again = rule(json.loads(json.dumps(normal.rule(one))), "rule")
    assert again == one
    facts = EvaluationInput(payload, waited={"e": payload}, event_name="e", dates={"e": frozenset("a")})
    assert holds(one, facts) is holds(again, facts)


@settings(max_examples=50, deadline=None)
@given(st.lists(VALUES, max_size=4), st.lists(VALUES, max_size=4))
def test_any_json_is_a_graph_or_is_refused(steps: list[Any], connections: list[Any]) -> None:
    assert taken_or_refused(steps, connections)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([kind for kind, _, _ in CONFIGS] + ["trigger", "send_email", "contact_update"]), VALUES
)
def test_any_config_is_read_or_refused(kind: str, config: Any) -> None:
    body = decode(json.dumps({"key": "a", "type": kind, "config": config}).encode())
    assert taken_or_refused([body], [])


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data())
def test_of_a_run_that_has_ended_nothing_is_ahead(
    given_graph: tuple[list[Any], list[Any]], data: st.DataObject
) -> None:
    graph = parsed(given_graph)
    [trigger] = graph.triggers
    reached = {}
    for step_ in graph.steps:
        status = data.draw(st.sampled_from(("completed", "waiting", "failed", None)))
        if status is not None:
            outcome = data.draw(st.sampled_from(step_.outcomes)) if status == "completed" else None
            reached[step_.position] = ReachedStep(status, outcome)
    ended = statuses(graph, trigger.position, reached, ended=True)
    assert not {"pending", "waiting", "running"} & set(ended)
    going_on = statuses(graph, trigger.position, reached, ended=False)
    assert all(going_on[position] == row.status for position, row in reached.items())
