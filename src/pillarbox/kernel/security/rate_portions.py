"""One node's part of the limits that it shares with other nodes (docs/decisions/0054).

A window is one second of one team. The node begins it by itself, with the first request, and may let through
its equal part before it has heard from the database. It asks there for a portion as soon as it has let
through more than the few that need not be told (`UNTOLD`). The answer decides from then on: the node lets
through what was reserved for it, and nothing more, until the window is over. What it let through before that
is told with the next question, so it counts whoever was first. A node that is alone has all of the limit, and
asks nothing.

All processes of the node share one slot for each team. Whichever takes the request that makes a question due
asks it, for all; one that dies without an answer delays the next question by `ASK_SECONDS`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import SECOND, WindowState
from pillarbox.kernel.security.shared_slots import SharedSlots

SLOT: Final = struct.Struct("<16sdddIIIIIIII")

PATIENCE: Final = 0.008
"""Seconds that a request may wait for a portion."""

ASK_SECONDS: Final = 1.0
"""After so long without an answer the question is given up."""

UNTOLD: Final = 4
"""What the other nodes have let through and not told is at most a fourth of the limit, all together."""

FORGIVEN: Final = 20
"""A twentieth of the limit is never told, so a team that is far below it asks nothing."""

SMALLEST: Final = 4
"""A portion is at least a fourth of the node's equal part."""

ROUNDING: Final = 0.001
"""An end so near to a second after the beginning is just that: the database has microseconds."""

AHEAD: Final = 50
"""The next portion is asked for when less than a fiftieth of the limit is left."""


@dataclass(slots=True)
class RateWindow:
    """A window as this node sees it, in seconds of boot time. `asked` is when the question that has no answer
    yet was asked, 0 where there is none; `left` is what the answer said nobody has; `waiting` are requests
    that found nothing since; `before` is what the window before this one would have needed, `carried` what
    was let through in earlier ones and is not told yet. The database has been told of `told`, `reserved` of
    it is answered."""

    end: float = 0.0
    began: float = 0.0
    asked: float = 0.0
    taken: int = 0
    reserved: int = 0
    left: int = 0
    before: int = 0
    waiting: int = 0
    answered: int = 0
    carried: int = 0
    told: int = 0

    @property
    def owed(self) -> int:
        return max(0, self.taken - max(self.told, self.reserved)) + self.carried


class Offer(NamedTuple):
    """What became of a request; whether the caller must ask for a portion, and whether it may wait for it."""

    taken: WindowState
    must_ask: bool
    may_wait: bool


class QuotaRequest(NamedTuple):
    """What a node asks: `owed` was let through and not told yet; `wanted` is what it would like to have. The
    window is the one that `began`, `age` seconds ago; `told` of it are reserved, whatever is granted."""

    key: bytes
    limit: int
    owed: int
    wanted: int
    told: int
    age: float
    began: float


class QuotaGrant(NamedTuple):
    """So many of what was wanted; what nobody has; the seconds until the window of all nodes ends."""

    granted: int
    left: int
    seconds: float


class Portions:
    """The portions of all teams at this node."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._clock = clock
        begin, end = shared_memory.WINDOWS, shared_memory.WINDOWS + shared_memory.PORTIONS
        self._slots = SharedSlots(fd, SLOT, begin, end)

    def take(self, key: bytes, limit: int, nodes: int, *, again: bool = False) -> Offer:
        """Count one request of `key`, or refuse it without counting. `again`: it was counted as waiting."""
        offset = self._slots.lock(key)
        try:
            where, window = self._read(offset, key)
            now = self._clock.boottime()
            if window.end <= now:
                window = _next(window, limit, nodes, now)
            allowed = window.taken < min(limit, _ceiling(window, limit, nodes, now))
            if allowed:
                window.taken += 1
            elif not again:
                window.waiting += 1
            is_asked = window.asked > 0 and now - window.asked < ASK_SECONDS
            is_urgent = not allowed and window.waiting == 1 and not again
            must_ask = (is_urgent or not is_asked) and _needs_answer(window, limit, nodes, allowed=allowed)
            if must_ask:
                window.asked = now
            self._write(where, key, window)
        finally:
            self._slots.unlock(offset)
        may_wait = nodes > 1 and not allowed and window.asked > 0 and now - window.asked < PATIENCE
        remaining = _remaining(window, limit) if allowed else 0
        taken = WindowState(allowed, limit, remaining, max(1, math.ceil(window.end - now)))
        return Offer(taken, must_ask, may_wait)

    def question(self, key: bytes, limit: int, nodes: int) -> QuotaRequest | None:
        """What is to be asked now; None where the window is over, or another process has asked meanwhile."""
        offset = self._slots.lock(key)
        try:
            where, window = self._read(offset, key)
            now = self._clock.boottime()
            if window.end <= now or not window.asked:
                return None
            wanted, owed = _wanted(window, limit, nodes), window.owed
            window.told, window.carried = max(window.taken, window.told, window.reserved), 0
            self._write(where, key, window)
        finally:
            self._slots.unlock(offset)
        return QuotaRequest(key, limit, owed, wanted, window.told, now - window.began, window.began)

    def apply(self, question: QuotaRequest, answer: QuotaGrant, sent: float) -> None:
        """What the database said to a question that was sent at this instant of boot time. An answer that
        comes after the end of the window on this node is of no use."""
        offset = self._slots.lock(question.key)
        try:
            where, window = self._read(offset, question.key)
            if window.began == question.began:
                _answered(window, question, answer, sent + answer.seconds)
                self._write(where, question.key, window)
        finally:
            self._slots.unlock(offset)

    def _read(self, offset: int, key: bytes) -> tuple[int, RateWindow]:
        where, is_found = self._slots.find(offset, key)
        return where, RateWindow(
            *SLOT.unpack_from(self._slots.memory, where)[1:]
        ) if is_found else RateWindow()

    def _write(self, where: int, key: bytes, w: RateWindow) -> None:
        counts = w.taken, w.reserved, w.left, w.before, w.waiting, w.answered, w.carried, w.told
        SLOT.pack_into(self._slots.memory, where, key, w.end, w.began, w.asked, *counts)


def _answered(window: RateWindow, question: QuotaRequest, answer: QuotaGrant, end: float) -> None:
    if abs(end - window.began - SECOND) < ROUNDING:
        end = window.began + SECOND
    told = question.told
    if window.answered and end > window.end + SECOND / 2:
        # The window of all nodes was over a moment before ours, so this is a portion of the next one.
        told = max(0, told - window.reserved)
        window.before, window.taken = window.taken, max(0, window.taken - window.reserved)
        window.reserved, window.began = 0, end - SECOND
        window.told = told
    window.reserved = max(window.reserved, told) + answer.granted
    window.left, window.end = answer.left, end
    window.answered, window.asked, window.waiting = 1, 0.0, 0


def _next(window: RateWindow, limit: int, nodes: int, now: float) -> RateWindow:
    """The window that begins now."""
    if now >= window.end + SECOND:
        return RateWindow(end=now + SECOND, began=now)
    if nodes == 1:
        return RateWindow(end=now + SECOND, began=now)
    forgiven = limit // (FORGIVEN * (nodes - 1))
    carried = min(_untold(limit, nodes), max(0, window.owed - forgiven))
    return RateWindow(end=now + SECOND, began=now, before=window.taken + window.waiting, carried=carried)


def _wanted(window: RateWindow, limit: int, nodes: int) -> int:
    """What the window will likely need besides what it has; at least a portion that is worth a question."""
    if window.answered and not window.left:
        return 0
    smallest = -(-limit // (SMALLEST * nodes))
    likely = window.before - max(window.taken, window.reserved)
    return min(limit, max(smallest, likely, window.waiting))


def _untold(limit: int, nodes: int) -> int:
    return limit // (UNTOLD * max(1, nodes - 1))


def _ceiling(window: RateWindow, limit: int, nodes: int, now: float) -> int:
    """What may be let through in this window. A node whose equal part is nothing lets one through when the
    answer takes too long, so that no team is locked out by a slow database."""
    if window.answered:
        return window.reserved
    own = limit // nodes
    is_late = window.asked > 0 and now - window.asked >= PATIENCE
    return max(1, own) if is_late else own


def _needs_answer(window: RateWindow, limit: int, nodes: int, *, allowed: bool) -> bool:
    if nodes == 1:
        return False
    if not window.answered:
        return not allowed or window.owed > _untold(limit, nodes)
    is_short = window.reserved - window.taken < max(1, limit // AHEAD)
    return window.owed > 0 or (window.left > 0 and is_short)


def _remaining(window: RateWindow, limit: int) -> int:
    """As far as this node knows."""
    free = limit - window.taken
    if window.answered:
        free = min(free, window.left + window.reserved - window.taken)
    return max(0, free)
