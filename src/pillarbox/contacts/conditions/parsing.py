"""Conditions of contacts from JSON (segments.md section 3). 422 for the first violation."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, cast, get_args
from uuid import UUID

import msgspec

from pillarbox.contact_properties.definitions import GREATEST
from pillarbox.contacts.conditions.language import (
    BROADCAST_FATES,
    DEEPEST,
    ENGAGEMENTS,
    EQUAL,
    LONGEST,
    MOST_COMPARISONS,
    MOST_DAYS,
    MOST_JOINS,
    MOST_LISTED,
    ORDERING,
    RELATIVE,
    SUBSCRIPTIONS,
    TEXT_FIELDS,
    TEXTUAL,
    UNARY,
    Condition,
    ConditionOperator,
    EveryCondition,
    FactComparison,
    FactField,
    FactSource,
    NotCondition,
    Scalar,
    SomeCondition,
    as_json,
    comparisons,
)
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.json_members import Body, Path, as_array, as_object, required, text, word
from pillarbox.kernel.wire.problems import InvalidField, MissingField
from pillarbox.kernel.wire.uuids import well_formed

SOURCES: Final[tuple[FactSource, ...]] = get_args(FactSource)
OPERATORS: Final[tuple[str, ...]] = get_args(ConditionOperator)
OPERATORS_OF_INSTANTS: Final = (*ORDERING, *RELATIVE, *UNARY)
OPERATORS_OF_PROPERTIES: Final = (*EQUAL, *ORDERING, *TEXTUAL, *UNARY)
OPERATORS_OF_TEXTS: Final = (*EQUAL, *TEXTUAL, *UNARY)

MOST_FIELD: Final = 300
MOST_VALUE: Final = 2000
MOST_EVENT: Final = 200
PROPERTY: Final = re.compile(r"[A-Za-z0-9_]{1,50}", re.ASCII)
KINDS: Final = ("rule", "and", "or", "not")


def condition_of(value: object, path: Path) -> Condition:
    """Return the condition of a JSON value, within the bounds of the language."""
    found = _condition(value, path, 1)
    compared = list(comparisons(found))
    if len(compared) > MOST_COMPARISONS:
        raise InvalidField(path, f"Use at most {MOST_COMPARISONS} rules.")
    if len({one for one in compared if one.field.source != "contact"}) > MOST_JOINS:
        raise InvalidField(path, f"Use at most {MOST_JOINS} rules that are not about fields of the contact.")
    if len(msgspec.json.encode(as_json(found))) > LONGEST:
        raise InvalidField(path, f"Use at most {LONGEST} octets.")
    return found


def condition_in(given: str, path: Path) -> Condition:
    """Return the condition that a text has as JSON, as in a query parameter."""
    if len(given.encode(errors="replace")) > LONGEST:
        raise InvalidField(path, f"Use at most {LONGEST} octets.")
    if "\\u0000" in given:
        raise InvalidField(path, "U+0000 is not allowed.")
    try:
        value = msgspec.json.decode(given)
    except msgspec.DecodeError:
        raise InvalidField(path, "It must be JSON.") from None
    except RecursionError:
        raise InvalidField(path, f"Rules may stand in each other {DEEPEST} deep.") from None
    return condition_of(value, path)


def stored_condition(given: str) -> Condition:
    """Return a condition that was checked when it was stored. One that was joined with that of a segment may
    be deeper by one, and twice as long as one that is given."""
    return _condition(msgspec.json.decode(given), "conditions", 0)


def _condition(value: object, path: Path, depth: int) -> Condition:
    body = as_object(value, path)
    kind = word(required(body, "type", path), f"{path}.type", KINDS)
    if depth > DEEPEST:
        raise InvalidField(path, f"Rules may stand in each other {DEEPEST} deep.")
    if kind == "rule":
        return _comparison(body, path)
    if kind == "not":
        if body.get("rule") is None:
            raise MissingField(f"{path}.rule")
        return NotCondition(_condition(body["rule"], f"{path}.rule", depth + 1))
    where = f"{path}.rules"
    if body.get("rules") is None:
        raise MissingField(where)
    items = as_array(body["rules"], where, MOST_LISTED)
    if not items:
        raise InvalidField(where, "Use at least 1 item.")
    found = tuple(_condition(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(items))
    return EveryCondition(found) if kind == "and" else SomeCondition(found)


def _comparison(body: Body, path: Path) -> FactComparison:
    field = _field(required(body, "field", path), f"{path}.field")
    operator = word(required(body, "operator", path), f"{path}.operator", _operators_of(field))
    value = None if operator in UNARY else _value(body, field, operator, path)
    return FactComparison(field, cast(ConditionOperator, operator), value)


def _field(value: object, path: Path) -> FactField:
    source, _, name = text(value, path, MOST_FIELD).partition(".")
    if source not in SOURCES:
        allowed = " or ".join(f"`{one}.`" for one in SOURCES)
        raise InvalidField(path, f"It must begin with {allowed}.")
    if source in ("topics", "segments", "broadcasts") and well_formed(name):
        name = str(UUID(name))
    if not _is_known(source, name):
        raise InvalidField(path, "There is no such field.")
    return FactField(source, name)


def _is_known(source: str, name: str) -> bool:
    if source == "contact":
        key = name.removeprefix("properties.")
        is_property = key != name and PROPERTY.fullmatch(key) is not None
        return is_property or name in (*TEXT_FIELDS, "unsubscribed", "created_at")
    if source == "engagement":
        return name in ENGAGEMENTS
    if source == "events":
        return 0 < len(name) <= MOST_EVENT and "\0" not in name
    return well_formed(name)


def _operators_of(field: FactField) -> tuple[str, ...]:
    if field.is_instant:
        return OPERATORS_OF_INSTANTS
    if field.property_key is not None:
        return OPERATORS_OF_PROPERTIES
    if field.source == "contact" and field.name in TEXT_FIELDS:
        return OPERATORS_OF_TEXTS
    return EQUAL


def _value(body: Body, field: FactField, operator: str, path: Path) -> Scalar:
    where = f"{path}.value"
    if "value" not in body:
        raise MissingField(where)
    value = body["value"]
    if operator in RELATIVE:
        return _days(value, where)
    if field.is_instant:
        return _instant(value, where)
    if operator in ORDERING:
        return _number(value, where)
    if operator in TEXTUAL:
        return text(value, where, MOST_VALUE)
    return _equal_value(value, field, where)


def _equal_value(value: object, field: FactField, where: Path) -> Scalar:
    """Return the value of `eq` and `neq`: a property may have any type, other fields have one."""
    if field.source == "topics":
        return word(value, where, SUBSCRIPTIONS)
    if field.source == "broadcasts":
        return word(value, where, BROADCAST_FATES)
    if field.source == "segments" or field.name == "unsubscribed":
        if not isinstance(value, bool):
            raise InvalidField(where, "It must be `true` or `false`.")
        return value
    if isinstance(value, str):
        return text(value, where, MOST_VALUE)
    if value is None or isinstance(value, bool):
        return value
    return _number(value, where)


def _number(value: object, where: Path) -> int | float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidField(where, "It must be a number.")
    if not -GREATEST <= value <= GREATEST:
        raise InvalidField(where, f"Use a number from -{GREATEST} to {GREATEST}.")
    return value


def _days(value: object, where: Path) -> int | float:
    number = _number(value, where)
    if not 0 < number <= MOST_DAYS:
        raise InvalidField(where, f"Use a number of days from 1 to {MOST_DAYS}.")
    return number


def _instant(value: object, where: Path) -> Scalar:
    """Return an instant: ISO 8601, or the milliseconds since 1970, as in rules of automations."""
    if isinstance(value, str):
        try:
            parse_instant(value, date_only=True)
        except ValueError:
            raise InvalidField(where, "Use a date or an ISO 8601 time.") from None
        return value
    number = _number(value, where)
    try:
        datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidField(where, "Use a date or an ISO 8601 time.") from None
    return number
