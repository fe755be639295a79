"""Tells an open page that its team's emails changed, by server-sent events: one stream for each page.

A stream asks once a second what the process knows (`emails/search/recent_changes.py`); streams of one team
share the statement. It ends by itself after `LONGEST`, with the session, and when the server closes; browsers
then ask again. A process holds a bounded number of streams for each team and in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.dashboard.frame.layout import POLICY
from pillarbox.dashboard.people.cookies import cookie
from pillarbox.dashboard.people.page_visits import HEADERS, see_other
from pillarbox.emails.search.recent_changes import RecentChanges
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import GONE
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.people.visitors import visitor_of

MEDIA: Final = "text/event-stream; charset=utf-8"
EVERY: Final = 1.0
"""Seconds between two looks."""

LONGEST: Final = 600
"""Looks after which a stream ends."""

SIGN_OF_LIFE: Final = 15
"""Looks after which something is written even where nothing changed, and the session is asked for again."""

MOST_OF_TEAM: Final = 50
MOST_STREAMS: Final = 400
"""Streams that a process holds, of one team and in all."""

CHANGE: Final = b"event: change\ndata: emails\n\n"
END: Final = b"event: end\ndata: session\n\n"
NOTHING: Final = b": no change\n\n"


class LiveStreams:
    """The open streams of a process."""

    def __init__(self, changes: RecentChanges, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._open: Counter[UUID] = Counter()
        self._is_closing = False

    def close(self) -> None:
        """End every stream within a second."""
        self._is_closing = True

    def check(self, team_id: UUID) -> None:
        """Raise ServerOverloaded where the team, or all teams, have too many streams."""
        if self._is_closing or self._open[team_id] >= MOST_OF_TEAM or self._open.total() >= MOST_STREAMS:
            raise ServerOverloaded("Too many pages are open. Reload the page to see what changed.")

    async def events(self, request: Request, team_id: UUID) -> AsyncIterator[bytes]:
        """Yield the events of a stream; it counts from its first event on."""
        self._open[team_id] += 1
        try:
            last = await self._digest(team_id)
            yield NOTHING
            for look in range(1, LONGEST):
                await self._clock.sleep(EVERY)
                if self._is_closing or request.is_client_gone():
                    return
                is_due = look % SIGN_OF_LIFE == 0
                if is_due and not await _has_session(request, team_id):
                    yield END
                    return
                digest = await self._digest(team_id)
                if digest is not None and digest != last:
                    last = digest
                    yield CHANGE
                elif is_due:
                    yield NOTHING
        finally:
            self._open[team_id] -= 1
            if not self._open[team_id]:
                del self._open[team_id]

    async def _digest(self, team_id: UUID) -> str | None:
        """Return the digest now; None where the database does not answer."""
        try:
            return await self._changes.digest(team_id)
        except (*GONE, TimeoutError):
            return None


async def _has_session(request: Request, team_id: UUID) -> bool:
    """Return whether the person still has a session, and this team."""
    clock = request.use(Clock)  # type: ignore[type-abstract]
    try:
        visitor = await visitor_of(request.use(asyncpg.Pool), clock.now(), cookie(request), is_used=False)
    except (*GONE, TimeoutError):
        return True
    return visitor is not None and visitor.team_id == team_id


@route(
    "GET",
    "/dashboard/live",
    needs=Access.PUBLIC,
    summary="The stream that tells a page of changes",
    also=(303,),
    problems=(503,),
)
async def stream(request: Request) -> Reply[OctetsAnswer]:
    visitor = await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request), is_used=False)
    headers = {**HEADERS, "content-security-policy": POLICY, "x-accel-buffering": "no"}
    if visitor is None or visitor.team_id is None:
        login = see_other("/login")
        return Reply(b"", login.status, login.headers, login.media)
    streams = request.use(LiveStreams)
    streams.check(visitor.team_id)
    return Reply(streams.events(request, visitor.team_id), headers=headers, media=MEDIA)
