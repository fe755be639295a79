"""The HTTP pipeline: one ASGI application that takes a request through the contract's stages, in its order.

host, route → size → authentication → permission → rate limit → idempotency key → JSON → earlier answer
→ path parameters → handler (fields, look-ups, effect) → answer → log row (conventions section 1).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import asyncpg

from pillarbox.kernel.http.body import (
    CLOSE,
    ClientGone,
    count_body,
    count_unknown,
    declared_size,
    drain,
    next_part,
    within,
)
from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.http.failures import failed, problem_for
from pillarbox.kernel.http.hosts import HostRules
from pillarbox.kernel.http.idempotency import (
    AlreadyAnswered,
    Idempotency,
    IdempotencyStore,
    RunningKeys,
    fingerprint,
    key_of,
    same,
)
from pillarbox.kernel.http.inbox_keys import refuse_outside_inbox
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.http.queries import StoredAnswer
from pillarbox.kernel.http.rendering import answer_headers, plain_lines
from pillarbox.kernel.http.request import Network, Reply, Request
from pillarbox.kernel.http.request_cycle import Receive, RequestCycle, Send
from pillarbox.kernel.http.request_recording import answered_by, asked_of
from pillarbox.kernel.http.routing import SHARED, BodyMode, Route, RouteTable, WrongHost
from pillarbox.kernel.http.uploads import UploadLimits, Uploads
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.metrics import SECONDS, Histogram
from pillarbox.kernel.observability.request_log import (
    READS,
    UNREADABLE,
    NoRequestLog,
    RequestLogWriter,
    RequestRecord,
)
from pillarbox.kernel.parts import PartRegistry
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.database import GONE, Connection, TeamDb, transaction
from pillarbox.kernel.postgres.team_share import TeamShares, Turn
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.process import faults
from pillarbox.kernel.process.offload import in_thread, in_thread_if_large
from pillarbox.kernel.security.authentication import (
    FAILURES,
    Access,
    AccessTokens,
    Authenticator,
    Caller,
    Challenges,
    CredentialLookup,
    NoAccessTokens,
)
from pillarbox.kernel.security.rate_limit import Windows, WindowState, key_for
from pillarbox.kernel.security.team_rate import TeamRate
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.json_body import SMALL, WITH_NUL, decoded
from pillarbox.kernel.wire.problems import (
    ConcurrentIdempotentRequest,
    Forbidden,
    Invalid,
    NotAUuid,
    OutcomeUnknown,
    Problem,
    RateLimited,
    UnsupportedBody,
)
from pillarbox.kernel.wire.uuids import well_formed

DEADLOCK_TRIES = 3
UNAVAILABLE = 503
A_MOMENT = timedelta(seconds=1)

REQUESTS_AT_ONCE = 16
"""Of which teams have their shares, as of the connections of a pool."""

FAILED_LOGINS = 60
FAILED_LOGINS_WINDOW = 60.0

REQUESTS = Histogram(
    "pillarbox_http_request_seconds",
    "How long requests took until their answer was made, by route and class of status.",
    SECONDS,
    ("route", "status"),
)
STATUS_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


class Meter(Protocol):
    """Reports how much of its quotas a team has used (conventions section 8)."""

    async def headers(self, caller: Caller, since: datetime) -> dict[str, str]:
        """Return the headers for a metered caller, as of some time after `since`; none where they
        are unknown."""
        ...


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings of the HTTP server."""

    rate_limit: int = 10
    trusted_proxies: tuple[Network, ...] = ()
    require_user_agent: bool = False
    issuer: str = ""
    uploads: UploadLimits = field(default_factory=UploadLimits)


Also = Callable[[Connection, Reply], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCall:
    """A call of one of the program's own routes, from within the request of a page."""

    caller: Caller
    method: str
    path: str
    query: str = ""
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    also: Also | None = None
    """Is called with the answer in the transaction of the route, before the commit; not where the route has
    none that the pipeline makes, and not for an answer that was stored."""


class Messages:
    """An exchange by ASGI's messages, for servers other than our own."""

    __slots__ = ("receive", "scope", "send")

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send

    @property
    def is_gone(self) -> bool:
        return False

    def whole_body(self) -> None:
        return None

    def more_time(self) -> None:
        return None

    def respond(self, status: int, lines: bytes, body: bytes) -> bool:
        return False


class Api:
    """The ASGI application of a route table.

    Reaches its parts through `services`: `asyncpg.Pool`, `Ids`, `Windows`, `TeamRate`, and, under their
    protocols, `CredentialLookup` and `IdempotencyStore`; where there are such, `AccessTokens`,
    `RequestLogWriter`, `Meter`, `Maintenance` and `HostRules`.
    """

    def __init__(
        self, table: RouteTable, services: PartRegistry, settings: HttpSettings | None = None
    ) -> None:
        self._table = table
        self._services = services
        self._settings = settings or HttpSettings()
        self._pool: asyncpg.Pool = services.use(asyncpg.Pool)
        self._ids = services.use(Ids)
        self._windows = services.use(Windows)
        self._team_rate = services.use(TeamRate)
        self._authentication = Authenticator(
            services.use(CredentialLookup),  # type: ignore[type-abstract]
            services.find(AccessTokens) or NoAccessTokens(),  # type: ignore[type-abstract]
            Challenges(self._settings.issuer),
        )
        self._answers: IdempotencyStore = services.use(IdempotencyStore)  # type: ignore[type-abstract]
        self._request_log: RequestLogWriter = services.find(RequestLogWriter) or NoRequestLog()  # type: ignore[type-abstract]
        self._meter: Meter | None = services.find(Meter)  # type: ignore[type-abstract]
        self._maintenance = services.find(Maintenance)
        self._hosts = services.find(HostRules)
        self._running = RunningKeys()
        self._turns = TeamShares(REQUESTS_AT_ONCE)
        self._uploads = Uploads(self._settings.uploads)
        services.add(table)
        services.add(self)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            with TimeLimit():
                await self.serve(Messages(scope, receive, send))

    async def serve(self, cycle: RequestCycle) -> None:
        """Take one request from our own protocol, which has made a task for it, and answer it."""
        time_limit.begin()
        started = time.perf_counter()
        request = Request(cycle.scope, self._ids.stamp(), self._services, self._settings.trusted_proxies)
        request.cycle = cycle
        try:
            reply = await self._answer(request, cycle)
            await reply.encode()
        except ClientGone:
            return
        except Exception as failure:
            reply = failed(request, self._table, problem_for(failure, request.id))
            if request.asked is not None:
                request.asked.is_kept = False
        finally:
            if request.upload is not None:
                self._uploads.end(request.upload)
        if request.caller is not None and request.caller.is_metered:
            await self._add_quota_headers(request, request.caller, reply)
        if request.asked is not None and not request.asked.is_kept:
            await self._keep(request, request.asked, reply)
        REQUESTS.observe(
            time.perf_counter() - started, (request.pattern, STATUS_CLASSES[(reply.status or 0) // 100])
        )
        if request.shared:
            reply.headers = {**reply.headers, **SHARED}
        lines = plain_lines(request, reply)
        if lines is None or not cycle.respond(reply.status or 0, lines, reply.body):
            try:
                await _deliver(request, reply, cycle.receive, cycle.send)
            except ClientGone:
                return

    async def call(self, page: Request, call: RouteCall) -> Reply:
        """Return the answer of a route that a page calls as `call.caller`, encoded unless it is streamed.

        The route's size limit, idempotency, checks and transaction hold as over HTTP. Authentication, rate
        limit and the log of requests are left out: the page knows who asks. Raises the route's Problem.
        """
        raw_path = call.path.encode("ascii")
        scope = {
            **page.scope,
            "method": call.method,
            "path": call.path,
            "raw_path": raw_path,
            "query_string": call.query.encode("ascii"),
            "headers": call.headers,
        }
        request = Request(scope, self._ids.stamp(), self._services, self._settings.trusted_proxies)
        request.cycle, request.caller, request.also = page.cycle, call.caller, call.also
        route, values = self._table.match(call.method, call.path)
        if route.needs is Access.PUBLIC:
            raise ValueError(f"{route.scope} asks for no caller")
        self._admit(call.caller, route, values)
        if self._maintenance is not None and call.method not in READS:
            self._maintenance.check()
        request.pattern = route.scope
        request.raw = within(call.body, route.limit)
        if call.method in READS:
            return await self._in_turn(request, call.caller.team_id, route, values)
        reply = await self._effect(request, route, values)
        await reply.encode()
        return reply

    async def _answer(self, request: Request, cycle: RequestCycle) -> Reply:
        raw_path = request.scope["raw_path"].decode("latin-1")
        if self._hosts is not None and not await self._hosts.serves(request.raw_header(b"host"), raw_path):
            raise WrongHost
        if request.method == "OPTIONS":
            return Reply(b"", 204, self._table.options(raw_path))
        route, values = self._table.match(request.method, raw_path)
        request.pattern, request.failures, request.shared = route.scope, route.failures, route.shared
        size = declared_size(
            request.raw_header(b"content-length"), request.raw_header(b"transfer-encoding"), route.limit
        )
        if self._settings.require_user_agent and not request.raw_header(b"user-agent"):
            raise Forbidden("A `User-Agent` header is required.")
        if route.needs is not Access.PUBLIC:
            await self._identify(request, route, values, size, cycle)
        if size or (size is None and route.needs is Access.PUBLIC):
            await self._read(request, route, size, cycle)
        if request.caller is not None and request.method in READS:
            return await self._in_turn(request, request.caller.team_id, route, values)
        return await self._effect(request, route, values)

    async def _in_turn(self, request: Request, team: UUID, route: Route, values: list[str]) -> Reply:
        """Answer a read when it is its turn: a team has so many at a time, and the next ones wait in its
        queue. Where that is full (`team_share`) it is 503. Writes do not wait here."""
        if not self._turns.reads.enter(team):
            async with time_limit.bounded():
                await self._turns.reads.wait(team)
        turn = Turn(self._turns.reads, team)
        if (limit := time_limit.current()) is not None:
            limit.end_turn = turn.end
        try:
            if request.is_client_gone():
                raise ClientGone
            reply = await self._effect(request, route, values)
            await reply.encode()
            return reply
        finally:
            turn.end()

    async def _identify(
        self, request: Request, route: Route, values: Sequence[str], size: int | None, cycle: RequestCycle
    ) -> None:
        """Check authentication, permission and rate limit.

        A body of unknown size is measured as well: 413 comes before them. What an unauthenticated client
        sends is forgotten at once.
        """
        try:
            request.caller = caller = await self.caller_of(request, self._authentication)
            time_limit.belongs_to(caller.team_id, is_read=request.method in READS)
            self._turns.note(caller.team_id)
            if route.logged and self._request_log.keeps(caller):
                request.asked = asked_of(request, route)
        except Problem as failure:
            if size is None:
                seconds = self._settings.uploads.unknown_seconds
                await count_unknown(cycle.receive, route.limit, seconds, failure)
            raise
        if size is None:
            await self._read(request, route, size, cycle)
        self._authentication.used(caller)
        request.rate = await self._rate(caller)
        self._admit(caller, route, values)
        if request.rate is not None and not request.rate.allowed:
            raise too_many(request.rate)

    def _admit(self, caller: Caller, route: Route, values: Sequence[str]) -> None:
        """Raise where the credential is not enough for the route; all that calls a route passes here."""
        if caller.inbox_id is None:
            self._authentication.check(caller, route.needs, route.token_scope)
        else:
            refuse_outside_inbox(caller, route, values)

    async def caller_of(self, request: Request, authenticator: Authenticator) -> Caller:
        """Return who sent the request; raise the refusal. Failures count against the client's address. For
        public routes that authenticate by themselves too."""
        if self._maintenance is not None:
            self._maintenance.check()
        try:
            return await authenticator.caller(request.raw_header(b"authorization"))
        except FAILURES:
            key = key_for(client_of(request.client))
            taken = self._windows.take(key, FAILED_LOGINS, FAILED_LOGINS_WINDOW)
            if not taken.allowed:
                raise too_many(taken) from None
            raise

    async def count_request(self, request: Request, caller: Caller) -> None:
        """Count the request of a public route against the rate of the caller's team; raise 429 beyond it."""
        request.rate = await self._rate(caller)
        if request.rate is not None and not request.rate.allowed:
            raise too_many(request.rate)

    async def _rate(self, caller: Caller) -> WindowState | None:
        limit = self._settings.rate_limit if caller.rate_limit is None else caller.rate_limit
        return await self._team_rate.take(caller.team_id, limit) if limit else None

    async def _read(self, request: Request, route: Route, size: int | None, cycle: RequestCycle) -> None:
        if route.intake is BodyMode.STREAM:
            return
        if route.takes_body:
            whole = cycle.whole_body()
            if whole is None:
                await self._receive(request, route, size, cycle)
            else:
                request.raw = within(whole, route.limit)
        elif size is None:
            await count_body(cycle.receive, route.limit)

    async def _receive(self, request: Request, route: Route, size: int | None, cycle: RequestCycle) -> None:
        """Receive a body that had not come yet. Most come in one piece; the others are counted."""
        part, more = await next_part(cycle.receive)
        request.raw = within(part, route.limit)
        if more:
            team = None if request.caller is None else request.caller.team_id
            request.upload = self._uploads.begin(request.client, team, size, route.limit)
            request.raw = whole = bytearray(part)
            del part
            await self._uploads.read(request.upload, cycle, whole, route.limit)

    async def _effect(self, request: Request, route: Route, values: list[str]) -> Reply:
        key = key_of(request.raw_header(b"idempotency-key")) if route.idempotent else None
        holds_nul = await parse_body(request, route, self._request_log)
        if key is None:
            return await self._handle(request, route, values, holds_nul)
        salt = route.salt(request) if route.salt else ""
        is_large = request.size > SMALL
        made = await in_thread_if_large(request.size, fingerprint, request.body, salt, is_large=is_large)
        team = request.known.team_id
        as_written = route.scope_of(values)
        values = await route.resolved(TeamDb(self._pool, team), values)
        wanted = request.idempotency = Idempotency(route.scope_of(values), key, made)
        with self._running.hold(team, wanted):
            stored = await self._answers.find(team, wanted.scope, key)
            if stored is None and as_written != wanted.scope:
                # What a release that did not resolve names has kept counts for its day (conventions 9).
                stored = await self._answers.find(team, as_written, key)
            if stored is not None:
                return replayed(same(stored, wanted))
            await faults.point("idempotency.looked_up")
            try:
                return await self._handle(request, route, values, holds_nul)
            except AlreadyAnswered:
                stored = await self._answers.find(team, wanted.scope, key)
                if stored is None:
                    raise ConcurrentIdempotentRequest from None
                return replayed(same(stored, wanted))
            except Problem as refusal:
                # What refuses this one may be the effect of the same request in another process, whose answer
                # was committed with it since the key was looked up.
                stored = await self._answers.find(team, wanted.scope, key) if refusal.status < 500 else None
                if stored is None:
                    raise
                return replayed(same(stored, wanted))

    async def _handle(self, request: Request, route: Route, values: list[str], holds_nul: bool) -> Reply:
        take_parameters(request, route, values)
        refuse_shape(request, route, holds_nul=holds_nul)
        if route.parses_first:
            request.wanted = await in_thread_if_large(request.size, parse, route.body, request.body)
        if route.needs is Access.PUBLIC:
            reply = await route.handler(request)
        elif route.transaction:
            reply = await self._in_transaction(request, route)
        else:
            reply = await route.handler(request, TeamDb(self._pool, request.known.team_id))
        reply.status = reply.status or route.status
        return reply

    async def _in_transaction(self, request: Request, route: Route) -> Reply:
        """Run the handler with its commit. A deadlock undid everything, so the request is run again."""
        for tries_left in reversed(range(DEADLOCK_TRIES)):
            is_committing = False
            try:
                async with transaction(self._pool) as conn:
                    reply = await route.handler(request, TeamDb(conn, request.known.team_id))
                    await reply.encode()
                    if request.also is not None:
                        await request.also(conn, reply)
                    if request.asked is not None:
                        await self._request_log.keep(conn, [answered_by(request.asked, reply)])
                    is_committing = request.method not in READS
            except asyncpg.DeadlockDetectedError:
                if not tries_left:
                    raise
            except GONE as gone:
                if is_committing:
                    # The database went away during the commit.
                    raise OutcomeUnknown from gone
                raise
            else:
                if request.asked is not None:
                    request.asked.is_kept = True
                return reply
        raise AssertionError("unreachable")

    # What every answer leaves --------------------------------------------------------------------

    async def _add_quota_headers(self, request: Request, caller: Caller, reply: Reply) -> None:
        """Add how much of the team's quotas is used; a rate limited caller gets a slightly older count."""
        if self._meter is not None:
            since = request.at - A_MOMENT if _is_slowed(request) else request.at
            headers = await self._meter.headers(caller, since)
            reply.headers = {**reply.headers, **headers}

    async def _keep(self, request: Request, asked: RequestRecord, reply: Reply) -> None:
        """Keep the log row of a request that wrote nothing. Where nothing was begun it may wait."""
        answered = answered_by(asked, reply)
        if asked.method in READS or reply.status == UNAVAILABLE or _is_slowed(request):
            self._request_log.keep_later(answered)
        else:
            await self._request_log.keep_alone(answered)


def _is_slowed(request: Request) -> bool:
    return request.rate is not None and not request.rate.allowed


async def parse_body(request: Request, route: Route, request_log: RequestLogWriter) -> bool:
    """Parse a JSON body into the request and let its bytes go; True when it holds a NUL."""
    if route.intake in (BodyMode.RAW, BodyMode.STREAM) or not route.takes_body:
        return False
    encoding = request.raw_header(b"content-encoding")
    if encoding is not None and encoding.strip().lower() not in (b"", b"identity"):
        raise UnsupportedBody("The content encoding is not supported.")
    media = request.raw_header(b"content-type")
    if media is not None and media.lstrip()[:19].lower() == b"multipart/form-data":
        raise UnsupportedBody("This endpoint takes JSON, not `multipart/form-data`.")
    data, request.raw = request.raw, b""
    asked = request.asked if data else None
    request.size = len(data)
    if asked is not None:
        asked.size, asked.body = len(data), UNREADABLE
    if len(data) <= SMALL:
        request.body, holds_nul = decoded(data)
    else:
        request.body, holds_nul = await in_thread(decoded, data)
    if asked is not None:
        asked.body = request.body
        if len(data) > SMALL:
            await in_thread(request_log.measure, asked)
    return holds_nul


def take_parameters(request: Request, route: Route, values: list[str]) -> None:
    """Take the path parameters by name, with ids checked and put in lower case."""
    if not values:
        return
    request.params = params = dict(zip(route.parameters, values, strict=True))
    for name in route.uuids:
        if not well_formed(params[name]):
            raise NotAUuid(name)
        params[name] = params[name].lower()
    for name, value in params.items():
        if "\0" in value:
            raise Invalid(f"Invalid `{name}` parameter. It may not contain a NUL character.")


def refuse_shape(request: Request, route: Route, *, holds_nul: bool) -> None:
    """Raise 422 for a top level of the wrong type and for NUL anywhere, which is the first of the
    field checks."""
    allowed = (dict, list) if route.intake is BodyMode.ARRAY else (dict,)
    if not isinstance(request.body, allowed):
        wanted = "an array or an object" if route.intake is BodyMode.ARRAY else "an object"
        raise Invalid(f"The request body must be {wanted}.")
    if holds_nul:
        raise Invalid(WITH_NUL)


def too_many(taken: WindowState) -> RateLimited:
    """Return the 429 with the time to wait."""
    return RateLimited("Too many requests. Please slow down.", {"retry-after": str(taken.reset)})


def replayed(stored: StoredAnswer) -> Reply:
    """Return the stored answer, byte for byte."""
    return Reply(stored.body, stored.status, {"idempotent-replayed": "true"})


async def _deliver(request: Request, reply: Reply, receive: Receive, send: Send) -> None:
    headers = answer_headers(request, reply)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if reply.streamed:
        if request.method != "HEAD":
            async with aclosing(reply.body) as parts:
                async for part in parts:
                    time_limit.renew()
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    elif reply.headers.get("connection") == CLOSE["connection"]:
        await send({"type": "http.response.body", "body": reply.body, "more_body": True})
        await drain(receive)
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": reply.body})
