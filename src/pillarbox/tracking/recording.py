"""Events of opens and clicks: committed together, before their requests are answered.

A link works whatever becomes of its event. Where the database does not answer in time, the recipient is sent
on and the event is counted as lost. An event can come before what the recipient's server said is committed:
it waits in memory for a few seconds then, and its request does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum, auto

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import GONE, TROUBLE, transaction
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.postgres.time_limit import TimeLimit, unlimited
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.wire.problems import Problem
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import TimelineEntry
from pillarbox.tracking import queries
from pillarbox.tracking.prometheus import EVENTS
from pillarbox.tracking.queries import Place

log = get("tracking")

SECONDS = 2.0
"""So long a request waits for its event."""

AGAIN_AFTER = (0.2, 1.0, 5.0)
"""Seconds after which an event is tried again whose mail was not known to have arrived."""

MOST_EARLY = 1000
MOST_WAITING = 20_000
MOST_EVENTS = 60
"""Events that a recipient of an email may have in `WINDOW`; a link that is hammered fills no history."""

WINDOW = 10.0
"""Short, because each recipient who is counted takes a slot of the memory that the limits of a node share."""

QUIET = 10.0
"""Seconds between two lines of the log about events that are lost; all of them are counted."""


class _Became(Enum):
    RECORDED = auto()
    EARLY = auto()
    NOTHING = auto()


class TrackingRecorder:
    """Writes the events."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, timeline: Timeline, windows: Windows) -> None:
        self._pool = pool
        self._clock = clock
        self._quiet_until = 0.0
        self._timeline = timeline
        self._windows = windows
        self._commits: GroupCommit[TimelineEntry, _Became] = GroupCommit(
            self._flush, kind="tracking", flushers=1, most_waiting=MOST_WAITING, shared=GONE
        )
        self._early: set[asyncio.Task[None]] = set()

    async def record(self, entry: TimelineEntry) -> None:
        """Return when the event is committed, or when it will not be; raises nothing."""
        key = key_for(f"tracking {entry.team_id} {entry.email_id} {entry.position}")
        if not self._windows.take(key, MOST_EVENTS, WINDOW).allowed:
            EVENTS.add(1, ("too_many",))
            return
        with TimeLimit(SECONDS):
            became = await self._committed(entry)
        if became is _Became.EARLY and len(self._early) < MOST_EARLY:
            task = asyncio.create_task(self._record_later(entry), context=unlimited())
            self._early.add(task)
            task.add_done_callback(self._early.discard)
        elif became is not None:
            _count(entry, became)

    async def drain(self) -> None:
        """Return when nothing is being committed; what waits for its mail is given up."""
        for task in self._early:
            task.cancel()
        await self._commits.drain()

    async def _record_later(self, entry: TimelineEntry) -> None:
        became: _Became | None = _Became.EARLY
        for seconds in AGAIN_AFTER:
            await asyncio.sleep(seconds)
            # It comes after the delivery, as all events of mail that has arrived: the latest is `last_event`.
            became = await self._committed(entry._replace(at=self._clock.now()))
            if became is not _Became.EARLY:
                break
        if became is not None:
            _count(entry, became)

    async def _committed(self, entry: TimelineEntry) -> _Became | None:
        try:
            return await self._commits.submit(entry)
        except (Problem, *TROUBLE) as trouble:
            EVENTS.add(1, ("lost",))
            if (now := self._clock.boottime()) >= self._quiet_until:
                self._quiet_until = now + QUIET
                log.warning("tracking.lost", trouble=type(trouble).__name__)
            return None

    async def _flush(self, batch: Sequence[TimelineEntry]) -> Sequence[_Became]:
        entries = sorted(batch, key=lambda entry: entry.at)
        async with transaction(self._pool) as conn:
            taken = {id(entry) for entry in await self._timeline.record(conn, entries)}
            left = {_place(entry) for entry in entries if id(entry) not in taken}
            underway = await queries.underway(conn, left) if left else set()
        return [_became(entry, taken, underway) for entry in batch]


def _place(entry: TimelineEntry) -> Place:
    return entry.team_id, entry.email_id, entry.position or 0


def _became(entry: TimelineEntry, taken: set[int], underway: set[Place]) -> _Became:
    if id(entry) in taken:
        return _Became.RECORDED
    return _Became.EARLY if _place(entry) in underway else _Became.NOTHING


def _count(entry: TimelineEntry, became: _Became) -> None:
    if became is not _Became.RECORDED:
        what = "without_delivery"
    elif entry.detail is not None and entry.detail.machine is not None:
        what = "by_machine"
    else:
        what = "recorded"
    EVENTS.add(1, (what,))
