"""Body fields: which violation is answered, and in which words (conventions sections 2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.wire import fields
from pillarbox.kernel.wire.problems import Problem


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(Struct):
    path: Annotated[str, Meta(max_length=3)]
    size: Annotated[int, Meta(ge=1, le=9)] = 1


class Thing(Struct):
    """One field of each kind."""

    name: str
    empty: Annotated[str, Meta(extra={"empty": True})]
    parts: Annotated[list[Part], Meta(max_length=2)] = []
    labels: dict[str, str] = {}
    topic_id: UUID | None = None
    kind: Annotated[Literal["a", "b", "c"], Meta(extra={"problem": "invalid_kind"})] = "a"
    colour: Colour = Colour.RED
    ratio: float | None = None
    to: str | list[str] | None = None
    anything: Any = None


class Change(Struct):
    title: str | UnsetType = UNSET
    note: str | UnsetType | None = UNSET


GOOD: dict[str, Any] = {"name": "x", "empty": ""}


@pytest.mark.parametrize(
    ("body", "status_name", "message"),
    [
        ([], "validation_error", "The request body must be an object."),
        ({"empty": ""}, "missing_required_field", "Missing `name` field."),
        ({"name": "", "empty": ""}, "missing_required_field", "Missing `name` field."),
        ({"name": None, "empty": None}, "missing_required_field", "Missing `name` field."),
        ({"name": "x", "empty": None}, "missing_required_field", "Missing `empty` field."),
        ({"name": 5}, "validation_error", "Invalid `name` field. It must be a string."),
        ({**GOOD, "parts": {}}, "validation_error", "Invalid `parts` field. It must be an array."),
        ({**GOOD, "parts": [{}] * 3}, "validation_error", "Invalid `parts` field. Use at most 2 items."),
        ({**GOOD, "parts": [5]}, "validation_error", "Invalid `parts[0]` field. It must be an object."),
        (
            {**GOOD, "parts": [{"path": "ok"}, {"path": "long"}]},
            "validation_error",
            "Invalid `parts[1].path` field. Use at most 3 characters.",
        ),
        ({**GOOD, "parts": [{"path": ""}]}, "missing_required_field", "Missing `parts[0].path` field."),
        (
            {**GOOD, "parts": [{"path": "a", "size": True}]},
            "validation_error",
            "Invalid `parts[0].size` field. It must be an integer.",
        ),
        (
            {**GOOD, "parts": [{"path": "a", "size": 10**30}]},
            "validation_error",
            "Invalid `parts[0].size` field. Use an integer from 1 to 9.",
        ),
        ({**GOOD, "labels": {"k": 1}}, "validation_error", "Invalid `labels.k` field. It must be a string."),
        ({**GOOD, "topic_id": "x"}, "invalid_parameter", "The `topic_id` must be a valid UUID."),
        ({**GOOD, "topic_id": 7}, "invalid_parameter", "The `topic_id` must be a valid UUID."),
        ({**GOOD, "kind": "d"}, "invalid_kind", "Invalid `kind` field. Use `a`, `b` or `c`."),
        ({**GOOD, "kind": ["a"]}, "invalid_kind", "Invalid `kind` field. Use `a`, `b` or `c`."),
        ({**GOOD, "colour": "green"}, "validation_error", "Invalid `colour` field. Use `red` or `blue`."),
        ({**GOOD, "ratio": "1"}, "validation_error", "Invalid `ratio` field. It must be a number."),
        ({**GOOD, "to": 5}, "validation_error", "Invalid `to` field. It must be a string or an array."),
    ],
)
def test_the_first_violation_is_answered(body: Any, status_name: str, message: str) -> None:
    with pytest.raises(Problem) as caught:
        fields.parse(Thing, body)
    assert (caught.value.status, caught.value.name, caught.value.message) == (422, status_name, message)


def test_good_bodies_become_structs() -> None:
    body = {
        **GOOD,
        "parts": [{"path": "abc", "size": 9}],
        "labels": {"k": "v"},
        "topic_id": "0199A3C0-0D11-7A42-B6F5-81C93E2D7F60",
        "kind": "b",
        "colour": "blue",
        "ratio": 1,
        "to": ["x"],
        "anything": {"deep": [None]},
        "unknown": 1,
    }
    thing = fields.parse(Thing, body)
    assert thing.parts == [Part("abc", 9)]
    assert thing.topic_id == UUID("0199a3c0-0d11-7a42-b6f5-81c93e2d7f60")
    assert (thing.kind, thing.colour, thing.ratio, thing.to) == ("b", Colour.BLUE, 1, ["x"])
    assert thing.anything == {"deep": [None]}


def test_null_is_absent_for_optional_fields() -> None:
    optional = [name for name in Thing.__struct_fields__ if name not in GOOD]
    assert fields.parse(Thing, {**GOOD, **dict.fromkeys(optional)}) == Thing(name="x", empty="")


def test_null_in_a_change_clears_only_where_it_may() -> None:
    assert fields.parse(Change, {}) == Change()
    assert fields.parse(Change, {"note": None}).note is None
    assert fields.parse(Change, {"title": ""}).title == ""
    with pytest.raises(Problem, match="Invalid `title` field"):
        fields.parse(Change, {"title": None})


class Named(Struct):
    name: Annotated[str, Meta(max_length=3, extra={"trimmed": True})]


class Renamed(Struct):
    name: Annotated[str, Meta(min_length=1, max_length=3, extra={"trimmed": True})] | UnsetType = UNSET


def test_a_trimmed_text_is_measured_without_the_blanks_around_it() -> None:
    assert fields.parse(Named, {"name": " \t\u00a0abc\n "}).name == "abc"
    assert fields.parse(Renamed, {"name": " a b "}).name == "a b"
    assert fields.parse(Renamed, {}) == Renamed()
    for blank in ("", "  ", "\u3000\n"):
        with pytest.raises(Problem, match="Missing `name` field"):
            fields.parse(Named, {"name": blank})
        with pytest.raises(Problem, match=r"Invalid `name` field\. Use at least 1 character\."):
            fields.parse(Renamed, {"name": blank})
    with pytest.raises(Problem, match="Use at most 3 characters"):
        fields.parse(Named, {"name": " abcd "})
    with pytest.raises(Problem, match="It must be a string"):
        fields.parse(Named, {"name": 7})


def upper(value: object, path: str) -> str:
    return str(fields.parse_value(str, value, path)).upper()


def said(value: object, path: str) -> str:
    return f"{path}: {value!r}"


def sum_up(read: fields.ReadFields) -> None:
    if read["low"] > read["high"]:
        raise Problem(f"{read.path} {read.context}")


class Ruled(Struct, kw_only=True):
    name: Annotated[str, fields.read_by(upper)]
    note: Annotated[str, fields.read_by(said, absent=True)]
    mark: Annotated[str, fields.read_by(said, empty=True)] = "none"
    high: Annotated[int, fields.read_before("name")]


class Span(Struct):
    rules: ClassVar[fields.Rules] = {"high": sum_up}

    low: int
    high: int
    name: str


class Whole(Struct):
    missing_first: ClassVar = True

    low: int
    name: str

    @staticmethod
    def check_body(body: Mapping[str, Any]) -> None:
        if "both" in body:
            raise Problem("not both")


def refusal(kind: type[Any], body: Any, *more: Any) -> str:
    with pytest.raises(Problem) as caught:
        fields.parse(kind, body, *more)
    return caught.value.message


def test_a_field_may_have_a_reader_of_its_own() -> None:
    ruled = fields.parse(Ruled, {"name": "quay", "high": 1, "mark": ""})
    assert (ruled.name, ruled.note, ruled.mark) == ("QUAY", "note: None", "mark: ''")
    assert fields.parse(Ruled, {"name": "quay", "high": 1, "mark": None, "note": 5}).note == "note: 5"
    assert fields.parse(Ruled, {"name": "quay", "high": 1}).mark == "none"
    assert refusal(Ruled, {"name": "", "high": 1}) == "Missing `name` field."
    assert refusal(Ruled, {"name": 5, "high": 1}) == "Invalid `name` field. It must be a string."


def test_a_field_may_be_read_before_one_that_stands_above_it() -> None:
    assert refusal(Ruled, {"name": 5, "high": "x"}).startswith("Invalid `high` field.")


def test_a_rule_sees_what_was_read_before_the_next_field_is() -> None:
    assert refusal(Span, {"low": 2, "high": 1, "name": 5}, "span", "seen") == "span seen"
    assert refusal(Span, {"low": 1, "high": 2, "name": 5}, "span").startswith("Invalid `span.name` field.")
    assert fields.parse(Span, {"low": 1, "high": 2, "name": "a"}) == Span(1, 2, "a")


def test_a_body_may_be_looked_at_as_a_whole_before_its_fields() -> None:
    assert refusal(Whole, {"both": 1}) == "not both"
    assert refusal(Whole, {"low": "x"}) == "Missing `name` field."
    assert refusal(Whole, {"low": "x", "name": "a"}).startswith("Invalid `low` field.")


def test_a_rule_stands_after_a_field_that_exists() -> None:
    class Wrong(Struct):
        rules: ClassVar[fields.Rules] = {"other": sum_up}

        name: str

    with pytest.raises(TypeError, match="other"):
        fields.parse(Wrong, {"name": "a"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(Thing.__struct_fields__), JSON))
def test_no_body_is_coerced_or_breaks_the_reader(body: dict[str, Any]) -> None:
    """Whatever is in the fields: what msgspec itself makes of it, or a problem; nothing else is raised."""
    present = {name: value for name, value in body.items() if value is not None}
    try:
        thing = fields.parse(Thing, body)
    except Problem:
        return
    assert msgspec.convert(present, Thing) == thing
