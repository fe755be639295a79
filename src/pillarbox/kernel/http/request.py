"""The values that a handler gets and returns: `Request` and `Reply`.

Both are slim on purpose: a request costs one look at the ASGI scope, everything else is computed when
it is asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

import msgspec

from pillarbox.kernel.http.client_address import client_address
from pillarbox.kernel.http.idempotency import Idempotency
from pillarbox.kernel.http.request_cycle import RequestCycle
from pillarbox.kernel.http.upload_pool import PooledUpload
from pillarbox.kernel.ids import Stamp
from pillarbox.kernel.observability.request_log import RequestRecord
from pillarbox.kernel.parts import PartRegistry
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.security.rate_limit import WindowState
from pillarbox.kernel.wire.large_answers import as_json
from pillarbox.kernel.wire.problems import BadRequest, Problem
from pillarbox.kernel.wire.query import Query

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Body = TypeVarWithDefault("Body", default=Any)
else:
    Body = TypeVar("Body")

JSON = "application/json; charset=utf-8"
HTML = "text/html; charset=utf-8"

Network = IPv4Network | IPv6Network

UNMATCHED = "none"
"""The pattern of a request that no route takes."""

ONCE = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"origin",
        b"range",
        b"sec-fetch-mode",
        b"sec-fetch-site",
        b"transfer-encoding",
        b"x-batch-validation",
    }
)
"""Headers that decide something: two of them may mean one thing to us and another to a proxy before us."""

REPEATABLE = frozenset(
    {
        b"accept",
        b"accept-language",
        b"cookie",
        b"if-none-match",
        b"purpose",
        b"referer",
        b"sec-purpose",
        b"user-agent",
        b"x-forwarded-for",
        b"x-moz",
    }
)
"""Headers that are lists, or decide nothing: of these the last one counts unless all are read."""

encode = msgspec.json.Encoder().encode


class Request:
    """One HTTP request, as a handler sees it.

    `id` is a UUIDv7 made when the request arrived and is answered as `x-request-id`; `at` is the
    instant inside it. `params` holds the path parameters, percent-decoded; those whose name ends in
    `_id` have been checked and put in lower case before the handler runs. `pattern` is the route as the
    metrics name it. `size` is the number of octets of the parsed body. `asked` is what the log of requests
    keeps, if there is one; `upload` is what the body holds of the memory for bodies that come in pieces.
    `also` is called before the commit of a call from a page.
    `failures` and `shared` are the route's, and `wanted` is the body of one that `parses_first`.
    """

    __slots__ = (
        "_headers",
        "_query",
        "_trusted",
        "also",
        "asked",
        "at",
        "body",
        "caller",
        "cycle",
        "failures",
        "id",
        "idempotency",
        "method",
        "params",
        "path",
        "pattern",
        "rate",
        "raw",
        "scope",
        "services",
        "shared",
        "size",
        "upload",
        "wanted",
    )

    def __init__(
        self, scope: dict[str, Any], stamp: Stamp, services: PartRegistry, trusted: tuple[Network, ...] = ()
    ) -> None:
        self.scope = scope
        self.id: UUID = stamp.id
        self.at: datetime = stamp.at
        self.services = services
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.pattern = UNMATCHED
        self.params: dict[str, str] = {}
        self.raw: bytes | bytearray = b""
        self.body: Any = {}
        self.size = 0
        self.caller: Caller | None = None
        self.also: Callable[[Any, Any], Awaitable[None]] | None = None
        self.asked: RequestRecord | None = None
        self.idempotency: Idempotency | None = None
        self.cycle: RequestCycle | None = None
        self.rate: WindowState | None = None
        self.upload: PooledUpload | None = None
        self.failures: Failures | None = None
        self.shared = False
        self.wanted: Any = None
        self._trusted = trusted
        self._headers: dict[bytes, bytes] | None = None
        self._query: Query | None = None

    def use(self, kind: type[T]) -> T:
        """Return the part of that type that the application built."""
        return self.services.use(kind)

    def is_client_gone(self) -> bool:
        """Return whether the client has closed its connection, so that nobody will read the answer."""
        return self.cycle is not None and self.cycle.is_gone

    def json(self) -> Any:
        """Return the parsed body; `{}` when there was none."""
        return self.body

    def param(self, name: str) -> str:
        """Return a path parameter, percent-decoded once."""
        return self.params[name]

    def uuid(self, name: str) -> UUID:
        """Return a path parameter that is the id of a resource."""
        return UUID(self.params[name])

    def header(self, name: str) -> str | None:
        """Return the last header of that name (lower case), or None."""
        value = self.raw_header(name.encode("ascii"))
        return None if value is None else value.decode("latin-1")

    def raw_header(self, name: bytes) -> bytes | None:
        """Return the last header of that name as bytes."""
        if self._headers is None:
            self._headers = headers_by_name(self.scope["headers"])
        return self._headers.get(name)

    @property
    def query(self) -> Query:
        """The query parameters by the rules of conventions section 2."""
        if self._query is None:
            self._query = Query(self.scope["query_string"])
        return self._query

    @property
    def known(self) -> Caller:
        """Return the caller; RuntimeError on a route that does not authenticate."""
        if self.caller is None:
            raise RuntimeError("a public route has no caller")
        return self.caller

    @property
    def client(self) -> str:
        """The client's address; behind a trusted proxy the one that this proxy vouches for."""
        peer = self.scope.get("client")
        forwarded = [value for name, value in self.scope["headers"] if name == b"x-forwarded-for"]
        return client_address(peer[0] if peer else "", forwarded, self._trusted)


class Html:
    """The answer type of a route that answers with an HTML page."""


class OctetsAnswer:
    """The answer type of a route that answers with the bytes of a file, whatever its media type."""


@dataclass(slots=True)
class Reply(Generic[Body]):
    """The answer of a handler. `body` is encoded as JSON unless it is bytes or an iterator of bytes. An
    iterator gives as many bytes as the headers name, or a number that is unknown before its end.

    A handler names the type of its answer in its annotation: `Reply[wire.Email]`. Bytes are not checked
    against it. Without `status` the route's own is used. `headers` are added to those of every answer,
    and replace those of the same name (lower case).
    """

    body: Any = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    media: str = JSON

    if TYPE_CHECKING:
        # The field is `Any` because encoding turns it into bytes; who makes a reply is held to its type.
        def __init__(
            self,
            body: Body | bytes | AsyncIterator[bytes],
            status: int | None = None,
            headers: dict[str, str] = ...,
            media: str = JSON,
        ) -> None: ...

    @staticmethod
    def html(page: str, status: int = 200, headers: dict[str, str] | None = None) -> Reply[Html]:
        """Return a page for people."""
        return Reply(page.encode(), status, headers or {}, HTML)

    @staticmethod
    def stream(
        parts: AsyncIterator[bytes], *, size: int, media: str, headers: dict[str, str], status: int = 200
    ) -> Reply[OctetsAnswer]:
        """Return a reply of `size` bytes that are not held in memory at once."""
        return Reply(parts, status, {**headers, "content-length": str(size)}, media)

    @property
    def streamed(self) -> bool:
        """True when the body is an iterator of bytes."""
        return not isinstance(self.body, bytes) and isinstance(self.body, AsyncIterator)

    async def encode(self) -> None:
        """Turn the body into the bytes that will be sent, a large one in a thread, so that nothing can fail
        after a commit."""
        if not isinstance(self.body, bytes) and not self.streamed:
            self.body = await as_json(self.body)


def headers_by_name(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the last header of each name; raise 400 where one of `ONCE` is there twice."""
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        refuse_repeated(pairs)
    return by_name


def refuse_repeated(pairs: Sequence[tuple[bytes, bytes]]) -> None:
    """Raise 400 for two headers of a name that may be there once."""
    names = [name for name, _ in pairs if name in ONCE]
    for name in names:
        if names.count(name) > 1:
            shown = name.decode("ascii").title()
            raise BadRequest(f"The request must have at most one `{shown}` header.")


def merged(first: Iterable[tuple[bytes, bytes]], extra: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the standing headers, replaced and continued by those of one answer."""
    if not extra:
        return list(first)
    added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in extra.items()]
    names = {name for name, _ in added}
    return [pair for pair in first if pair[0] not in names] + added


@dataclass(frozen=True, slots=True)
class Failures:
    """How problems are answered where not as conventions section 5 says: `reply` makes the answer, `body` is
    its type, and `name` what the OpenAPI document calls it."""

    name: str
    body: type
    reply: Callable[[Problem], Reply]
