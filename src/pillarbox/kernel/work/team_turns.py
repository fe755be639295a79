"""A bound on what requests hold at once; for what is left, teams take turns (architecture 6.5).

Where several wait, each team's first goes before any team's second, so one team's requests delay another team
by one of them. What waits is bounded as well, and whose client has left is never begun.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.wire.problems import ServerOverloaded

MOST_WAITING = 64
MOST_OF_ONE = 16
"""Requests of one team that may wait at once."""
RETRY_SECONDS = 2

IsGone = Callable[[], bool]


def never() -> bool:
    """Return False: without another `is_gone`, a caller counts as waiting until there is an answer."""
    return False


@dataclass(slots=True)
class _Turn:
    granted: asyncio.Future[None]
    size: int
    is_gone: IsGone


class TeamTurns:
    """So many units, given out in turns; something larger than all of them goes alone. `refusal` is what the
    503 says to whom there is no room to wait."""

    def __init__(self, total: int, refusal: str) -> None:
        self._total = total
        self._free = total
        self._refusal = refusal
        self._waiting: OrderedDict[UUID, deque[_Turn]] = OrderedDict()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum([len(turns) for turns in self._waiting.values()])

    @asynccontextmanager
    async def of(self, team_id: UUID, size: int, is_gone: IsGone = never) -> AsyncIterator[None]:
        """Hold so many units inside the block; raises what `take` raises."""
        await self.take(team_id, size, is_gone)
        try:
            yield
        finally:
            self.give(size)

    async def take(self, team_id: UUID, size: int, is_gone: IsGone = never) -> None:
        """Return when the caller has so many units; they give them back. Raises ServerOverloaded, and
        ClientGone where the client left meanwhile."""
        if self._is_closed:
            raise self._busy()
        size = min(size, self._total)
        if size <= self._free and not self._waiting:
            self._free -= size
        else:
            await self._turn(team_id, size, is_gone)
        if self._is_closed or is_gone():
            self.give(size)
            raise self._busy() if self._is_closed else ClientGone

    def give(self, size: int) -> None:
        """Give back units that were taken; the next in turn get them."""
        self._free += min(size, self._total)
        self._grant()

    def close(self) -> None:
        """Grant nothing any more."""
        self._is_closed = True
        for turns in self._waiting.values():
            for turn in turns:
                if not turn.granted.done():
                    turn.granted.set_exception(self._busy())
        self._waiting.clear()

    async def _turn(self, team_id: UUID, size: int, is_gone: IsGone) -> None:
        if self._is_full(team_id):
            self._forget_gone()
            if self._is_full(team_id):
                raise self._busy()
        turn = _Turn(asyncio.get_running_loop().create_future(), size, is_gone)
        self._waiting.setdefault(team_id, deque()).append(turn)
        self._grant()
        if not turn.granted.done():
            # Who waits here takes no share of the reads of its team: small ones go on meanwhile.
            time_limit.end_turn()
        try:
            await turn.granted
        except asyncio.CancelledError:
            was_granted = turn.granted.done() and not turn.granted.cancelled()
            self.give(size if was_granted and turn.granted.exception() is None else 0)
            raise

    def _busy(self) -> ServerOverloaded:
        return ServerOverloaded(self._refusal, RETRY_SECONDS)

    def _is_full(self, team_id: UUID) -> bool:
        return self.waiting >= MOST_WAITING or len(self._waiting.get(team_id, ())) >= MOST_OF_ONE

    def _forget_gone(self) -> None:
        """Let nobody wait whose client has left."""
        for team_id, turns in list(self._waiting.items()):
            for turn in turns:
                if not turn.granted.done() and turn.is_gone():
                    turn.granted.set_exception(ClientGone())
            kept = deque([turn for turn in turns if not turn.granted.done()])
            if kept:
                self._waiting[team_id] = kept
            else:
                del self._waiting[team_id]

    def _grant(self) -> None:
        """Give what is free to each next team's first, as far as it fits."""
        while self._waiting:
            team_id, turns = next(iter(self._waiting.items()))
            turn = turns[0]
            if not turn.granted.done():
                if turn.size > self._free:
                    return
                self._free -= turn.size
                turn.granted.set_result(None)
            turns.popleft()
            del self._waiting[team_id]
            if turns:
                self._waiting[team_id] = turns
