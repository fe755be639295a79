"""Filters of contacts as rows of a form: a field, an operator and a value each, joined by `and` or `or`.

A row without a value is left out, so somebody may choose the field first. Conditions that do not fit into
rows are shown and edited as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

MOST_ROWS: Final = 10
ALL: Final = "all"
ANY: Final = "any"

TEXT_OPERATORS: Final = (
    "contains",
    "not_contains",
    "eq",
    "neq",
    "starts_with",
    "ends_with",
    "exists",
    "is_empty",
)
NUMBER_OPERATORS: Final = ("eq", "neq", "gt", "gte", "lt", "lte", "exists", "is_empty")
INSTANT_OPERATORS: Final = (
    "within_days",
    "not_within_days",
    "older_than_days",
    "gte",
    "lt",
    "exists",
    "is_empty",
)
OPERATORS: Final[Mapping[str, Sequence[str]]] = {
    "text": TEXT_OPERATORS,
    "number": NUMBER_OPERATORS,
    "boolean": ("yes", "no", "is_empty"),
    "flag": ("yes", "no"),
    "created": ("within_days", "older_than_days", "gte", "lt"),
    "instant": INSTANT_OPERATORS,
    "topic": ("opt_in", "opt_out"),
    "segment": ("in", "not_in"),
    "broadcast": ("sent", "not_sent", "opened", "not_opened", "clicked", "bounced"),
}
"""The operators of each kind of field, as the form offers them."""

WITHOUT_VALUE: Final = frozenset(
    {"exists", "is_empty", "yes", "no", *OPERATORS["topic"], *OPERATORS["segment"], *OPERATORS["broadcast"]}
)
IN_DAYS: Final = frozenset({"within_days", "not_within_days", "older_than_days"})
NEGATED: Final = {"not_contains": "contains", "not_within_days": "within_days"}
WITH_VALUE: Final[Mapping[str, tuple[str, Any]]] = {
    "yes": ("eq", True),
    "no": ("eq", False),
    "opt_in": ("eq", "opt_in"),
    "opt_out": ("eq", "opt_out"),
    "in": ("eq", True),
    "not_in": ("eq", False),
    "sent": ("eq", "sent"),
    "not_sent": ("neq", "sent"),
    "opened": ("eq", "opened"),
    "not_opened": ("eq", "not_opened"),
    "clicked": ("eq", "clicked"),
    "bounced": ("eq", "bounced"),
}
"""The operators that say their value as well, as the API has them."""


class FilterRow(NamedTuple):
    """One row: a field as the API names it, an operator of the form, and what was typed."""

    field: str
    operator: str
    value: str


class RowKind(NamedTuple):
    """The kind of a row, which decides over its operators; `input` is the type of its field for a value."""

    kind: str
    operators: Sequence[str]
    input: str | None


def kind_of(field: str, property_types: Mapping[str, str]) -> str | None:
    """Return the kind of a field; None for one that is not known."""
    source, _, name = field.partition(".")
    if source == "contact":
        if name == "created_at":
            return "created"
        if name == "unsubscribed":
            return "flag"
        key = name.removeprefix("properties.")
        if key != name:
            kind = property_types.get(key)
            return "text" if kind == "string" else kind
        return "text" if name in ("email", "first_name", "last_name") else None
    kinds = {
        "topics": "topic",
        "segments": "segment",
        "broadcasts": "broadcast",
        "events": "instant",
        "engagement": "instant",
    }
    return kinds.get(source)


def input_of(kind: str, operator: str) -> str | None:
    """Return the type of the field for the value; None where the operator has none."""
    if operator in WITHOUT_VALUE:
        return None
    if operator in IN_DAYS:
        return "number"
    if kind in ("instant", "created"):
        return "date"
    return "number" if kind == "number" else "text"


def row_kind(row: FilterRow, property_types: Mapping[str, str]) -> RowKind | None:
    """Return what a row may have; None where its field is not known."""
    kind = kind_of(row.field, property_types)
    if kind is None:
        return None
    operators = OPERATORS[kind]
    operator = row.operator if row.operator in operators else operators[0]
    return RowKind(kind, operators, input_of(kind, operator))


def rows_in(read: Callable[[str], str | None]) -> list[FilterRow]:
    """Return the rows of a form or an address, those without a field left out; `read` gives its fields."""
    numbers = range(1, MOST_ROWS + 1)
    return [
        FilterRow(field, read(f"o{number}") or "", read(f"v{number}") or "")
        for number in numbers
        if (field := read(f"f{number}"))
    ]


def condition_of_rows(
    rows: Sequence[FilterRow], match: str, property_types: Mapping[str, str]
) -> Json | None:
    """Return the condition of the rows that are complete, as the API has it; None where there is none."""
    rules = [rule for row in rows if (rule := _rule(row, property_types)) is not None]
    if not rules:
        return None
    return rules[0] if len(rules) == 1 else {"type": "or" if match == ANY else "and", "rules": rules}


def rows_of_condition(
    condition: Json, property_types: Mapping[str, str]
) -> tuple[list[FilterRow], str] | None:
    """Return the rows of a condition and how they are joined; None where it does not fit into rows."""
    match = ANY if condition["type"] == "or" else ALL
    rules = condition["rules"] if condition["type"] in ("and", "or") else [condition]
    rows = [_row(rule, property_types) for rule in rules]
    known = [row for row in rows if row is not None]
    return (known, match) if len(known) == len(rows) <= MOST_ROWS else None


def _rule(row: FilterRow, property_types: Mapping[str, str]) -> Json | None:
    kind = kind_of(row.field, property_types)
    if kind is None:
        return None
    operator = row.operator if row.operator in OPERATORS[kind] else OPERATORS[kind][0]
    rule: Json = {"type": "rule", "field": row.field, "operator": operator}
    if operator in WITH_VALUE:
        rule["operator"], rule["value"] = WITH_VALUE[operator]
    elif operator not in WITHOUT_VALUE:
        if not row.value.strip():
            return None
        rule["operator"] = NEGATED.get(operator, operator)
        rule["value"] = _value(row.value, input_of(kind, operator))
    return {"type": "not", "rule": rule} if operator in NEGATED else rule


def _value(text: str, input_type: str | None) -> str | float:
    """Return what was typed; a text that is no number stays one, and the API refuses it."""
    if input_type != "number":
        return text.strip() if input_type == "date" else text
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _row(rule: Json, property_types: Mapping[str, str]) -> FilterRow | None:
    """Return the row that becomes this rule."""
    inner = rule.get("rule", rule) if rule["type"] == "not" else rule
    if inner["type"] != "rule":
        return None
    field, value = inner["field"], inner.get("value")
    kind = kind_of(field, property_types)
    for shown in OPERATORS.get(kind or "", ()):
        text = _text(value) if shown not in WITHOUT_VALUE else ""
        row = FilterRow(field, shown, text)
        if _rule(row, property_types) == rule:
            return row
    return None


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
