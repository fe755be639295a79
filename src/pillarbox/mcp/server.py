"""The MCP server: one message in, one message out, nothing kept in between (mcp.md 2).

Origin → credential → JSON → message → version → method. What is refused before there is a message is an
HTTP status with the challenge of RFC 9728; what is wrong with a message is an error of JSON-RPC; what
the API refuses is the result of the tool, marked as an error, so that the model reads what to change.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Raw

from pillarbox import __version__
from pillarbox.kernel.http.pipeline import Api
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.kernel.process.offload import in_thread, in_thread_if_large
from pillarbox.kernel.security.authentication import (
    Authenticator,
    Caller,
    Challenges,
    InsufficientScope,
    InvalidApiKey,
)
from pillarbox.kernel.wire.json_body import decode
from pillarbox.kernel.wire.problems import UnsupportedBody
from pillarbox.mcp import wire
from pillarbox.mcp.calls import CapturedCycle, WrongArguments, called
from pillarbox.mcp.codes import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    STATUSES,
    UNSUPPORTED_VERSION,
    ForeignOrigin,
    NotAMessage,
    RpcFailure,
    UnknownBearer,
)
from pillarbox.mcp.tool import Tool
from pillarbox.mcp.tool_schemas import BoundTool, bound_tools, shown_answer
from pillarbox.mcp.tools import INSTRUCTIONS

PATH: Final = "/mcp"
JSON: Final = "application/json"
VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
ROUTING: Final = (VERSION, METHOD, NAME)
PREFIX: Final = "io.modelcontextprotocol/"
LONGEST_ID: Final = 256
LIST_SECONDS: Final = 300
LARGEST_RESULT: Final = 512 * 1024
"""Octets of an answer as a tool shows it."""

TOOLS_LIST, TOOLS_CALL = "tools/list", "tools/call"

SERVER: Final = {"name": "pillarbox", "title": "Pillarbox", "version": __version__}
CAPABILITIES: Final[dict[str, Any]] = {"tools": {}}
STAMP: Final = {f"{PREFIX}serverInfo": SERVER}

TOO_LARGE: Final = "The answer is too large. Ask for less: a smaller `limit`, or a narrower filter."


class ClientMessage(NamedTuple):
    """A message of a client; `id` is None for a notification."""

    method: str
    id: str | int | None
    params: dict[str, Any] | None


class McpServer:
    """Answers messages at `/mcp`."""

    def __init__(self, url: str, authenticator: Authenticator, challenges: Challenges) -> None:
        parts = urlsplit(url)
        self._origin = f"{parts.scheme}://{parts.netloc}".lower()
        self._authenticator = authenticator
        self._challenges = challenges
        self._messages: Any = None
        self._calls: Any = None
        self._tools: dict[str, BoundTool] = {}
        self._lists: dict[tuple[bool, tuple[str, ...]], Raw] = {}
        self._loading = asyncio.Lock()

    async def answer(self, request: Request) -> Reply[wire.McpAnswer]:
        """Return the answer to one message: 200 with JSON, or 202 to a notification."""
        self._refuse_origin(request)
        caller = await self._caller(request)
        refuse_media(request)
        octets = len(request.raw)
        message = message_of(await in_thread_if_large(octets, decode, request.raw))
        request.raw = b""
        await self._load(request.use(RouteTable))
        version = header(request, VERSION)
        is_stateless = version is not None and version not in self._messages.HANDSHAKE
        if message.method != TOOLS_CALL or message.id is None:
            await request.use(Api).count_request(request, caller)
        if message.id is None:
            return Reply(b"", 202, media=JSON)
        try:
            if is_stateless:
                self._check_envelope(request, message, version or "")
            # Shapes of the versions with a handshake are the same; a client may name none.
            shape = version or self._messages.LATEST_HANDSHAKE
            if message.method == TOOLS_CALL:
                await in_thread_if_large(octets, self._calls.check, shape, message.params)
            else:
                check = self._messages.check_request
                await in_thread_if_large(octets, check, message.method, shape, message.params)
            result = await self._result(request, caller, message, is_stateless=is_stateless)
        except RpcFailure as failure:
            error = wire.McpError(
                code=failure.code,
                message=failure.message,
                data=UNSET if failure.data is None else failure.data,
            )
            status = STATUSES.get(failure.code, 400) if is_stateless else 200
            return Reply(wire.McpAnswer(id=message.id, error=error), status, media=JSON)
        return Reply(wire.McpAnswer(id=message.id, result=result), media=JSON)

    def _refuse_origin(self, request: Request) -> None:
        """Raise for a page of another site: a browser must not be led to act here (DNS rebinding)."""
        origin = request.header("origin")
        if origin is not None and origin.lower() != self._origin:
            raise ForeignOrigin

    async def _caller(self, request: Request) -> Caller:
        try:
            return await request.use(Api).caller_of(request, self._authenticator)
        except InvalidApiKey:
            raise UnknownBearer(self._challenges.invalid) from None

    async def _load(self, table: RouteTable) -> None:
        """Load the types of MCP and make the schemas, in a thread, when the first client asks."""
        if self._messages is not None:
            return
        async with self._loading:
            if self._messages is None:
                self._tools, messages = await in_thread(_loaded, table)
                self._calls, self._messages = messages.CheckedCalls(), messages

    def _check_envelope(self, request: Request, message: ClientMessage, version: str) -> None:
        """Raise where the headers do not say what the message says, or the version is not served."""
        counted = Counter(name for name, _ in request.scope["headers"] if name in ROUTING)
        if repeated := [name for name, count in counted.items() if count > 1]:
            raise RpcFailure(HEADER_MISMATCH, f"The header {repeated[0].decode()} is there more than once.")
        params = message.params or {}
        meta = params.get("_meta")
        named = meta.get(f"{PREFIX}protocolVersion") if isinstance(meta, dict) else None
        if named is None:
            raise RpcFailure(INVALID_PARAMS, f"params._meta must have `{PREFIX}protocolVersion`.")
        said = [(VERSION, named), (METHOD, message.method)]
        if message.method == TOOLS_CALL and params.get("name") is not None:
            said.append((NAME, params["name"]))
        for name, value in said:
            if header(request, name) != value:
                raise RpcFailure(HEADER_MISMATCH, f"The header {name.decode()} is not what the body says.")
        if version not in self._messages.STATELESS:
            supported = [*self._messages.STATELESS]
            raise RpcFailure(
                UNSUPPORTED_VERSION,
                "Unsupported protocol version",
                {"supported": supported, "requested": version},
            )

    # Methods ----------------------------------------------------------------------------------------

    async def _result(
        self, request: Request, caller: Caller, message: ClientMessage, *, is_stateless: bool
    ) -> Raw:
        params = message.params or {}
        if message.method == TOOLS_CALL:
            return await self._call(request, caller, params, is_stateless=is_stateless)
        if message.method == TOOLS_LIST:
            return self._list(caller, is_stateless=is_stateless)
        if message.method == "initialize":
            wanted = params["protocolVersion"]
            version = wanted if wanted in self._messages.HANDSHAKE else self._messages.LATEST_HANDSHAKE
            return wire.encoded({"protocolVersion": version, **self._description(), "serverInfo": SERVER})
        if message.method == "server/discover":
            found = {"supportedVersions": [*self._messages.STATELESS], **self._description()}
            return wire.encoded({**found, **stateless(seconds=LIST_SECONDS)})
        if message.method == "ping":
            return wire.encoded({})
        raise RpcFailure(METHOD_NOT_FOUND, f"The method `{message.method}` is not served.")

    def _description(self) -> dict[str, Any]:
        return {"capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}

    def _list(self, caller: Caller, *, is_stateless: bool) -> Raw:
        """Return the tools that the credential may call."""
        allowed = [tool for tool in self._tools.values() if tool.is_for(caller)]
        key = (is_stateless, tuple(tool.tool.name for tool in allowed))
        if key not in self._lists:
            marks = stateless(seconds=LIST_SECONDS) if is_stateless else {}
            self._lists[key] = wire.encoded({"tools": [tool.listed() for tool in allowed], **marks})
        return self._lists[key]

    async def _call(
        self, request: Request, caller: Caller, params: dict[str, Any], *, is_stateless: bool
    ) -> Raw:
        bound = self._tools.get(params["name"])
        if bound is None:
            raise RpcFailure(INVALID_PARAMS, f"Unknown tool `{params['name'][:60]}`. tools/list has all.")
        is_scoped = caller.scopes is not None and caller.inbox_id is None
        if is_scoped and not caller.has(bound.route.token_scope):
            raise InsufficientScope(self._challenges.insufficient)
        try:
            cycle = await called(request, bound, params.get("arguments") or {})
        except WrongArguments as wrong:
            return _tool_error(str(wrong), is_stateless=is_stateless)
        if cycle.is_too_large:
            return _tool_error(TOO_LARGE, is_stateless=is_stateless)
        if not 200 <= cycle.status < 300:
            return _tool_error(refusal_of(cycle), is_stateless=is_stateless)
        marks = stateless() if is_stateless else {}
        made = await in_thread_if_large(len(cycle.answer), _result_of, bound.tool, cycle.answer, marks)
        return made or _tool_error(TOO_LARGE, is_stateless=is_stateless)


def _loaded(table: RouteTable) -> tuple[dict[str, BoundTool], ModuleType]:
    return bound_tools(table), import_module("pillarbox.mcp.messages")


def stateless(seconds: int | None = None) -> dict[str, Any]:
    """Return what results have in the version of 2026-07-28 besides: for how long they may be kept, where
    they may."""
    made: dict[str, Any] = {"resultType": "complete", "_meta": STAMP}
    return made if seconds is None else {**made, "ttlMs": seconds * 1000, "cacheScope": "private"}


def _result_of(tool: Tool, answer: bytes, marks: dict[str, Any]) -> Raw | None:
    """Return the result of a call that the API has answered; None where the tool would show too much."""
    shown = wire.encoded(shown_answer(tool, msgspec.json.decode(answer)))
    if len(bytes(shown)) > LARGEST_RESULT:
        return None
    content = [{"type": "text", "text": bytes(shown).decode()}]
    return wire.encoded({"content": content, "structuredContent": shown, "isError": False, **marks})


def _tool_error(text: str, *, is_stateless: bool) -> Raw:
    marks = stateless() if is_stateless else {}
    return wire.encoded({"content": [{"type": "text", "text": text}], "isError": True, **marks})


def refusal_of(cycle: CapturedCycle) -> str:
    """Return what the API says about a refused request, and when to try again."""
    try:
        found = msgspec.json.decode(cycle.answer)
        text = f"{found['message']} (status {cycle.status}, {found['name']})"
    except (msgspec.DecodeError, KeyError, TypeError):
        text = f"The request was refused (status {cycle.status})."
    seconds = cycle.headers.get(b"retry-after")
    return text if seconds is None else f"{text} Try again after {seconds.decode('latin-1')} seconds."


def message_of(body: Any) -> ClientMessage:
    """Return the message of a body; raise NotAMessage for batches, answers and anything else."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str):
        raise NotAMessage
    params = body.get("params")
    if params is not None and not isinstance(params, dict):
        raise NotAMessage
    if "id" not in body:
        return ClientMessage(body["method"], None, params)
    given = body["id"]
    is_text = isinstance(given, str) and len(given) <= LONGEST_ID
    if not is_text and (not isinstance(given, int) or isinstance(given, bool)):
        raise NotAMessage
    return ClientMessage(body["method"], given, params)


def refuse_media(request: Request) -> None:
    """Raise 415 for a body that is not JSON as it is."""
    media = (request.header("content-type") or "").partition(";")[0].strip().lower()
    encoding = (request.header("content-encoding") or "identity").strip().lower()
    if media != JSON or encoding not in ("", "identity"):
        raise UnsupportedBody("The body must be `application/json`, not compressed.")


def header(request: Request, name: bytes) -> str | None:
    """Return a header as text."""
    value = request.raw_header(name)
    return None if value is None else value.decode("latin-1")
