"""A broadcast in parts: by mailbox provider, and what people and programs opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.broadcasts.reports import breakdown_queries as queries
from pillarbox.broadcasts.reports.breakdown_queries import PeopleAndPrograms
from pillarbox.broadcasts.reports.copies import ids_of_copies
from pillarbox.broadcasts.reports.queries import started
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.metrics.providers.names import provider_of

MOST_DOMAINS: Final = 200
"""Domains of recipients whose provider is looked for; the others are together."""

OTHERS: Final = ""


class ProviderReport(NamedTuple):
    """The copies to one provider, by their fate; "" stands for the others."""

    provider: str
    copies: int
    delivered: int
    bounced: int
    complained: int
    opened: int
    clicked: int


NOBODY: Final = PeopleAndPrograms(opened=0, opened_by_machine=0, clicked=0, clicked_by_machine=0)


async def by_provider(db: TeamDb, broadcast_id: UUID) -> Sequence[ProviderReport]:
    """Return what became of the copies by the provider that took them, the largest first."""
    broadcast = await started(db, broadcast_id)
    ids = None if broadcast is None else ids_of_copies(broadcast)
    if ids is None:
        return ()
    sums: dict[str, list[int]] = {}
    for row in await queries.by_domain(db, broadcast_id, ids, MOST_DOMAINS):
        name = OTHERS if row.domain is None else provider_of(row.host or row.domain)
        counts = (row.copies, row.delivered, row.bounced, row.complained, row.opened, row.clicked)
        before = sums.get(name, [0] * len(counts))
        sums[name] = [one + more for one, more in zip(before, counts, strict=True)]
    found = [ProviderReport(name, *counts) for name, counts in sums.items()]
    return sorted(found, key=lambda one: (one.provider == OTHERS, -one.copies, one.provider))


async def people_and_programs(db: TeamDb, broadcast_id: UUID) -> PeopleAndPrograms:
    """Return how many copies people opened, and how many programs alone; the same of links."""
    broadcast = await started(db, broadcast_id)
    ids = None if broadcast is None else ids_of_copies(broadcast)
    return NOBODY if ids is None else await queries.people_and_programs(db, broadcast_id, ids)
