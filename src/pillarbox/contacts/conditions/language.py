"""Conditions of contacts as types: which facts they read, and how they compare (segments.md section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

Scalar = str | int | float | bool | None
"""A JSON value that is no array and no object."""

FactSource = Literal["contact", "topics", "segments", "events", "engagement", "broadcasts"]

ConditionOperator = Literal[
    "eq",
    "neq",
    "gt",
    "gte",
    "lt",
    "lte",
    "contains",
    "starts_with",
    "ends_with",
    "exists",
    "is_empty",
    "within_days",
    "older_than_days",
]

EQUAL: Final = ("eq", "neq")
ORDERING: Final = ("gt", "gte", "lt", "lte")
TEXTUAL: Final = ("contains", "starts_with", "ends_with")
UNARY: Final = ("exists", "is_empty")
RELATIVE: Final = ("within_days", "older_than_days")
"""Operators that compare an instant with so many days ago."""

TEXT_FIELDS: Final = ("id", "email", "first_name", "last_name")
ENGAGEMENTS: Final = ("opened", "clicked", "bounced")
SUBSCRIPTIONS: Final = ("opt_in", "opt_out")
BROADCAST_FATES: Final = ("sent", "opened", "clicked", "bounced", "not_opened")

DEEPEST: Final = 5
MOST_LISTED: Final = 20
"""Conditions that one `and` or `or` may have."""

MOST_COMPARISONS: Final = 30
MOST_JOINS: Final = 12
"""Rules that are not about fields of the contact: each is a join of the statement."""

LONGEST: Final = 16_000
"""Octets of a condition as JSON."""

MOST_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True)
class FactField:
    """A fact about a contact. `name` is one of its fields, `properties.KEY`, the id of a topic, segment or
    broadcast, the name of an event, or a word for engagement."""

    source: FactSource
    name: str

    @property
    def text(self) -> str:
        """The field as it was written."""
        return f"{self.source}.{self.name}"

    @property
    def property_key(self) -> str | None:
        """The key of the property that it names; None for other fields."""
        key = self.name.removeprefix("properties.")
        return key if self.source == "contact" and key != self.name else None

    @property
    def is_instant(self) -> bool:
        return self.source in ("events", "engagement") or self.text == "contact.created_at"


@dataclass(frozen=True, slots=True)
class FactComparison:
    """One fact against one value; the value of `exists` and `is_empty` is None."""

    field: FactField
    operator: ConditionOperator
    value: Scalar


@dataclass(frozen=True, slots=True)
class EveryCondition:
    """True where every condition is."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class SomeCondition:
    """True where one of the conditions is."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class NotCondition:
    """True where the condition is not."""

    condition: Condition


Condition = FactComparison | EveryCondition | SomeCondition | NotCondition


def comparisons(condition: Condition) -> Iterator[FactComparison]:
    """Yield the comparisons of a condition, in order."""
    match condition:
        case FactComparison():
            yield condition
        case NotCondition(inner):
            yield from comparisons(inner)
        case EveryCondition(several) | SomeCondition(several):
            for one in several:
                yield from comparisons(one)


def as_json(condition: Condition) -> dict[str, Any]:
    """Return the condition as it is stored and shown."""
    match condition:
        case FactComparison(field, operator, value):
            shown = {"type": "rule", "field": field.text, "operator": operator}
            return shown if operator in UNARY else {**shown, "value": value}
        case NotCondition(inner):
            return {"type": "not", "rule": as_json(inner)}
        case EveryCondition(several):
            return {"type": "and", "rules": [as_json(one) for one in several]}
        case SomeCondition(several):
            return {"type": "or", "rules": [as_json(one) for one in several]}
