"""Reads fields and evaluates rules (automations.md 3.2). Nothing here raises: a rule whose value does not fit
is false."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pillarbox.automations.graphs.rules import (
    ORDERING,
    TEXTUAL,
    AllOf,
    AnyOf,
    Comparison,
    Field,
    Rule,
)
from pillarbox.kernel.wire.instants import database_style

Payload = dict[str, object]
"""A JSON object."""

_NO_DATES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ContactFacts:
    """A contact as rules see it. `properties` has the value of each defined property, else its fallback."""

    id: UUID
    email: str
    first_name: str | None
    last_name: str | None
    unsubscribed: bool
    created_at: datetime
    properties: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvaluationInput:
    """The facts that a rule may read: the event's payload, the contact if it still exists, and payloads that
    the run waited for. In a filter, the event is the one that arrived; `waited` has the last payload of each
    event name. `dates` gives, by event name, the keys that the event's schema declares as dates."""

    event: Payload
    contact: ContactFacts | None = None
    waited: Mapping[str, Payload] = field(default_factory=dict)
    event_name: str = ""
    dates: Mapping[str, frozenset[str]] = field(default_factory=dict)


def read(field: Field, facts: EvaluationInput) -> object:
    """Return the JSON value of a field; None where it is missing."""
    if field.source == "event":
        return _descend(facts.event, field.path)
    if field.source == "contact":
        return None if facts.contact is None else _of_contact(facts.contact, field.path)
    name, path = _waited(field.path, facts)
    return None if name is None else _descend(facts.waited[name], path)


def holds(rule: Rule, facts: EvaluationInput) -> bool:
    """Return whether the rule is true."""
    if isinstance(rule, AllOf):
        return all(holds(one, facts) for one in rule.rules)
    if isinstance(rule, AnyOf):
        return any(holds(one, facts) for one in rule.rules)
    return _compares(rule, read(rule.field, facts), facts)


async def holds_in_turns(rule: Rule, facts: EvaluationInput) -> bool:
    """Return whether a rule of any size is true, and let others run after each group of comparisons. A graph
    may have tens of thousands of them, and the payload that they read up to 100 KB."""
    if isinstance(rule, Comparison) or all(isinstance(one, Comparison) for one in rule.rules):
        await asyncio.sleep(0)
        return holds(rule, facts)
    is_or = isinstance(rule, AnyOf)
    for one in rule.rules:
        if await holds_in_turns(one, facts) == is_or:
            return is_or
    return not is_or


def _descend(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _of_contact(contact: ContactFacts, path: tuple[str, ...]) -> object:
    match path:
        case ("id",):
            return str(contact.id)
        case ("email",):
            return contact.email
        case ("first_name",):
            return contact.first_name
        case ("last_name",):
            return contact.last_name
        case ("unsubscribed",):
            return contact.unsubscribed
        case ("created_at",):
            return database_style(contact.created_at)
        case ("properties", key):
            return contact.properties.get(key)
        case _:
            return None


def _waited(path: tuple[str, ...], facts: EvaluationInput) -> tuple[str | None, tuple[str, ...]]:
    """Return the event that a path of `wait_events` begins with, and the rest. Names have dots, so the
    longest name that has come is taken."""
    for length in range(len(path) - 1, 0, -1):
        name = ".".join(path[:length])
        if name in facts.waited:
            return name, path[length:]
    return None, ()


def _compares(rule: Comparison, actual: object, facts: EvaluationInput) -> bool:
    operator, value = rule.operator, rule.value
    if operator == "exists":
        return actual is not None
    if operator == "is_empty":
        return actual is None or (isinstance(actual, str | list | dict) and not actual)
    if operator in ("eq", "neq"):
        return same(actual, value) == (operator == "eq")
    if operator in TEXTUAL:
        return _textual(operator, actual, value)
    if operator in ORDERING:
        number = _milliseconds(actual) if _is_date(rule.field, facts) else actual
        return _ordered(operator, number, value)
    raise AssertionError(operator)


def same(value: object, other: object) -> bool:
    """Return whether two JSON values have the same type and the same value; arrays and objects are the same
    as nothing."""
    if is_number(value) and is_number(other):
        return value == other
    return type(value) is type(other) and isinstance(value, str | bool | None) and value == other


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _textual(operator: str, actual: object, value: object) -> bool:
    assert isinstance(value, str)
    if isinstance(actual, list):
        return operator == "contains" and any(same(item, value) for item in actual)
    if not isinstance(actual, str):
        return False
    if operator == "contains":
        return value in actual
    return actual.startswith(value) if operator == "starts_with" else actual.endswith(value)


def _ordered(operator: str, actual: object, value: object) -> bool:
    if not isinstance(actual, int | float) or isinstance(actual, bool):
        return False
    assert isinstance(value, int | float)
    match operator:
        case "gt":
            return actual > value
        case "gte":
            return actual >= value
        case "lt":
            return actual < value
        case _:
            return actual <= value


def _is_date(field: Field, facts: EvaluationInput) -> bool:
    """Return whether a schema says that the field has dates; schemas are flat."""
    if field.source == "event":
        name: str | None = facts.event_name
        path = field.path
    elif field.source == "wait_events":
        name, path = _waited(field.path, facts)
    else:
        return False
    return name is not None and len(path) == 1 and path[0] in facts.dates.get(name, _NO_DATES)


def _milliseconds(actual: object) -> object:
    """Return a date as the milliseconds since 1970; what is no date stays, and compares as what it is."""
    if not isinstance(actual, str):
        return actual
    try:
        at = datetime.fromisoformat(actual)
    except ValueError:
        return None
    return None if at.tzinfo is None else at.timestamp() * 1000
