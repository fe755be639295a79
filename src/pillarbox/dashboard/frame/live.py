"""Tells an open page that what it shows has changed, by server-sent events: one stream for each page.

The page names the kind of things that it shows, and may name one of them, and the digest of when it was
drawn: what changed before the stream began is told at once. A stream asks twice a second for
their digest; streams of one team that show the same share the statement. It ends by itself after `LONGEST`,
with the session, and when the server closes; browsers then ask again. A process holds a bounded number of
streams for each team and in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Literal, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.automations.overview.views import digest_of_automations, digest_of_run
from pillarbox.broadcasts.reports.summaries import digest_of_broadcasts
from pillarbox.contacts.bulk_acts.acts import digest_of_bulk_acts
from pillarbox.dashboard.frame.layout import POLICY
from pillarbox.dashboard.people.cookies import cookie
from pillarbox.dashboard.people.page_visits import HEADERS, see_other
from pillarbox.domains.overview import digest_of_domains
from pillarbox.emails.search.recent_changes import digest_of_emails
from pillarbox.inboxes.threads.recent_changes import digest_of_inboxes, digest_of_thread
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import GONE, TeamDb
from pillarbox.kernel.security.remembered import SharedCache
from pillarbox.kernel.wire.problems import InvalidParameter, ServerOverloaded
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.logs.reading import digest_of_logs
from pillarbox.people.visitors import visitor_of
from pillarbox.receiving.reading import digest_of_received
from pillarbox.webhooks.log import digest_of_webhooks

MEDIA: Final = "text/event-stream; charset=utf-8"
EVERY: Final = 0.5
"""Seconds between two looks."""

LONGEST: Final = 1200
"""Looks after which a stream ends."""

SIGN_OF_LIFE: Final = 30
"""Looks after which something is written even where nothing changed, and the session is asked for again."""

MOST_OF_SESSION: Final = 10
MOST_OF_TEAM: Final = 50
MOST_STREAMS: Final = 400
"""Streams that a process holds, of one session, of one team and in all."""

CHANGE: Final = b"event: change\ndata: page\n\n"
END: Final = b"event: end\ndata: session\n\n"
NOTHING: Final = b": no change\n\n"


Digest = Callable[[TeamDb, UUID | None], Awaitable[str]]
"""Answers a text that is another one after a change of a thing, or of the newest of a team."""

DIGESTS: Final[Mapping[str, Digest]] = {
    "emails": digest_of_emails,
    "received": digest_of_received,
    "webhooks": digest_of_webhooks,
    "logs": digest_of_logs,
    "domains": digest_of_domains,
    "broadcasts": digest_of_broadcasts,
    "bulk_acts": digest_of_bulk_acts,
    "automations": digest_of_automations,
    "automation_runs": digest_of_run,
    "inboxes": digest_of_inboxes,
    "inbox_threads": digest_of_thread,
}
"""The kinds of things that pages may show as they change."""


class LiveSubject(NamedTuple):
    """The things that a page shows: those of a kind, or one of them."""

    team_id: UUID
    kind: str
    thing_id: UUID | None


class LiveStreams:
    """The open streams of a process. However many show the same, the database is asked for it at most four
    times a second."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._digests: SharedCache[LiveSubject, str] = SharedCache(clock, self._ask)
        self._open: Counter[UUID] = Counter()
        self._of_session: Counter[UUID] = Counter()
        self._is_closing = False

    def close(self) -> None:
        """End every stream within a second."""
        self._is_closing = True

    def check(self, team_id: UUID, session_id: UUID) -> None:
        """Raise ServerOverloaded where the session, the team, or all teams have too many streams."""
        if (
            self._is_closing
            or self._of_session[session_id] >= MOST_OF_SESSION
            or self._open[team_id] >= MOST_OF_TEAM
            or self._open.total() >= MOST_STREAMS
        ):
            raise ServerOverloaded("Too many pages are open. Reload the page to see what changed.")

    async def events(
        self, request: Request, subject: LiveSubject, seen: str | None, session_id: UUID
    ) -> AsyncIterator[bytes]:
        """Yield the events of a stream; it counts from its first event on. `seen` is the digest that its page
        was drawn with."""
        team_id = subject.team_id
        self._open[team_id] += 1
        self._of_session[session_id] += 1
        try:
            last = await self._digest(subject)
            yield NOTHING if seen is None or last is None or last == seen else CHANGE
            for look in range(1, LONGEST):
                await self._clock.sleep(EVERY)
                if self._is_closing or request.is_client_gone():
                    return
                is_due = look % SIGN_OF_LIFE == 0
                if is_due and not await _has_session(request, team_id):
                    yield END
                    return
                digest = await self._digest(subject)
                if digest is not None and digest != last:
                    last = digest
                    yield CHANGE
                elif is_due:
                    yield NOTHING
        finally:
            for counts, owner in ((self._open, team_id), (self._of_session, session_id)):
                counts[owner] -= 1
                if not counts[owner]:
                    del counts[owner]

    async def _digest(self, subject: LiveSubject) -> str | None:
        """Return the digest now; None where the database does not answer."""
        try:
            return await self._digests.find(subject)
        except (*GONE, TimeoutError):
            return None

    async def _ask(self, subject: LiveSubject) -> str:
        db = TeamDb(self._pool, subject.team_id)
        return await DIGESTS[subject.kind](db, subject.thing_id)


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
    query={
        "of": Literal[
            "emails",
            "received",
            "webhooks",
            "logs",
            "domains",
            "broadcasts",
            "bulk_acts",
            "automations",
            "automation_runs",
            "inboxes",
            "inbox_threads",
        ],
        "id": UUID,
        "seen": str,
    },
    summary="The stream that tells a page of changes",
    also=(303,),
    problems=(422, 503),
)
async def stream(request: Request) -> Reply[OctetsAnswer]:
    visitor = await visitor_of(request.use(asyncpg.Pool), request.at, cookie(request), is_used=False)
    headers = {**HEADERS, "content-security-policy": POLICY, "x-accel-buffering": "no"}
    if visitor is None or visitor.team_id is None:
        login = see_other("/login")
        return Reply(b"", login.status, login.headers, login.media)
    kind = request.query.choice("of", *DIGESTS) or "emails"
    thing = request.query.text("id")
    if thing is not None and not well_formed(thing):
        raise InvalidParameter("id", "Use the id of a thing that the page shows.")
    streams = request.use(LiveStreams)
    streams.check(visitor.team_id, visitor.session_id)
    subject = LiveSubject(visitor.team_id, kind, None if thing is None else UUID(thing))
    events = streams.events(request, subject, request.query.text("seen"), visitor.session_id)
    return Reply(events, headers=headers, media=MEDIA)
