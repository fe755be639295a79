"""Pieces of answers in the database: what one process has counted, no other one counts again.

A piece is what `memory` keeps: what an answer said of a period that is over, and the versions of its days. It
is found only while these are the versions of its days, and the answer proves that once more in its own
snapshot. So it may be written at any time after its answer, lost, or overwritten by an older one: then its
period is counted anew.

What a team's questions may store is bounded: by octets and pieces, and by how often they are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox import __version__
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import TROUBLE, TeamDb, transaction
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.metrics import piece_queries as queries
from pillarbox.metrics.memory import CachedPiece
from pillarbox.metrics.read import State
from pillarbox.metrics.wire import PeriodRows

log = get("metrics")

FORMAT = 1
"""Another number whenever the same counts are written in another way."""
LIFETIME = timedelta(days=30)
WRITE_EVERY = 10.0
"""Seconds between two answers of a team that a process stores."""
FLUSH_SECONDS = 1.0
MOST_DAYS = 100
"""Days that a stored piece covers at most: longer ones are rarely asked for again as they are."""
MOST_WAITING = 8 * 1024 * 1024
MOST_OCTETS, MOST_PIECES = 8 * 1024 * 1024, 4000
"""Of one team, in all."""
COLLECT_EVERY = timedelta(hours=1)
AHEAD = timedelta(days=1)
"""A piece whose instant is farther ahead than this was stored while the clock was wrong."""
BATCH = 1000


class NewPiece(NamedTuple):
    """A piece that is to be stored; `start` is the beginning of what it counts."""

    id: UUID
    start: datetime
    state: State
    piece: PeriodRows


def piece_ids(shape: object, periods: Sequence[tuple[str, datetime, datetime]]) -> list[UUID]:
    """Return the ids of pieces of one shape, which has all that they depend on beside their periods: the
    label of each, and from when to when it counts."""
    whole = hashlib.sha256(repr((FORMAT, __version__, shape)).encode())
    found = []
    for label, start, end in periods:
        one = whole.copy()
        one.update(f"{label} {start.isoformat()} {end.isoformat()}".encode())
        found.append(UUID(bytes=one.digest()[:16]))
    return found


class PieceStore:
    """The table `metric_pieces`. What is offered is written a moment later, off the path of the requests."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._waiting: dict[UUID, Sequence[NewPiece]] = {}
        self._octets = 0
        self._written: dict[UUID, float] = {}

    async def find(self, team_id: UUID, ids: Sequence[UUID]) -> dict[UUID, CachedPiece]:
        """Return those of these pieces that hold."""
        return {
            row.id: CachedPiece(tuple(row.versions), PeriodRows(row.rows, row.content, tuple(row.counts)))
            for row in await queries.find(TeamDb(self._pool, team_id), ids)
        }

    def offer(self, team_id: UUID, pieces: Sequence[NewPiece]) -> None:
        """Store these, if the team has not stored others a moment ago and not too much is waiting."""
        pieces = [one for one in pieces if 0 < len(one.state) <= MOST_DAYS]
        octets = sum([len(one.piece.text) for one in pieces])
        if not pieces or self._octets + octets > MOST_WAITING or team_id in self._waiting:
            return
        last = self._written.get(team_id)
        if last is None or self._clock.boottime() - last >= WRITE_EVERY:
            self._waiting[team_id] = pieces
            self._octets += octets

    async def flush(self) -> None:
        """Write what waits, for one team after another; what cannot be written is dropped."""
        waiting, self._waiting, self._octets = self._waiting, {}, 0
        now = self._clock.boottime()
        self._written = {team: at for team, at in self._written.items() if now - at < WRITE_EVERY}
        for team_id, pieces in waiting.items():
            self._written[team_id] = now
            try:
                async with transaction(self._pool) as conn:
                    db = TeamDb(conn, team_id)
                    await queries.store(db, self._clock.now(), [_row(one) for one in pieces])
                    await queries.trim(db, MOST_PIECES, MOST_OCTETS)
            except TROUBLE as failure:
                log.warning("metrics.pieces_not_stored", team=team_id, error=type(failure).__name__)

    async def run(self) -> None:
        """Write every second. What still waits at the end is counted again when it is asked for."""
        failures = LoopFailures("metrics.store_pieces")
        while True:
            await self._clock.sleep(max(FLUSH_SECONDS, failures.pause))
            await failures.attempt(self.flush())


def _row(new_piece: NewPiece) -> queries.PieceRow:
    day = new_piece.start - (new_piece.start - EPOCH) % timedelta(days=1)
    return queries.PieceRow(
        id=new_piece.id,
        first_day=day,
        versions=new_piece.state,
        rows=new_piece.piece.rows,
        counts=new_piece.piece.counts,
        content=new_piece.piece.text,
    )


async def remove_old(pool: asyncpg.Pool, now: datetime) -> int:
    """Remove the pieces that are over their time or far ahead of it, or of days whose rollups retention has
    removed; returns how many."""

    async def some() -> int:
        return await queries.remove_old(pool, now - LIFETIME, now + AHEAD, BATCH)

    return await in_batches(some)


def collect_periodic(pool: asyncpg.Pool, clock: Clock) -> Sequence[Periodic]:
    """Return the periodic job that removes pieces."""

    async def collect() -> str:
        return f"{await remove_old(pool, clock.now())} pieces of answers removed"

    return [Periodic("metrics.pieces", COLLECT_EVERY, collect)]
