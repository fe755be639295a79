"""One view of a screen: who looks, what it calls, and how it is drawn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.dashboard.frame.code_samples import ApiExample, shortened
from pillarbox.dashboard.frame.layout import draw_screen
from pillarbox.dashboard.people.page_visits import HEADERS, actor_of, problem_texts, see_other
from pillarbox.dashboard.texts import has_text, t
from pillarbox.kernel.http.files import disposition
from pillarbox.kernel.http.pipeline import Api, RouteCall
from pillarbox.kernel.http.request import JSON, Html, Reply, Request
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import Forbidden, NotFound, Problem
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

MANAGED: Final = ("domains", "webhooks", "api-keys", "oauth")
"""First segments of paths whose writes need the right to manage the team."""

FILE_POLICY: Final = (
    "default-src 'none'; sandbox; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of a file: it does nothing, should a browser show it."""

_encode = msgspec.json.Encoder().encode


class ActNote(NamedTuple):
    """The thing that a form changes, and what else the log of acts says of it. `what` is None where the mark
    of the form says it, `target` where the answer to the change does."""

    target: str | None
    what: Act | None
    details: Mapping[str, object]


class Visit:
    """The request of a screen with its visitor. `calls` are the calls of the API that it made so far.

    Of an act `records` is what the log of acts says. Its line is written in the transaction of the first call
    that changes anything; `is_recorded` says that this was committed, and `recorded` has all lines so far.
    """

    __slots__ = (
        *("_is_written", "_known", "acted", "calls", "is_recorded", "path", "planned", "recorded", "records"),
        *("request", "title", "visitor"),
    )

    def __init__(self, request: Request, visitor: Visitor, path: str, title: str) -> None:
        self.request = request
        self.visitor = visitor
        self.path = path
        self.title = title
        self.calls: list[ApiExample] = []
        self.acted: ActNote | None = None
        self.planned: ActNote | None = None
        self.records: Act | None = None
        self.is_recorded = False
        self.recorded: list[Act] = []
        self._is_written, self._known = False, 0

    # The team ---------------------------------------------------------------------------------------

    @property
    def team_id(self) -> UUID:
        """The team that the visitor has chosen."""
        return self.db.team_id

    @property
    def db(self) -> TeamDb:
        """The database of the visitor's team, for calls that no route of the API has. Forbidden without a
        team."""
        if self.visitor.team_id is None:
            raise Forbidden(t("team.none"))
        return TeamDb(self.pool, self.visitor.team_id)

    @property
    def pool(self) -> asyncpg.Pool:
        """The database of the installation, for screens of its operators."""
        return self.request.use(asyncpg.Pool)

    @property
    def actor(self) -> Actor:
        """The visitor as the log of acts names them."""
        return actor_of(self.request, self.visitor)

    def acts_on(self, target: str | None, what: Act | None = None, **details: object) -> None:
        """Say what the line in the log of acts names, before the call that changes it. Without a `target`
        it is the id that the answer has."""
        self.planned = ActNote(target, what, details)

    def has_acted(self, target: str | None, what: Act | None = None, **details: object) -> None:
        """Note that something was done, for the log of acts."""
        self.acted = ActNote(target, what, details)

    async def record(self, what: Act, *, team_id: UUID | None) -> None:
        """Record an act of the visitor, with what `has_acted` noted, else with the ids of the path."""
        await self._record(self.pool, what, team_id, self.acted or self.planned or self._usual_note(None))

    def _usual_note(self, answer: Reply[Any] | None) -> ActNote:
        """Return what is said of an act that says nothing: the ids of the path, else that of the answer."""
        ids = "/".join(self.request.params.values())
        return ActNote(ids or _id_in(answer), None, {})

    async def _record(self, source: Source, what: Act, team_id: UUID | None, note: ActNote) -> None:
        await record(
            source,
            self.request.at,
            what,
            team_id=team_id,
            actor=self.actor,
            target=note.target,
            details=note.details or None,
        )

    def may(self, right: Right) -> bool:
        """Return whether the visitor has the right in the team."""
        return self.visitor.may(right)

    # The API ----------------------------------------------------------------------------------------

    async def get(self, path: str, /, *, shown: bool = True, **query: Any) -> Any:
        """Return what `GET path` answers, as dicts and lists. Query values of None or "" are left out.

        Raises the route's Problem. `shown` says whether the page offers the call as an example.
        """
        reply = await self._call("GET", path, query, None, shown=shown)
        return await _builtins(reply)

    async def find(self, path: str, /, **query: Any) -> Any | None:
        """Return what `GET path` answers, or None where there is no such thing."""
        try:
            return await self.get(path, **query)
        except NotFound:
            return None

    async def file(self, path: str, /, **query: Any) -> Reply[Any]:
        """Return the answer of a GET that is a file, with its headers."""
        return await self._call("GET", path, query, None, shown=False)

    async def post(
        self, path: str, /, body: Any = None, *, key: str | None = None, recorded: bool = True
    ) -> Any:
        """Return what `POST path` answers. `key` is an Idempotency-Key: a form sent twice acts once. With
        `recorded` the line in the log of acts may be written with this call."""
        return await _builtins(await self._call("POST", path, {}, body or {}, key=key, recorded=recorded))

    async def patch(self, path: str, /, body: Any) -> Any:
        """Return what `PATCH path` answers."""
        return await _builtins(await self._call("PATCH", path, {}, body))

    async def put(self, path: str, /, body: Any) -> Any:
        """Return what `PUT path` answers."""
        return await _builtins(await self._call("PUT", path, {}, body))

    async def delete(self, path: str, /, body: Any = None) -> Any:
        """Return what `DELETE path` answers."""
        return await _builtins(await self._call("DELETE", path, {}, body))

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> Reply[Any]:
        """Return the answer of any call. Special characters in values of the path are percent-encoded."""
        return await self._call(method, path, query, body, headers=headers)

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any,
        *,
        key: str | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        shown: bool = True,
        recorded: bool = True,
    ) -> Reply[Any]:
        self._check(method, path)
        given = {name: _text(value) for name, value in query.items() if value not in (None, "")}
        if shown:
            self.calls.append(ApiExample(method, path, given, shortened(body)))
        own = [] if key is None else [(b"idempotency-key", key.encode("ascii", "replace"))]
        self._is_written, self._known = False, len(self.recorded)
        call = RouteCall(
            caller=self.visitor.caller(),
            method=method,
            path=quote(path, safe="/@:-._~%"),
            query=urlencode(given),
            body=b"" if body is None else await in_thread_if_large(_characters(body), _encode, body),
            headers=(*own, *headers),
            also=self._write_line if method != "GET" and recorded and self._line() else None,
        )
        reply = await self.request.use(Api).call(self.request, call)
        self.is_recorded = self.is_recorded or self._is_written
        return reply

    @asynccontextmanager
    async def change(self) -> AsyncIterator[TeamDb]:
        """Yield the team's database in a transaction that ends with the line of the act, for a change that no
        route of the API makes."""
        self._is_written, self._known = False, len(self.recorded)
        async with self.db.transaction() as db:
            yield db
            if self._line():
                await self._write_line(db.connection, None)
        self.is_recorded = self.is_recorded or self._is_written

    def _line(self) -> Act | None:
        """Return the act whose line is to be written with the next change; None where it is written, or where
        the route writes its own."""
        if self.is_recorded:
            return None
        return (self.planned and self.planned.what) or self.records

    async def _write_line(self, conn: Connection, answer: Reply[Any] | None) -> None:
        """Write the line of the act in the transaction of a call, unless the route has written its own. A
        route is tried again after a deadlock, so a line of this act may be one that was taken back."""
        what = self._line()
        if what is None or any(act is not what for act in self.recorded[self._known :]):
            return
        note = self.planned or self._usual_note(answer)
        if note.target is None:
            note = note._replace(target=_id_in(answer))
        await self._record(conn, what, self.visitor.team_id, note)
        self._is_written = True

    def _check(self, method: str, path: str) -> None:
        """Refuse a call that the visitor's role does not allow (see `right_of`)."""
        if self.visitor.team is None:
            raise Forbidden(t("team.none"))
        if not self.may(right_of(method, path)):
            raise Forbidden(t("refused.text"))
        if method != "GET" and self.visitor.is_team_blocked:
            raise Forbidden(t("team.blocked"))

    # Answers ----------------------------------------------------------------------------------------

    async def draw(
        self,
        template: str,
        *,
        status: int = 200,
        problem: str | None = None,
        notice: str | None = None,
        **values: Any,
    ) -> Reply[Html]:
        """Return the screen as a page of the dashboard. `problem` says what was wrong with a form, `notice`
        what was done; without it that is what the address says."""
        return await draw_screen(
            self.request,
            self.visitor,
            template,
            path=self.path,
            title=self.title,
            calls=self.calls,
            status=status,
            problem=problem,
            notice=notice or self.notice(),
            **values,
        )

    async def failed(self, problem: Problem) -> Reply[Html]:
        """Return the screen that says what did not work, with the navigation around it."""
        self.calls.clear()
        title, text = problem_texts(problem)
        reply = await self.draw("frame/failed.html", status=problem.status, heading=title, text=text)
        reply.headers.update(problem.headers)
        return reply

    def to(self, path: str, *, done: str | None = None) -> Reply[Html]:
        """Return a redirect to a screen, which shows the text `done.<done>`."""
        return see_other(with_query(path, done=done) if done else path)

    def save(self, name: str, body: bytes | AsyncIterator[bytes], media: str) -> Reply[Html]:
        """Return a file that the browser saves under this name; see `download`."""
        headers = {
            **HEADERS,
            "content-disposition": disposition(name),
            "content-security-policy": FILE_POLICY,
        }
        return Reply(body, 200, headers, media)

    def notice(self) -> str | None:
        """Return the text of what was just done, where the address names one."""
        done = f"done.{self.request.query.last('done')}"
        return t(done) if has_text(done) else None


def right_of(method: str, path: str) -> Right:
    """Return the right that a member needs for a call of the API: reading, working, or managing the team."""
    if method in ("GET", "HEAD"):
        return Right.VIEW
    return Right.MANAGE if path.split("/")[1] in MANAGED else Right.USE


def with_query(path: str, /, **values: str | None) -> str:
    """Return the path with these query parameters; None ones are left out."""
    given = {name: value for name, value in values.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _id_in(answer: Reply[Any] | None) -> str | None:
    """Return the id that an encoded answer has."""
    if answer is None or not isinstance(answer.body, bytes) or not answer.body:
        return None
    found = msgspec.json.decode(answer.body)
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _characters(value: Any) -> int:
    """Return about how long the value is as JSON."""
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, (list, tuple)):
            waiting += one
        total += 8
    return total


async def _builtins(reply: Reply[Any]) -> Any:
    """Return the answer as dicts and lists; a long list is streamed."""
    if reply.streamed:
        if reply.media != JSON:
            raise TypeError("the answer is a file: use `file`")
        return msgspec.json.decode(b"".join([part async for part in reply.body]))
    await reply.encode()
    return msgspec.json.decode(reply.body) if reply.body else None
