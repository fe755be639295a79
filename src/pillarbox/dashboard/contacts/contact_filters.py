"""The filter of the table of contacts, as it stands in the address and in forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.filters_on_wire import words_of
from pillarbox.contacts.conditions.membership import counts
from pillarbox.contacts.conditions.parsing import condition_of
from pillarbox.contacts.conditions.queries import FittingCounts
from pillarbox.dashboard.contacts.fact_choices import FactChoices
from pillarbox.dashboard.contacts.filter_rows import (
    ALL,
    ANY,
    MOST_ROWS,
    FilterRow,
    RowKind,
    condition_of_rows,
    row_kind,
    rows_in,
)
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.kernel.postgres.database import StatementLimitError, TeamDb

MOST_COLUMNS: Final = 12

SOON: Final = 0.05
"""Seconds that a screen waits for a count."""

LONG: Final = 8.0
"""Seconds that somebody waits who asks for the count."""

QUERY: Final[Mapping[str, Any]] = {
    "search": str,
    "match": str,
    "column": str,
    "count": str,
    **{f"{letter}{number}": str for number in range(1, MOST_ROWS + 1) for letter in "fov"},
}
"""Query parameters of a filter."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of the form: what it is about, its operators and the field of its value."""

    row: FilterRow
    kind: RowKind


@dataclass(frozen=True, slots=True)
class ContactTableFilter:
    """The filter that an address has: rows as they were chosen, and the condition of those that are
    complete."""

    search: str
    rows: Sequence[FilterRow]
    match: str
    columns: Sequence[str]
    condition: Mapping[str, Any] | None

    @property
    def is_filtered(self) -> bool:
        return bool(self.search or self.rows)

    @property
    def json(self) -> str:
        """The condition as JSON; empty where there is none."""
        return "" if self.condition is None else json.dumps(self.condition, ensure_ascii=False)

    def shown(self, choices: FactChoices) -> list[ShownRow]:
        """Return the rows as the form shows them."""
        return [
            ShownRow(row, kind)
            for row in self.rows
            if (kind := row_kind(row, choices.property_types)) is not None
        ]

    def address(self, path: str, **more: str) -> str:
        """Return the address of a screen with this filter."""
        pairs = [("search", self.search)] if self.search else []
        for number, row in enumerate(self.rows, 1):
            pairs += [(f"f{number}", row.field), (f"o{number}", row.operator)]
            pairs += [(f"v{number}", row.value)] if row.value else []
        pairs += [("match", ANY)] if self.match == ANY else []
        pairs += [("column", ",".join(self.columns))] if self.columns else []
        pairs += list(more.items())
        return f"{path}?{urlencode(pairs)}" if pairs else path


def given_filter(visit: Visit, choices: FactChoices) -> ContactTableFilter:
    """Return the filter of the address."""
    query = visit.request.query
    rows = rows_in(query.text)
    match = ANY if query.last("match") == ANY else ALL
    return ContactTableFilter(
        search=(query.text("search") or "").strip(),
        rows=rows,
        match=match,
        columns=query.items("column")[:MOST_COLUMNS],
        condition=condition_of_rows(rows, match, choices.property_types),
    )


def contact_filter(visit: Visit, condition: Mapping[str, Any] | None, search: str) -> ContactFilter:
    """Return the filter of a condition and of words; Invalid where they mean nothing."""
    found = None if condition is None else condition_of(condition, "conditions")
    return ContactFilter(visit.request.at, found, words_of(search, "search"))


async def counted(db: TeamDb, fitting: ContactFilter, seconds: float = SOON) -> FittingCounts | None:
    """Return how many contacts fit; None where counting takes longer than so many seconds."""
    try:
        async with db.statement_limit(seconds) as limited:
            return await counts(limited, fitting)
    except StatementLimitError:
        return None
