"""The operator's view of the queue, for `pillarbox queue` and the screen of the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.delivery.items import EVERY_TEAM
from pillarbox.delivery.queue import held_queries, overview_queries, pausing_queries
from pillarbox.delivery.queue.overview import QueueFilter, QueueGroup, Totals, WaitingItem
from pillarbox.delivery.queue.pausing_queries import EVERYWHERE, PausedScope, PauseScope
from pillarbox.kernel.postgres.database import transaction


class QueueView(NamedTuple):
    """A part of the queue. `held` says why all mail waits, where it does; `processes` deliver now."""

    totals: Totals
    groups: Sequence[QueueGroup]
    has_more: bool
    pauses: Sequence[PausedScope]
    held: str | None
    processes: int


async def view(pool: asyncpg.Pool, part: QueueFilter, now: datetime, limit: int) -> QueueView:
    """Return the part of the queue with its `limit` largest destinations."""
    groups = await overview_queries.queue_groups(pool, part, now, limit + 1)
    return QueueView(
        totals=await overview_queries.totals(pool, part, now),
        groups=groups[:limit],
        has_more=len(groups) > limit,
        pauses=await pauses_of(pool, part),
        held=await held_queries.reason_of_all(pool),
        processes=await overview_queries.alive(pool, now),
    )


async def first_items(
    pool: asyncpg.Pool, part: QueueFilter, now: datetime, limit: int
) -> Sequence[WaitingItem]:
    """Return the first `limit` items of the part, by team, destination and time."""
    found: list[WaitingItem] = []
    async with transaction(pool) as conn:
        async for item in overview_queries.items(conn, part, now):
            if len(found) == limit:
                break
            found.append(item)
    return found


async def pauses_of(pool: asyncpg.Pool, part: QueueFilter) -> Sequence[PausedScope]:
    """Return the pauses that concern the part, the oldest first."""
    return [paused for paused in await pausing_queries.listed(pool) if concerns(paused, part)]


def part_in(scope: PauseScope) -> QueueFilter:
    """Return the part of the queue that a scope is."""
    return QueueFilter(
        None if scope.team_id == EVERY_TEAM else scope.team_id,
        None if scope.destination == EVERYWHERE else scope.destination,
    )


def scope_of(part: QueueFilter) -> PauseScope:
    """Return the scope that a part of the queue is; one of a single email is that of its mail."""
    return PauseScope(part.team_id or EVERY_TEAM, part.destination or EVERYWHERE)


def concerns(paused: PausedScope, part: QueueFilter) -> bool:
    """Return whether a pause and a part of the queue can have mail in common."""
    mine = part_in(paused.scope)
    return (part.team_id is None or mine.team_id in (None, part.team_id)) and (
        part.destination is None or mine.destination in (None, part.destination)
    )


def scope_words(scope: PauseScope, names: Mapping[UUID, str]) -> str:
    """Return `mail of Harbor to quay.example` in its several forms."""
    part = part_in(scope)
    words = "all mail" if part.destination is None else f"mail to {part.destination}"
    if part.team_id is None:
        return words
    return f"{words} of {names.get(part.team_id, part.team_id)}"
