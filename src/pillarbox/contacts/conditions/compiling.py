"""From a condition to SQL: joins, a predicate and its arguments, for one statement over all contacts of a
team.

A comparison with something outside of the contact's row is one LEFT JOIN of the rows that fit it, at most
one for a contact. Its predicate is whether there is one. So PostgreSQL knows how many rows there are, and
can hash or merge them below any `or` and `not`; subqueries would be asked contact by contact. A predicate
is true or false, never null, so that `not` means what it says.

Statements are whole texts with two comments at which a condition is put in (`filled`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.contacts.conditions.language import (
    ORDERING,
    RELATIVE,
    TEXTUAL,
    Condition,
    EveryCondition,
    FactComparison,
    FactField,
    NotCondition,
    Scalar,
    SomeCondition,
)
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.uuids import well_formed

JOINS: Final = "/* joins */"
CONDITIONS: Final = "/* conditions */"
"""Where a statement takes the joins of a condition, and its predicate behind those that it has."""

COMPARED: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

ROWS: Final = {
    "topics": (
        "topic_choices {0} ON {0}.team_id = $1 AND {0}.topic_id = {1}::uuid AND {0}.subscription = {2}"
        " AND {0}.contact_id = c.id"
    ),
    "segments": (
        "segment_members {0} ON {0}.team_id = $1 AND {0}.segment_id = {1}::uuid AND {0}.contact_id = c.id"
    ),
    "events": (
        "contact_events {0} ON {0}.team_id = $1 AND {0}.name = {1}::text AND {0}.last_at {2}"
        " AND {0}.contact_id = c.id"
    ),
    "engagement": ("contact_engagement {0} ON {0}.team_id = $1 AND {0}.{1}_at {2} AND {0}.contact_id = c.id"),
    "broadcasts": (
        "(broadcast_recipients {0} JOIN recipients {0}r ON {0}r.team_id = $1"
        " AND {0}r.email_id = {0}.email_id AND {0}r.position = 0 AND {2})"
        " ON {0}.team_id = $1 AND {0}.broadcast_id = {1}::uuid AND {0}.contact_id = c.id"
    ),
}
"""The rows of each source that fit a comparison: with their alias, what names the thing, and how it
compares."""

FATES: Final = {
    "sent": "true",
    "opened": "{0}r.opened_at IS NOT NULL",
    "clicked": "{0}r.clicked_at IS NOT NULL",
    "bounced": "{0}r.bounce_type IS NOT NULL",
    "not_opened": "{0}r.opened_at IS NULL AND {0}r.clicked_at IS NULL",
}

OTHER_SUBSCRIPTION: Final = {"opt_in": "opt_out", "opt_out": "opt_in"}


class KnownProperty(NamedTuple):
    """A property of the team: the number of its values, and the JSON of its fallback, if it has one."""

    number: int
    fallback: str | None


class KnownFacts(NamedTuple):
    """The things that a condition names and the team has: properties by key, the defaults of topics,
    segments."""

    properties: Mapping[str, KnownProperty]
    topics: Mapping[UUID, str]
    segments: Collection[UUID]


class CompiledFilter(NamedTuple):
    """The joins, the predicate and the arguments of a filter. The first argument is that of `first`."""

    joins: str
    predicate: str
    args: tuple[object, ...]


def compiled(
    condition: Condition | None,
    search: str | None,
    known: KnownFacts,
    now: datetime,
    first: int,
) -> CompiledFilter:
    """Return the SQL of a filter over `contacts c`, for a statement with parameters before `first`."""
    compiler = _Compiler(known, now, first)
    predicates = [] if condition is None else [compiler.predicate(condition)]
    predicates += [compiler.has_word(word) for word in (search or "").split()]
    joins = " ".join(f"LEFT JOIN {join}" for join in compiler.joins.values())
    return CompiledFilter(joins, " AND ".join(predicates) or "true", tuple(compiler.args))


def filled(statement: str, compiled_filter: CompiledFilter) -> str:
    """Return the statement with a filter in its places."""
    whole = statement.replace(JOINS, compiled_filter.joins)
    return whole.replace(CONDITIONS, f"AND ({compiled_filter.predicate})")


@dataclass(slots=True)
class _Compiler:
    known: KnownFacts
    now: datetime
    first: int
    args: list[object] = field(default_factory=list)
    joins: dict[str, str] = field(default_factory=dict)
    aliases: dict[tuple[object, ...], str] = field(default_factory=dict)

    def predicate(self, condition: Condition) -> str:
        match condition:
            case EveryCondition(several):
                return f"({' AND '.join([self.predicate(one) for one in several])})"
            case SomeCondition(several):
                return f"({' OR '.join([self.predicate(one) for one in several])})"
            case NotCondition(inner):
                return f"(NOT {self.predicate(inner)})"
            case FactComparison(compared, "is_empty") if compared.is_instant:
                return f"(NOT {self.predicate(FactComparison(compared, 'exists', None))})"
            case FactComparison(compared) if compared.is_instant:
                return self._instant(condition)
            case FactComparison(compared, "neq", value):
                return f"(NOT {self.predicate(FactComparison(compared, 'eq', value))})"
            case FactComparison(compared) if compared.property_key is not None:
                return self._property(condition, compared.property_key)
            case FactComparison(compared, _, value):
                return self._fact(condition, compared, value)

    def has_word(self, word: str) -> str:
        """Return the predicate that the address or the names have a text in them, whatever its case."""
        given = self._given(word.lower(), "text")
        return (
            f"(strpos(c.address, {given}) > 0 OR coalesce(strpos(lower(c.first_name), {given}) > 0, false)"
            f" OR coalesce(strpos(lower(c.last_name), {given}) > 0, false))"
        )

    def _given(self, value: object, kind: str) -> str:
        """Return the parameter of a value."""
        self.args.append(value)
        return f"${self.first + len(self.args) - 1}::{kind}"

    def _exists(self, compared: FactField, fits: str) -> str:
        """Return the predicate that a source has a row of the contact that fits."""
        key = (compared, fits)
        alias = self.aliases.get(key)
        if alias is None:
            alias = self.aliases[key] = f"j{len(self.aliases) + 1}"
            name = compared.name
            if compared.source != "engagement":
                self.args.append(name if compared.source == "events" else UUID(name))
                name = f"${self.first + len(self.args) - 1}"
            self.joins[alias] = ROWS[compared.source].format(alias, name, fits.format(alias))
        return f"({alias}.contact_id IS NOT NULL)"

    def _instant(self, comparison: FactComparison) -> str:
        compared, operator, value = comparison.field, comparison.operator, comparison.value
        if operator == "exists":
            fits = "IS NOT NULL"
        elif operator in RELATIVE:
            assert isinstance(value, int | float)
            sign = ">=" if operator == "within_days" else "<"
            fits = f"{sign} {self._once(self.now - timedelta(days=value))}"
        else:
            fits = f"{COMPARED[operator]} {self._once(_instant_of(value))}"
        return f"(c.created_at {fits})" if compared.source == "contact" else self._exists(compared, fits)

    def _once(self, instant: datetime) -> str:
        """Return the parameter of an instant, the same one for the same instant."""
        if instant in self.args:
            return f"${self.first + self.args.index(instant)}::timestamptz"
        return self._given(instant, "timestamptz")

    def _property(self, comparison: FactComparison, key: str) -> str:
        operator, value = comparison.operator, comparison.value
        known = self.known.properties.get(key)
        if known is None:
            return _of_nothing(operator, value)
        if operator == "eq" and known.fallback is None and value is not None:
            pair = msgspec.json.encode({str(known.number): value}).decode()
            return f"(c.properties @> {self._given(pair, 'text')}::jsonb)"
        number = self._given(str(known.number), "text")
        found = f"(c.properties -> {number})"
        if known.fallback is not None:
            found = f"coalesce({found}, {self._given(known.fallback, 'text')}::jsonb)"
        if operator == "exists":
            return f"({found} IS NOT NULL)"
        if operator == "is_empty":
            return f"coalesce({found} = '\"\"'::jsonb, true)"
        if operator == "eq":
            if value is None:
                return f"({found} IS NULL)"
            wanted = self._given(msgspec.json.encode(value).decode(), "text")
            return f"coalesce({found} = {wanted}::jsonb, false)"
        if operator in ORDERING:
            bound = self._given(str(value), "text")
            is_so = f"({found} #>> '{{}}')::numeric {COMPARED[operator]} {bound}::numeric"
            return f"(CASE WHEN jsonb_typeof({found}) = 'number' THEN {is_so} ELSE false END)"
        is_so = self._textual(f"({found} #>> '{{}}')", operator, value)
        return f"(CASE WHEN jsonb_typeof({found}) = 'string' THEN {is_so} ELSE false END)"

    def _fact(self, comparison: FactComparison, compared: FactField, value: Scalar) -> str:
        match compared.source:
            case "topics":
                return self._topic(compared, str(value))
            case "segments":
                if UUID(compared.name) not in self.known.segments:
                    return "false" if value else "true"
                is_in = self._exists(compared, "")
                return is_in if value else f"(NOT {is_in})"
            case "broadcasts":
                return self._exists(compared, FATES[str(value)])
        if compared.name == "unsubscribed":
            return "c.unsubscribed" if value else "(NOT c.unsubscribed)"
        return self._text(comparison, compared.name, value)

    def _topic(self, compared: FactField, value: str) -> str:
        """Return the predicate on what counts of a topic: the choice, else the default; of one that is gone
        nothing does."""
        default = self.known.topics.get(UUID(compared.name))
        if default is None:
            return "false"
        if default == value:
            return f"(NOT {self._exists(compared, repr(OTHER_SUBSCRIPTION[value]))})"
        return self._exists(compared, repr(value))

    def _text(self, comparison: FactComparison, name: str, value: Scalar) -> str:
        operator = comparison.operator
        if name == "id" and operator == "eq":
            if not isinstance(value, str) or not well_formed(value):
                return "false"
            return f"(c.id = {self._given(UUID(value), 'uuid')})"
        column = {"id": "c.id::text", "email": "coalesce(c.email, c.address)"}.get(name, f"c.{name}")
        if operator == "exists":
            return f"({column} IS NOT NULL)"
        if operator == "is_empty":
            return f"(coalesce({column}, '') = '')"
        if operator == "eq":
            if value is None:
                return f"({column} IS NULL)"
            if not isinstance(value, str):
                return "false"
            return f"coalesce({column} = {self._given(value, 'text')}, false)"
        return f"coalesce({self._textual(column, operator, value)}, false)"

    def _textual(self, column: str, operator: str, value: Scalar) -> str:
        assert operator in TEXTUAL
        given = self._given(value, "text")
        if operator == "contains":
            return f"strpos({column}, {given}) > 0"
        if operator == "starts_with":
            return f"starts_with({column}, {given})"
        return f"right({column}, length({given})) = {given}"


def _of_nothing(operator: str, value: Scalar) -> str:
    """Return what a comparison with a missing fact is."""
    return "true" if operator == "is_empty" or (operator == "eq" and value is None) else "false"


def _instant_of(value: Scalar) -> datetime:
    if isinstance(value, str):
        return parse_instant(value, date_only=True)
    assert isinstance(value, int | float)
    return datetime.fromtimestamp(value / 1000, UTC)
