"""Payloads and their schemas (events.md section 3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.events.payloads import MOST_DEPTH, Kind, encoded, fitted
from pillarbox.kernel.wire.problems import InvalidField

LONG = "9" * 30
FITTING: list[tuple[Kind, Any, Any]] = [
    ("string", "pro", "pro"),
    ("string", "", ""),
    ("string", 3, "3"),
    ("string", -0.25, "-0.25"),
    ("string", 3.0, "3"),
    ("string", 1e300, "1e300"),
    ("string", True, "true"),
    ("string", False, "false"),
    ("number", 3, 3),
    ("number", 3.5, 3.5),
    ("number", "3", 3),
    ("number", " 3 ", 3),
    ("number", "-3.50", -3.5),
    ("number", "1e3", 1000.0),
    ("number", "007", 7),
    ("number", LONG, int(LONG)),
    ("boolean", True, True),
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("date", "2026-10-03T08:00:00+02:00", "2026-10-03T06:00:00.000Z"),
    ("date", "2026-10-03", "2026-10-03T00:00:00.000Z"),
    ("date", "2026-10-03 08:00:00.123456Z", "2026-10-03T08:00:00.123Z"),
    ("date", 0, "1970-01-01T00:00:00.000Z"),
    ("date", 1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
    ("date", 253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    *[(kind, None, None) for kind in ("string", "number", "boolean", "date")],  # type: ignore[list-item]
]
WRONG: list[tuple[Kind, Any]] = [
    *[("string", value) for value in ([], {}, ["a"])],  # type: ignore[list-item]
    *[  # type: ignore[list-item]
        ("number", value)
        for value in ("x", "", " ", True, [], {}, "1e999", "0x10", "1_000", "٣", "NaN", "+3", ".5", "9" * 101)
    ],
    *[("boolean", value) for value in ("TRUE", "yes", 1, 0, "", [], {"true": 1})],  # type: ignore[list-item]
    *[  # type: ignore[list-item]
        ("date", value)
        for value in ("tomorrow", "", "2026-02-30", "1969-12-31", -1, 253_402_300_800_000, 1.5, True, [], {})
    ],
]


@pytest.mark.parametrize("kind", ["string", "number", "boolean", "date"])
def test_values_become_what_the_schema_says(kind: Kind) -> None:
    for wanted, given_value, expected in FITTING:
        if wanted == kind:
            found = fitted({"a": given_value}, {"a": kind})["a"]
            assert (found, type(found)) == (expected, type(expected)), given_value


@pytest.mark.parametrize("kind", ["string", "number", "boolean", "date"])
def test_other_values_are_refused_by_their_key(kind: Kind) -> None:
    for wanted, value in WRONG:
        if wanted == kind:
            with pytest.raises(InvalidField, match=r"^Invalid `payload\.a` field\. "):
                fitted({"a": value}, {"a": kind})


def test_the_first_key_of_the_schema_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidField, match=r"payload\.second"):
        fitted({"third": "x", "second": "x"}, {"first": "number", "second": "number", "third": "number"})


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
SCHEMAS = st.dictionaries(st.text(), st.sampled_from(["string", "number", "boolean", "date"]), max_size=4)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4), SCHEMAS, st.data())
def test_what_fits_fits_again_and_stays_as_it_is(
    payload: dict[str, Any], schema: dict[str, Kind], data: st.DataObject
) -> None:
    for key in list(payload)[:2]:
        schema[key] = data.draw(st.sampled_from(["string", "number", "boolean", "date"]))
    try:
        found = fitted(payload, schema)
    except InvalidField:
        return
    assert list(found) == list(payload)
    assert {key: found[key] for key in payload if key not in schema} == {
        key: payload[key] for key in payload if key not in schema
    }
    assert fitted(found, schema) == found
    kinds: dict[str, Any] = {"string": str, "number": (int, float), "boolean": bool, "date": str}
    for key, kind in schema.items():
        assert found.get(key) is None or isinstance(found[key], kinds[kind])


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_payload_is_stored_as_the_same_json(payload: dict[str, Any]) -> None:
    def depth(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    if depth(payload) > MOST_DEPTH:
        with pytest.raises(InvalidField, match="levels"):
            encoded(payload)
    else:
        assert json.loads(encoded(payload)) == payload


@pytest.mark.parametrize("levels", range(1, 14))
def test_the_levels_are_counted_from_the_payload_on(levels: int) -> None:
    payload = json.loads('{"a":' * levels + "1" + "}" * levels)
    if levels <= MOST_DEPTH:
        assert json.loads(encoded(payload)) == payload
    else:
        with pytest.raises(InvalidField):
            encoded(payload)
