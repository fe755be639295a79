"""Sums up the history by mailbox provider, a slice of time after the other, each exactly once.

A day of a domain has rows for at most `MOST_PROVIDERS`; what is beyond them goes into the row of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.kernel.work.time_slices import SliceBounds, TimeSlices
from pillarbox.metrics.providers import queries
from pillarbox.metrics.providers.names import provider_of
from pillarbox.metrics.providers.queries import ProviderCounts, ProviderDay, ProviderSum

EVERY: Final = timedelta(minutes=1)
KEPT: Final = timedelta(days=32)
FIRST: Final = timedelta(days=30)
"""So much of the history is counted at first."""

BOUNDS: Final = SliceBounds(
    late=timedelta(minutes=2),
    shortest=timedelta(seconds=10),
    longest=timedelta(hours=6),
    few=2_000,
    many=50_000,
)
MOST_PROVIDERS: Final = 200
SHOWN: Final = 20
OTHERS: Final = ""
BATCH: Final = 10_000


class ProviderCounting:
    """Counts the history of all teams, in slices of time, each exactly once."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._slices = TimeSlices(pool, clock, BOUNDS, queries, _count_slice)

    async def keep_up(self) -> str:
        """Count what is old enough, for some seconds; say how many events that were."""
        await queries.begin(self._pool, self._clock.now() - FIRST)
        return f"{await self._slices.keep_up()} events"

    async def remove_old(self) -> str:
        """Remove the sums of days that are not shown any more; say how many."""
        before = self._clock.now() - KEPT

        async def some() -> int:
            return await queries.remove_old(self._pool, before, BATCH)

        return f"{await in_batches(some)} sums of providers removed"


async def counted_since(source: Source) -> datetime | None:
    """Return from when on mail is counted by provider."""
    return await queries.began(source)


async def by_provider(db: TeamDb, domain_id: UUID, since: datetime) -> Sequence[ProviderSum]:
    """Return what the providers did with the mail of a domain since a day: the largest ones, then the others
    together."""
    sums = await queries.of_domain(db, domain_id, since)
    shown = [one for one in sums if one.provider != OTHERS][:SHOWN]
    rest = [one for one in sums if one not in shown]
    if not rest:
        return shown
    totals = [sum(values) for values in zip(*[one[1:] for one in rest], strict=True)]
    return [*shown, ProviderSum(OTHERS, *totals)]


def provider_periodic(counting: ProviderCounting) -> list[Periodic]:
    """Return the periodic jobs that keep the sums."""
    return [
        Periodic("metrics.providers", EVERY, counting.keep_up, quiet=True),
        Periodic("metrics.old_providers", timedelta(days=1), counting.remove_old),
    ]


async def _count_slice(conn: Connection, start: datetime, end: datetime) -> int:
    sums = await _sums_of(conn, start, end)
    if sums:
        await queries.add(conn, await _bounded(conn, sums))
    return sum(sum(counts) for counts in sums.values())


async def _sums_of(conn: Connection, start: datetime, end: datetime) -> dict[ProviderDay, ProviderCounts]:
    """Return the numbers of a slice."""
    sums: dict[ProviderDay, ProviderCounts] = {}
    for row in await queries.counted(conn, start, end):
        key = ProviderDay(row.team_id, row.domain_id, row.day, _name(row.host))
        _add(sums, key, ProviderCounts(*row[4:]))
    complaints = await queries.complaints(conn, start, end)
    servers = await queries.servers(conn, complaints) if complaints else {}
    for place, complaint in enumerate(complaints):
        if complaint.domain_id is None:
            continue
        name = _name(servers.get(place, complaint.host))
        key = ProviderDay(complaint.team_id, complaint.domain_id, complaint.day, name)
        _add(sums, key, ProviderCounts(complained=1))
    return sums


async def _bounded(
    conn: Connection, sums: dict[ProviderDay, ProviderCounts]
) -> list[tuple[ProviderDay, ProviderCounts]]:
    """Return the same numbers with no more providers than a day of a domain may have."""
    known = await queries.names(conn, sorted({key[:3] for key in sums}))
    bounded: dict[ProviderDay, ProviderCounts] = {}
    for key, counts in sorted(sums.items(), key=_by_size):
        names = known.setdefault(key[:3], set())
        if key.provider not in names and len(names) >= MOST_PROVIDERS:
            key = key._replace(provider=OTHERS)
        names.add(key.provider)
        _add(bounded, key, counts)
    return list(bounded.items())


def _by_size(entry: tuple[ProviderDay, ProviderCounts]) -> tuple[int, ProviderDay]:
    return -entry[1].sent, entry[0]


def _name(host: str | None) -> str:
    return OTHERS if host is None else provider_of(host)


def _add(sums: dict[ProviderDay, ProviderCounts], key: ProviderDay, counts: Iterable[int]) -> None:
    before = sums.get(key, ProviderCounts())
    sums[key] = ProviderCounts(*[one + more for one, more in zip(before, counts, strict=True)])
