"""Making pages of mail, away from the event loop.

What came by mail is read and cleaned in one thread of each process. Turns go round between the teams whose
mail it is, so one team's large mail delays another team by one page at most; each piece of work ends in
bounded time by its own bounds. What waits is bounded as well, and what nobody waits for any longer is never
begun. What was made of an HTML is kept for a while, so the next view of the same mail costs nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

from pillarbox.dashboard import mail_html
from pillarbox.dashboard.links import Link, links
from pillarbox.dashboard.mail_html import Cleaned
from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.wire.problems import Overloaded

T = TypeVar("T")

MOST_WAITING = 64
MOST_OF_ONE = 16
"""Pages of one team that may wait at once."""
REMEMBERED = 16 * 1024 * 1024
"""Octets of cleaned HTML that a process keeps."""

IsGone = Callable[[], bool]


def never() -> bool:
    """Whoever asked stays until there is an answer."""
    return False


class Busy(Overloaded):
    """Too many pages wait to be made."""

    def __init__(self) -> None:
        super().__init__("Too many pages are being made. Please try again in a moment.", 2)


@dataclass(slots=True)
class _Turn:
    granted: asyncio.Future[None]
    is_gone: IsGone


class PageWork:
    """The thread, who waits for it, and what it made."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._thread = ThreadPoolExecutor(1, "pillarbox-page")
        self._waiting: OrderedDict[UUID, deque[_Turn]] = OrderedDict()
        self._is_busy = False
        self._is_closed = False
        self._made = _Made(remembered)

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum([len(turns) for turns in self._waiting.values()])

    async def do(self, team_id: UUID, work: Callable[[], T], is_gone: IsGone = never) -> T:
        """What `work` returns. Raises Busy, and ClientGone where whoever asked left before it began."""
        if self._is_closed:
            raise Busy
        if self._is_busy:
            await self._turn(team_id, is_gone)
        self._is_busy = True
        if is_gone():
            self._next()
            raise ClientGone
        try:
            made = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError:
            self._next()
            raise Busy from None
        made.add_done_callback(self._ended)
        # Whoever is canceled leaves the thread at work: the next turn begins when it has ended.
        return await asyncio.shield(made)

    def cleaned(self, html: str) -> Cleaned:
        """The HTML as it may be shown; for use inside of `work`."""
        return self._made.of("html", html, mail_html.cleaned)

    def links(self, html: str) -> list[Link]:
        """The links of the HTML; for use inside of `work`."""
        return self._made.of("links", html, links)

    def close(self) -> None:
        """Begin nothing any more; what is at work ends in bounded time."""
        self._is_closed = True
        for turns in self._waiting.values():
            for turn in turns:
                if not turn.granted.done():
                    turn.granted.set_exception(Busy())
        self._waiting.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, team_id: UUID, is_gone: IsGone) -> None:
        if self._is_full(team_id):
            self._forget_gone()
            if self._is_full(team_id):
                raise Busy
        turn = _Turn(asyncio.get_running_loop().create_future(), is_gone)
        self._waiting.setdefault(team_id, deque()).append(turn)
        try:
            await turn.granted
        except asyncio.CancelledError:
            if turn.granted.done() and not turn.granted.cancelled():
                self._next()
            raise

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

    def _ended(self, made: asyncio.Future[Any]) -> None:
        if not made.cancelled():
            made.exception()
        self._next()

    def _next(self) -> None:
        """Give the thread to the next team's first page."""
        while self._waiting:
            team_id, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[team_id] = turns
            if not turn.granted.done():
                turn.granted.set_result(None)
                return
        self._is_busy = False


class _Made:
    """What was made lately, by the HTML that it was made of; only the thread touches it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._octets = 0
        self._kept: OrderedDict[tuple[str, bytes], tuple[Any, int]] = OrderedDict()

    def of(self, kind: str, html: str, make: Callable[[str], T]) -> T:
        html = html[: mail_html.LONGEST + 1]
        key = kind, sha256(html.encode("utf-8", "replace")).digest()
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            kept: T = found[0]
            return kept
        made = make(html)
        octets = _octets(made)
        if octets <= self._most // 2:
            self._kept[key] = made, octets
            self._octets += octets
        while self._octets > self._most:
            _, (_, gone) = self._kept.popitem(last=False)
            self._octets -= gone
        return made


def _octets(made: Any) -> int:
    """About how much memory it takes."""
    if isinstance(made, Cleaned):
        texts = [piece if isinstance(piece, str) else piece.data or piece.cid for piece in made.pieces]
        return sum(map(sys.getsizeof, texts)) + 100 * len(texts) + sys.getsizeof(made.styles) + 500
    return sum([sys.getsizeof(link.text) + sys.getsizeof(link.target) + 300 for link in made]) + 100
