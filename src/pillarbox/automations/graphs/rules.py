"""Rules and values as types: what they read, and how they compare (automations.md 3.2 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Scalar = str | int | float | bool | None
"""A JSON value that is no array and no object."""

Source = Literal["event", "contact", "wait_events"]

Operator = Literal[
    "eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with", "ends_with", "exists", "is_empty"
]

ORDERING: Final = frozenset({"gt", "gte", "lt", "lte"})
TEXTUAL: Final = frozenset({"contains", "starts_with", "ends_with"})
UNARY: Final = frozenset({"exists", "is_empty"})
"""Operators without a value."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a rule or a value reads; `path` is the part behind the source, split at its dots. For
    `contact` it is one name, or `properties` and a key. For `wait_events` it begins with the name of an
    event, which may contain dots."""

    source: Source
    path: tuple[str, ...]

    @property
    def text(self) -> str:
        """The field as it was written."""
        return ".".join((self.source, *self.path))


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that stands in the graph."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class FromField:
    """A value that is read when its step begins."""

    field: Field


@dataclass(frozen=True, slots=True)
class JsonValue:
    """An array or object that stands in the graph, as JSON text; a variable of a template alone has one."""

    text: str


Value = Constant | FromField | JsonValue


@dataclass(frozen=True, slots=True)
class Comparison:
    """One field against one value; the value of `exists` and `is_empty` is None."""

    field: Field
    operator: Operator
    value: Scalar


@dataclass(frozen=True, slots=True)
class AllOf:
    """True where every rule is."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True where one of the rules is."""

    rules: tuple[Rule, ...]


Rule = Comparison | AllOf | AnyOf


def comparisons(rule: Rule) -> int:
    """Return how many fields a rule may have to look at."""
    return 1 if isinstance(rule, Comparison) else sum(comparisons(one) for one in rule.rules)
