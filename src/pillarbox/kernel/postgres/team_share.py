"""How many connections of a pool the requests of one team may hold at once: its share of the database.

Reads and writes have shares of their own. All reads together leave some connections to everything else, so
mail is accepted beside any number of reads. A team that is alone may read with more connections than one
beside which other teams have asked within `CONTENDED_SECONDS`: of these each has a few, so that none of
them waits for long lists of another one, and where more of a team wait, its reads make pauses. What exceeds
the share waits in the team's own queue, which is bounded in length here and in time by the time limit of
the request. Where several teams wait, they take turns.

A request that holds a connection never waits for another one here, so no two can wait for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.time_limit import TooManyWaiting

CONTENDED_SECONDS: Final = 1.0
LONGEST_REST: Final = 0.25
MOST_WAITING_OF_TEAM: Final = 1000
MOST_WAITING: Final = 4000
"""Requests that wait for the share of their team, of one team and of all; the next one is refused."""


class Gate:
    """So many may be inside at once, of one team as many as `of_team` says at that moment."""

    def __init__(
        self, total: int, of_team: Callable[[], int], rests: Callable[[], bool] = lambda: False
    ) -> None:
        """Build the gate; `rests` says whether the excess of a team makes pauses now."""
        self._rests = rests
        self._total = total
        self._of_team = of_team
        self._inside: Counter[UUID] = Counter()
        self._busy = 0
        self._waiting: OrderedDict[UUID, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum([len(queue) for queue in self._waiting.values()])

    def enter(self, team: UUID) -> bool:
        """Go in, if there is room and nobody of the team waits; says whether."""
        if team in self._waiting or not self._has_room(team):
            return False
        self._admit(team)
        return True

    async def wait(self, team: UUID) -> None:
        """Go in when it is the caller's turn; raises TooManyWaiting."""
        queue = self._waiting.get(team)
        if self.waiting >= MOST_WAITING or (queue is not None and len(queue) >= MOST_WAITING_OF_TEAM):
            raise TooManyWaiting("too many requests of the team wait for the database")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(team, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(team)
            else:
                self._forget(team, turn)
            raise

    def leave(self, team: UUID, seconds: float = 0.0) -> None:
        """Make room for who is next. Where more of the team wait beside other teams, the next one comes after
        as many `seconds` as this one took: so they take half of the time at most."""
        self._busy -= 1
        if seconds and team in self._waiting and self._rests():
            asyncio.get_running_loop().call_later(min(seconds, LONGEST_REST), self._free, team)
            self._grant()
        else:
            self._free(team)

    def _free(self, team: UUID) -> None:
        self._inside[team] -= 1
        if not self._inside[team]:
            del self._inside[team]
        self._grant()

    def _has_room(self, team: UUID) -> bool:
        return self._busy < self._total and self._inside[team] < self._of_team()

    def _admit(self, team: UUID) -> None:
        self._busy += 1
        self._inside[team] += 1

    def _forget(self, team: UUID, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(team)
        if queue is None:
            return
        with suppress(ValueError):
            queue.remove(turn)
        if not queue:
            del self._waiting[team]

    def _grant(self) -> None:
        """Let the first of each team in whose share has room, in turns."""
        for team in list(self._waiting):
            if self._busy >= self._total:
                return
            queue = self._waiting[team]
            while queue and queue[0].done():
                queue.popleft()
            if queue and self._has_room(team):
                self._admit(team)
                queue.popleft().set_result(None)
                self._waiting.move_to_end(team)
            if not queue:
                del self._waiting[team]


class Turn:
    """One that is inside since now; it may be ended more than once."""

    def __init__(self, gate: Gate, team: UUID) -> None:
        self._gate = gate
        self._team = team
        self._began = time.monotonic()
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._gate.leave(self._team, time.monotonic() - self._began)


class TeamShares:
    """The shares of all teams in `most`: connections of a pool, or requests that a process works on."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last: UUID | None = None
        self._contended_until = float("-inf")
        self._alone = max(1, limit * 3 // 8)
        self._beside = max(1, limit // 8)
        self.reads = Gate(max(1, limit - limit * 3 // 8), self._reads_of_team, self._is_contended)
        self.writes = Gate(limit, lambda: max(1, limit // 2))

    def gate(self, team: UUID, *, is_read: bool) -> Gate:
        """Return where a request of the team enters. Notes that the team is active."""
        self.note(team)
        return self.reads if is_read else self.writes

    def note(self, team: UUID) -> None:
        """Note that the team is active."""
        if team != self._last:
            if self._last is not None:
                self._contended_until = self._now() + CONTENDED_SECONDS
            self._last = team

    def _is_contended(self) -> bool:
        return self._now() < self._contended_until

    def _reads_of_team(self) -> int:
        return self._beside if self._is_contended() else self._alone
