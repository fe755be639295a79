"""Making pages of mail, away from the event loop.

What came by mail is read and cleaned in one thread of each process. The teams whose mail it is take turns
(`kernel/work/team_turns.py`); each piece of work ends in bounded time by its own bounds. What was made of an
HTML is kept for a while, so the next view of the same mail costs nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

from pillarbox.dashboard import mail_html
from pillarbox.dashboard.links import MailLink, links
from pillarbox.dashboard.mail_html import SanitizedHtml
from pillarbox.kernel.work.team_turns import IsGone, TeamTurns, never

T = TypeVar("T")

REMEMBERED = 16 * 1024 * 1024
"""Octets of cleaned HTML that a process keeps."""

REFUSAL = "Too many pages are being made. Please try again in a moment."


class PageWork:
    """The thread, who waits for it, and what it made."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._thread = ThreadPoolExecutor(1, "pillarbox-page")
        self._turns = TeamTurns(1, REFUSAL)
        self._made = _PageCache(remembered)

    @property
    def waiting(self) -> int:
        """How many callers wait for their turn."""
        return self._turns.waiting

    async def do(self, team_id: UUID, work: Callable[[], T], is_gone: IsGone = never) -> T:
        """Run `work` in the thread and return its result. Raises ServerOverloaded, and ClientGone where the
        client left before it began."""
        await self._turns.take(team_id, 1, is_gone)
        made = asyncio.get_running_loop().run_in_executor(self._thread, work)
        made.add_done_callback(self._ended)
        # Whoever is canceled leaves the thread at work: the next turn begins when it has ended.
        return await asyncio.shield(made)

    def cleaned(self, html: str) -> SanitizedHtml:
        """Return the HTML as it may be shown; for use inside of `work`."""
        return self._made.of("html", html, mail_html.cleaned)

    def cleaned_with_remote(self, html: str) -> SanitizedHtml:
        """Return the same with pictures of other servers, which the reader has asked for."""
        return self._made.of("html with remote pictures", html, partial(mail_html.cleaned, with_remote=True))

    def links(self, html: str) -> list[MailLink]:
        """Return the links of the HTML; for use inside of `work`."""
        return self._made.of("links", html, links)

    def close(self) -> None:
        """Begin nothing any more; what is at work ends in bounded time."""
        self._turns.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        if not future.cancelled():
            future.exception()
        self._turns.give(1)


class _PageCache:
    """A cache of results by the HTML that they were made of; only the thread touches it."""

    def __init__(self, limit: int) -> None:
        self._most = limit
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


def _octets(value: Any) -> int:
    """Return about how much memory it takes."""
    if isinstance(value, SanitizedHtml):
        texts = [piece if isinstance(piece, str) else piece.data or piece.cid for piece in value.pieces]
        return sum(map(sys.getsizeof, texts)) + 100 * len(texts) + sys.getsizeof(value.styles) + 500
    return sum([sys.getsizeof(link.text) + sys.getsizeof(link.target) + 300 for link in value]) + 100
