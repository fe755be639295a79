"""What the editor's form carries: drafts, typed values, and rules, each as it was."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.dashboard.automations.assignments import shown, shown_lines, typed, typed_lines
from pillarbox.dashboard.automations.drafts import LARGEST, DraftError, GraphDraft, draft_of, unpacked
from pillarbox.dashboard.automations.graph_layout import GAP_X, WIDTH, levels_of, placed
from pillarbox.dashboard.automations.step_fields import config_of, fields_of
from pillarbox.dashboard.people.page_visits import Form

LETTERS = "ab1-.e =\"'{}[]:,\\\n\r\x85\u2028é"
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-1e9, 1e9)
    | st.text(LETTERS, max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS, max_size=5), inner, max_size=3)
    ),
)


@given(values)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert typed(shown(value)) == (value.strip() if value == shown(value) else value)


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True), values, max_size=5))
def test_lines_of_values_come_back(members: dict[str, Any]) -> None:
    found = typed_lines(shown_lines(members))
    assert found == members


def test_people_type_fields_numbers_and_texts() -> None:
    lines = 'PLAN = {{event.plan}}\nseats=3\n\nname = Ada = Quill\nid = "3"\nbig = 1e999'
    assert typed_lines(lines) == {
        "PLAN": {"var": "event.plan"},
        "seats": 3,
        "name": "Ada = Quill",
        "id": "3",
        "big": "1e999",
    }


CONFIGS = [
    ("trigger", {"event_name": "user.signed_up"}),
    ("delay", {"duration": "a day"}),
    ("send_email", {"template": {"id": "welcome"}}),
    (
        "send_email",
        {
            "template": {"id": "w", "variables": {"A": {"var": "event.a"}, "B": "3", "C": 3}},
            "subject": "Hi",
            "from": "a@b.example",
            "reply_to": ["a@b.example", "c@b.example"],
            "topic_id": "x",
        },
    ),
    ("wait_for_event", {"event_name": "paid", "timeout": "3 days"}),
    (
        "wait_for_event",
        {
            "event_name": "paid",
            "filter_rule": {"type": "rule", "field": "event.a", "operator": "gt", "value": 3},
        },
    ),
    ("condition", {"type": "rule", "field": "event.plan", "operator": "exists"}),
    (
        "condition",
        {
            "type": "or",
            "rules": [
                {"type": "rule", "field": "event.plan", "operator": "eq", "value": value}
                for value in ("pro", "3", 3, True, None, "")
            ],
        },
    ),
    (
        "condition",
        {
            "type": "and",
            "rules": [
                {"type": "or", "rules": [{"type": "rule", "field": "event.a", "operator": "exists"}]},
                {"type": "rule", "field": "event.b", "operator": "is_empty"},
            ],
        },
    ),
    ("contact_update", {"first_name": None, "unsubscribed": True, "properties": {"plan": "pro", "x": None}}),
    ("contact_delete", {}),
    ("add_to_segment", {"segment_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"}),
]


@pytest.mark.parametrize(("kind", "config"), CONFIGS)
def test_a_config_comes_back_from_its_fields(kind: str, config: dict[str, Any]) -> None:
    assert config_of(kind, sent(fields_of(kind, config))) == config


def sent(fields: dict[str, Any]) -> Form:
    """What a browser sends of these fields."""
    pairs = [
        (name, value) for name, value in fields.items() if isinstance(value, str) and name != "rule_json"
    ]
    if fields.get("rule_json") is not None:
        pairs += [("as_json", "yes"), ("rule_json", fields["rule_json"])]
    else:
        pairs += [pair for row in fields.get("rules", []) for pair in row.items()]
    return Form(tuple(pairs))


def a_draft() -> GraphDraft:
    draft = GraphDraft("Welcome")
    start = draft.add("trigger")
    wait = draft.add("wait_for_event", start)
    draft.add("send_email", wait, "timeout")
    return draft


def test_a_step_is_added_between_others_and_removed_again() -> None:
    draft = a_draft()
    draft.add("delay", 0)
    assert draft.targets(0, "default") == ["delay"]
    assert draft.targets(3, "default") == ["wait"]
    draft.remove(3)
    assert draft.targets(0, "default") == ["wait"]
    draft.rename(1, "waits")
    assert draft.targets(0, "default") == ["waits"]
    draft.remove(1)
    assert draft.unreached() == ["mail"]
    assert unpacked(draft.packed()) == draft


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "é",
        urlsafe_b64encode(zlib.compress(b" " * (3 * LARGEST))).decode(),
        urlsafe_b64encode(zlib.compress(b"[1, 2]")).decode(),
        urlsafe_b64encode(zlib.compress(b"[" * 100_000)).decode(),
        urlsafe_b64encode(zlib.compress(json.dumps(["n", [{"key": 1}], [], ""]).encode())).decode(),
        urlsafe_b64encode(zlib.compress(json.dumps(["n", [], [{"from": 1}], ""]).encode())).decode(),
        urlsafe_b64encode(zlib.compress(json.dumps(["n", [{}] * 151, [], ""]).encode())).decode(),
    ],
)
def test_a_form_that_carries_no_draft_is_refused(text: str) -> None:
    with pytest.raises(DraftError):
        unpacked(text)


def test_a_draft_has_the_form_of_a_graph() -> None:
    for document in (
        None,
        [],
        {},
        {"steps": 1, "connections": []},
        {"steps": [], "connections": [], "name": 1},
    ):
        with pytest.raises(DraftError):
            draft_of(document)


@given(
    st.integers(1, 12).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30),
        )
    )
)
def test_no_two_steps_overlap_and_lines_lead_down(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = graph
    links = [pair for pair in pairs if pair[0] != pair[1]]
    layout, levels = placed(count, links, 62), levels_of(count, links)
    for one in range(count):
        assert WIDTH / 2 <= layout.steps[one][0] <= layout.width - WIDTH / 2
        for other in range(one):
            if levels[one] == levels[other]:
                assert abs(layout.steps[one][0] - layout.steps[other][0]) >= WIDTH + GAP_X - 0.01
    if all(source < target for source, target in links):
        assert all(levels[source] < levels[target] for source, target in links)
