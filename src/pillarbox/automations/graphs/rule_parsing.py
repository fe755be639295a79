"""Rules and values of a graph, from JSON (automations.md 3.2 and 3.3). 422 for the first violation."""

from __future__ import annotations

import re
from typing import Final, cast, get_args

import msgspec

from pillarbox.automations.graphs.rules import (
    ORDERING,
    TEXTUAL,
    UNARY,
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    Field,
    FromField,
    JsonValue,
    Operator,
    Rule,
    Scalar,
    Source,
    Value,
)
from pillarbox.kernel.wire.json_members import Body, Path, as_array, as_object, required, shown, text, word
from pillarbox.kernel.wire.problems import InvalidField, MissingField

MOST_RULES: Final = 20
DEEPEST: Final = 5
MOST_FIELD: Final = 500

OPERATORS: Final[tuple[str, ...]] = get_args(Operator)
SOURCES: Final[tuple[Source, ...]] = ("event", "contact", "wait_events")
CONTACT_FIELDS: Final = ("id", "email", "first_name", "last_name", "unsubscribed", "created_at")

PROPERTY: Final = re.compile(r"[A-Za-z0-9_]{1,50}", re.ASCII)
"""Keys of properties of contacts, and of variables of templates."""


def rule(value: object, path: Path, sources: tuple[Source, ...] = SOURCES, depth: int = 1) -> Rule:
    """Return the rule of an object; `sources` are the sources that its fields may read."""
    body = as_object(value, path)
    kind = word(required(body, "type", path), f"{path}.type", ("rule", "and", "or"))
    if depth > DEEPEST:
        raise InvalidField(path, f"Rules may stand in each other {DEEPEST} deep.")
    if kind == "rule":
        return _comparison(body, path, sources)
    where = f"{path}.rules"
    given = body.get("rules")
    if given is None:
        raise MissingField(where)
    items = as_array(given, where, MOST_RULES)
    if not items:
        raise InvalidField(where, "Use at least 1 item.")
    found = tuple(rule(item, f"{where}[{index}]", sources, depth + 1) for index, item in enumerate(items))
    return AllOf(found) if kind == "and" else AnyOf(found)


def field(value: object, path: Path, sources: tuple[Source, ...] = SOURCES) -> Field:
    """Return the field that a text names."""
    name, *rest = text(value, path, MOST_FIELD).split(".")
    if name not in sources:
        allowed = " or ".join(f"`{source}.`" for source in sources)
        raise InvalidField(path, f"It must begin with {allowed}.")
    found = Field(name, tuple(rest))
    if not _is_known(found):
        raise InvalidField(path, "There is no such field.")
    return found


def value(given: object, path: Path) -> Value:
    """Return a string, number, boolean or null, or what a field holds: `{"var": FIELD}`."""
    if isinstance(given, dict):
        return FromField(field(required(given, "var", path), f"{path}.var"))
    if isinstance(given, list):
        raise InvalidField(path, "Use a string, a number, or an object with `var`.")
    return Constant(_scalar(given, path))


def variable(given: object, path: Path) -> Value:
    """Return a value as `value` does; an array or an object without `var` becomes its JSON text."""
    if isinstance(given, list) or (isinstance(given, dict) and "var" not in given):
        _check_members(given, path)
        return JsonValue(msgspec.json.encode(given).decode())
    return value(given, path)


def _check_members(given: object, path: Path, depth: int = 0) -> None:
    """Refuse a value that is neither an object of scalars nor an array of scalars and such objects."""
    if isinstance(given, list) and depth == 0:
        for index, item in enumerate(given):
            _check_members(item, f"{path}[{index}]", 1)
    elif isinstance(given, dict) and depth < 2:
        for key, item in given.items():
            _check_members(item, f"{path}.{shown(key)}", 2)
    else:
        _scalar(given, path)


def _comparison(body: Body, path: Path, sources: tuple[Source, ...]) -> Comparison:
    name = field(required(body, "field", path), f"{path}.field", sources)
    operator = word(required(body, "operator", path), f"{path}.operator", OPERATORS)
    found = None if operator in UNARY else _operand(body, operator, path)
    return Comparison(name, cast(Operator, operator), found)


def _operand(body: Body, operator: str, path: Path) -> Scalar:
    where = f"{path}.value"
    if "value" not in body:
        raise MissingField(where)
    given = body["value"]
    if operator in ORDERING and (not isinstance(given, int | float) or isinstance(given, bool)):
        raise InvalidField(where, "It must be a number.")
    if operator in TEXTUAL and not isinstance(given, str):
        raise InvalidField(where, "It must be a string.")
    return _scalar(given, where)


def _scalar(given: object, path: Path) -> Scalar:
    if given is not None and not isinstance(given, str | int | float):
        raise InvalidField(path, "Use a string, a number, `true`, `false` or `null`.")
    return given


def _is_known(field: Field) -> bool:
    """Return whether the field can exist. Names of events may have any dots, so in `wait_events` only the
    length of the path is checked."""
    if field.source == "wait_events":
        return len(field.path) > 1 and all((field.path[0], field.path[-1]))
    if field.source == "event":
        return bool(field.path) and all(field.path)
    if len(field.path) == 1:
        return field.path[0] in CONTACT_FIELDS
    is_property = len(field.path) == 2 and field.path[0] == "properties"
    return is_property and PROPERTY.fullmatch(field.path[1]) is not None
