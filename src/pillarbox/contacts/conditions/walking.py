"""Pages of contacts that fit a filter, in bounded time: contacts are gone through in slices, the newest
first.

Where few of very many fit, a page ends before it is full, with the cursor behind what was looked at. Words
are looked for among the newest contacts themselves, and then by the terms of all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pillarbox.contacts.conditions import queries
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.list_queries import ExportedContact
from pillarbox.contacts.name_search.terms import terms_to_find
from pillarbox.kernel.postgres.database import StatementLimitError, TeamDb
from pillarbox.kernel.wire.paging import NEWEST, OLDEST

SLICES: Final = (2_000, 20_000, 50_000)
"""Contacts of the first slices; those behind them have as many as the last."""

TERMS_SECONDS: Final = 0.3
"""Seconds that contacts are looked for by their terms; words of which more have some are found in slices."""

ENOUGH: Final = 0.18
"""Seconds after which no other slice is begun."""


@dataclass(frozen=True, slots=True)
class FittingPage:
    """Contacts that fit, the newest first. `following` is the cursor of the next page; None at the end."""

    contacts: Sequence[ExportedContact]
    following: UUID | None


async def fitting_page(
    db: TeamDb, contact_filter: ContactFilter, limit: int, after: UUID | None
) -> FittingPage:
    """Return the next contacts that fit below a position."""
    began = time.monotonic()
    found: list[ExportedContact] = []
    position, number = after or NEWEST, 0
    while True:
        lowest = await queries.below(db, position, SLICES[min(number, len(SLICES) - 1)])
        number += 1
        found += await queries.between(db, contact_filter, position, lowest or OLDEST, limit + 1 - len(found))
        if len(found) > limit:
            return FittingPage(found[:limit], found[limit - 1].id)
        if lowest is None:
            return FittingPage(found, None)
        position = lowest
        if number == len(SLICES) - 1:
            rest = await _by_terms(db, contact_filter, position, limit + 1 - len(found))
            if rest is not None:
                found += rest
                more = len(found) > limit
                return FittingPage(found[:limit], found[limit - 1].id if more else None)
        if time.monotonic() - began >= ENOUGH:
            return FittingPage(found, position)


async def _by_terms(
    db: TeamDb, contact_filter: ContactFilter, below: UUID, limit: int
) -> Sequence[ExportedContact] | None:
    """Return the contacts below a position that have the words that are looked for; None where terms do not
    tell: the words are too short, or too many contacts have them."""
    terms = terms_to_find(db.team_id, contact_filter.search or "")
    if not terms:
        return None
    try:
        async with db.statement_limit(TERMS_SECONDS) as limited:
            return await queries.by_terms(limited, contact_filter, below, terms, limit)
    except StatementLimitError:
        return None
