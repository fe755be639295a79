"""A call of a tool: the request of the API that it means, answered by the whole pipeline in the same
process.

Authentication, rights, rate, quotas, idempotency, limits and the log of requests are those of the
pipeline: the request goes in with the caller's own credential, and comes out as an answer with a
status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from pillarbox.kernel.http.pipeline import Api
from pillarbox.kernel.http.request import Request
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.kernel.wire.problems import MethodNotAllowed, Problem
from pillarbox.mcp.tool_schemas import IDEMPOTENCY_KEY, BoundTool, Place

LARGEST_ANSWER: Final = 16 * 1024 * 1024
"""Octets that the API may answer to a call; of most answers a tool shows a part."""

LONGEST_VALUE: Final = 4000
"""Characters of an argument that goes into the address or a header of the request, which servers bound."""

KEPT: Final = frozenset({b"authorization", b"host", b"user-agent", b"x-forwarded-for"})
"""Headers of the MCP request that the request of the API has too."""

_encode = msgspec.json.Encoder().encode


class WrongArguments(Exception):  # noqa: N818 (told to the model)
    """The arguments do not make a request; the message says what to change."""


class CapturedCycle:
    """One request and its answer without a connection (`request_cycle.RequestCycle`)."""

    __slots__ = ("_body", "_outer", "answer", "headers", "is_too_large", "scope", "status")

    def __init__(self, outer: Request, scope: dict[str, Any], body: bytes) -> None:
        self.scope = scope
        self.status = 0
        self.answer = b""
        self.headers: dict[bytes, bytes] = {}
        self.is_too_large = False
        self._outer = outer
        self._body = body

    @property
    def is_gone(self) -> bool:
        return self._outer.is_client_gone()

    def whole_body(self) -> bytes:
        return self._body

    def more_time(self) -> None:
        return None

    def respond(self, status: int, lines: bytes, body: bytes) -> bool:
        self.status = status
        self._keep(body)
        return True

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = dict(message["headers"])
        else:
            self._keep(message.get("body", b""))

    def _keep(self, part: bytes) -> None:
        if self.is_too_large or len(self.answer) + len(part) > LARGEST_ANSWER:
            self.is_too_large, self.answer = True, b""
        else:
            self.answer += part


async def called(outer: Request, bound: BoundTool, arguments: Mapping[str, Any]) -> CapturedCycle:
    """Return the answer of the route to these arguments; raise WrongArguments where they make no request."""
    refuse_unknown(bound, arguments)
    path = path_of(bound, arguments)
    _refuse_other_route(outer.use(RouteTable), bound, path)
    body = body_of(bound, arguments)
    headers = [(name, value) for name, value in outer.scope["headers"] if name in KEPT]
    if body:
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if (key := arguments.get(IDEMPOTENCY_KEY)) is not None:
        headers.append((b"idempotency-key", _text(IDEMPOTENCY_KEY, key).encode("utf-8", "replace")))
    scope = {
        **outer.scope,
        "method": bound.route.method,
        "path": path,
        "raw_path": path.encode("ascii"),
        "query_string": query_of(bound, arguments).encode("ascii"),
        "headers": headers,
    }
    cycle = CapturedCycle(outer, scope, body)
    await outer.use(Api).serve(cycle)
    return cycle


def refuse_unknown(bound: BoundTool, arguments: Mapping[str, Any]) -> None:
    """Raise WrongArguments for an argument that the tool does not have, and where one is missing."""
    for name in arguments:
        if name not in bound.places:
            taken = ", ".join(f"`{one}`" for one in bound.places) or "none"
            raise WrongArguments(f"Unknown argument `{name[:60]}`. This tool takes: {taken}.")
    for name in bound.required:
        if arguments.get(name) is None:
            raise WrongArguments(f"Missing argument `{name}`.")


def path_of(bound: BoundTool, arguments: Mapping[str, Any]) -> str:
    """Return the path with the arguments in it, percent-encoded."""
    values = {name: quote(_text(name, arguments[name]), safe="@") for name in bound.route.parameters}
    if empty := [name for name, value in values.items() if not value]:
        raise WrongArguments(f"Missing argument `{empty[0]}`.")
    return bound.route.path.format(**values)


def _refuse_other_route(table: RouteTable, bound: BoundTool, path: str) -> None:
    """Raise where a value is a word of the API: `metrics` as the id of an email means another endpoint."""
    try:
        route, _ = table.match(bound.route.method, path)
    except MethodNotAllowed:
        route = None
    except Problem:
        route = None
    if route is not bound.route:
        names = ", ".join(f"`{name}`" for name in bound.route.parameters)
        raise WrongArguments(f"There is nothing of that name; look at {names}.")


def query_of(bound: BoundTool, arguments: Mapping[str, Any]) -> str:
    """Return the query string, with what the tool gives where the caller says nothing."""
    given = {
        name: _text(name, value)
        for name, value in arguments.items()
        if bound.places[name] is Place.QUERY and value is not None
    }
    return urlencode({**bound.defaults, **given})


def body_of(bound: BoundTool, arguments: Mapping[str, Any]) -> bytes:
    """Return the JSON body, which the route reads and judges as it does any other."""
    if not bound.route.takes_body or bound.route.body is None:
        return b""
    given = {name: value for name, value in arguments.items() if bound.places[name] is Place.BODY}
    return _encode({**given, **bound.tool.fixed})


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        raise WrongArguments(f"Argument `{name}` may have at most {LONGEST_VALUE} characters.")
    if isinstance(value, str | int):
        return str(value)
    raise WrongArguments(f"Argument `{name}` must be a text, a number or true or false.")
