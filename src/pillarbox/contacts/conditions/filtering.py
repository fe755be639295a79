"""Filters of contacts, and their SQL with the properties as the team has defined them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.contact_properties import definitions
from pillarbox.contacts.conditions import reference_queries
from pillarbox.contacts.conditions.compiling import CompiledFilter, KnownFacts, KnownProperty, compiled
from pillarbox.contacts.conditions.language import Condition, comparisons
from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True)
class ContactFilter:
    """A filter of contacts: they fit the condition, and have every word of `search` in their
    address or names. Conditions that look back do so from `now`."""

    now: datetime
    condition: Condition | None = None
    search: str | None = None


async def compiled_filter(db: TeamDb, contact_filter: ContactFilter, first: int) -> CompiledFilter:
    """Return the SQL of a filter, for a statement whose own parameters end before `first`."""
    condition = contact_filter.condition
    known = await facts_of(db, [] if condition is None else [condition])
    return compiled(condition, contact_filter.search, known, contact_filter.now, first)


async def facts_of(db: TeamDb, conditions: Sequence[Condition]) -> KnownFacts:
    """Return what the team has of what these conditions name."""
    fields = {one.field for condition in conditions for one in comparisons(condition)}
    keys = sorted({key for field in fields if (key := field.property_key) is not None})
    known = await definitions.named(db, keys) if keys else []
    properties = {one.key: KnownProperty(one.number, one.fallback_value) for one in known}
    ids = sorted({UUID(field.name) for field in fields if field.source in ("topics", "segments")})
    if not ids:
        return KnownFacts(properties, {}, ())
    return KnownFacts(
        properties, await reference_queries.topic_defaults(db, ids), await reference_queries.segments(db, ids)
    )
