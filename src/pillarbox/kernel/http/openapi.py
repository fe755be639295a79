"""The OpenAPI 3.1 document of the route table, and the endpoint that serves it.

Everything in it is made from what the program uses: answers from the types that the handlers return, bodies
from the types that are parsed, parameters and statuses from the route table.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, get_origin

import msgspec

from pillarbox import __version__
from pillarbox.kernel.http import response_headers
from pillarbox.kernel.http.idempotency import LONGEST_KEY
from pillarbox.kernel.http.rendering import ErrorBody
from pillarbox.kernel.http.request import Html, OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import WRITES, BodyMode, Route, RouteTable, names_among_words, route
from pillarbox.kernel.http.schemas import RequiredParameter, Schema, Schemas, may_be_left_out
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.security.authentication import Access
from pillarbox.kernel.wire.instants import IsoTime

Document = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object", "additionalProperties": True})]

JSON: Final = "application/json"
HTML: Final = "text/html"

ERRORS: Final = {
    400: "The body is not JSON, or a header is malformed.",
    401: "No credential, or one that may not call this endpoint.",
    403: "A credential that is not valid, or something that it may not do.",
    404: "The resource does not exist.",
    408: "The body was not complete in time.",
    409: "The state of the resource forbids it, or another request is changing it.",
    410: "It is over.",
    413: "The body is too large.",
    415: "The content type or encoding is not supported.",
    416: "The range cannot be had.",
    422: "A field or parameter is missing or invalid.",
    429: "Too many requests, or a quota is used up.",
    451: "Refused for security.",
    500: "An unexpected failure.",
    503: "The service is not available right now.",
}
EVERYWHERE: Final = frozenset({408, 413, 415, 500, 503})
AUTHENTICATED: Final = frozenset({401, 403, 429, 451})

SUCCESS: Final = {
    200: "Done",
    201: "Created",
    202: "Accepted",
    206: "The part that was asked for",
    302: "Go there",
    303: "Go there",
    304: "What the client has is still so",
}
WITHOUT_CONTENT: Final = frozenset({304})

IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[ -~]*$"},
}
WEBHOOK_HEADERS: Final = {
    "webhook-id": "The id of the event, the same at every attempt.",
    "webhook-timestamp": "Seconds since 1970, of this attempt.",
    "webhook-signature": "`v1,` and the base64 of HMAC-SHA256 of `id.timestamp.body`; several with spaces.",
}


class ApiDocument:
    """Makes the document of a route table, once. `url` is the address of the API; `events` has the types of
    the data that webhooks carry, by the kind of event."""

    def __init__(self, url: str = "/", events: Mapping[str, Any] | None = None) -> None:
        self._url = url
        self._events = events or {}
        self._made: tuple[RouteTable, bytes] | None = None
        self._making = asyncio.Lock()

    def encoded(self, table: RouteTable) -> bytes:
        """Return the document of these routes."""
        if self._made is None or self._made[0] is not table:
            found = document(table.routes, self._url, self._events)
            self._made = (table, msgspec.json.encode(found))
        return self._made[1]

    async def ready(self, table: RouteTable) -> bytes:
        """Return the document, made in a thread where nobody has asked for it yet."""
        if self._made is not None and self._made[0] is table:
            return self._made[1]
        async with self._making:
            return await in_thread(self.encoded, table)


def document(
    routes: Iterable[Route], url: str = "/", events: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the whole document; its schemas are those of the types that the routes name."""
    parts = _Parts(Schemas())
    paths, webhooks = parts.of(list(routes), events or {})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pillarbox", "version": __version__, "license": {"name": "Apache-2.0"}},
        "servers": [{"url": url}],
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": parts.schemas.components,
            "responses": parts.responses,
            "headers": response_headers.ALL,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


class _Parts:
    """The components that operations share: each is written once and referred to."""

    def __init__(self, schemas: Schemas) -> None:
        self.schemas = schemas
        self.responses: dict[str, Any] = {}
        schemas.answer(ErrorBody)
        schemas.components["Error"] = schemas.components.pop("ErrorBody")

    def of(self, routes: Sequence[Route], events: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the paths and the webhooks."""
        paths: dict[str, dict[str, Any]] = {}
        for entry in routes:
            for path in (entry.path, *entry.aliases):
                paths.setdefault(path, {})[entry.method.lower()] = self._operation(entry, path)
        for path, entry in names_among_words(routes):
            paths[path].setdefault(entry.method.lower(), self._operation(entry, path))
        webhooks = {kind: {"post": _webhook(kind, data, self.schemas)} for kind, data in events.items()}
        return paths, webhooks

    def _operation(self, entry: Route, path: str) -> dict[str, Any]:
        made: dict[str, Any] = {
            "operationId": operation_id(entry.method, path),
            "summary": entry.summary,
            "tags": [entry.path.split("/")[1] or "root"],
            "responses": _successes(entry, self.schemas)
            | {str(status): self._failure(entry, status) for status in statuses_of(entry)},
        }
        if entry.needs is Access.PUBLIC:
            made["security"] = []
        else:
            made["x-access"] = entry.needs.value
            made["x-scope"] = entry.token_scope.value
        if parameters := _parameters(entry, path, self.schemas):
            made["parameters"] = parameters
        if entry.body is not None:
            schema = self.schemas.request(entry.body)
            content = {media: {"schema": schema} for media in (entry.media, *entry.also_media)}
            made["requestBody"] = {"required": not may_be_left_out(entry.body), "content": content}
        return made

    def _failure(self, entry: Route, status: int) -> dict[str, Any]:
        kind = "Page" if status in entry.pages else "Public" if entry.needs is Access.PUBLIC else ""
        content: dict[str, Any] = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
        if entry.failures is not None:
            kind = f"{entry.failures.name}{kind}"
            content = {JSON: {"schema": self.schemas.answer(entry.failures.body)}}
        if status in entry.pages:
            content[HTML] = {"schema": {"type": "string"}}
        self.responses[f"{kind}Error{status}"] = {
            "description": ERRORS[status],
            "headers": response_headers.of(entry, status),
            "content": content,
        }
        return {"$ref": f"#/components/responses/{kind}Error{status}"}


def operation_id(method: str, path: str) -> str:
    """Return the id of an operation in the document."""
    return "_".join([method.lower(), *re.findall(r"[A-Za-z0-9_]+", path)])


def _parameters(entry: Route, path: str, schemas: Schemas) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(entry, name, schemas)}
        for name in entry.parameters
        if f"{{{name}}}" in path
    ]
    found += [_query_parameter(name, kind, schemas) for name, kind in entry.query.items()]
    found += [
        {"name": name, "in": "header", "required": False, "schema": schemas.request(kind)}
        for name, kind in entry.headers.items()
    ]
    return [*found, IDEMPOTENCY_KEY] if entry.idempotent else found


def _query_parameter(name: str, kind: Any, schemas: Schemas) -> dict[str, Any]:
    """Return the parameter as the document describes it. An empty value is as none, but for numbers and words
    that are read as such (conventions section 2)."""
    is_needed = isinstance(kind, RequiredParameter)
    own = kind.kind if isinstance(kind, RequiredParameter) else kind
    schema = schemas.request(own)
    shown = {"name": name, "in": "query", "required": is_needed, "schema": schema}
    if is_needed or schema.get("type") == "integer" or get_origin(own) is Literal:
        return shown
    return {**shown, "allowEmptyValue": True}


def _path_schema(entry: Route, name: str, schemas: Schemas) -> Schema:
    if name in entry.path_types:
        return schemas.request(entry.path_types[name])
    return {"type": "string", "format": "uuid"} if name in entry.uuids else {"type": "string", "minLength": 1}


# Answers ------------------------------------------------------------------------------------------


def _successes(entry: Route, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any]
    if entry.reply is Html:
        content = {HTML: {"schema": {"type": "string"}}}
    elif entry.reply is OctetsAnswer:
        content = {"*/*": {}}
    else:
        content = {JSON: {"schema": schemas.answer(entry.reply)}}
    return {
        str(status): {
            "description": SUCCESS[status],
            "headers": response_headers.of(entry, status),
            "content": _content(status, content),
        }
        for status in (entry.status, *entry.also)
    }


def _content(status: int, content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of an answer with this status, where the route's own is `content`."""
    if status in WITHOUT_CONTENT:
        return {}
    return {HTML: {}} if status in (302, 303) else content


def statuses_of(entry: Route) -> list[int]:
    """Return the statuses of the errors that a route can answer with."""
    found = {*EVERYWHERE, *entry.problems, *entry.pages}
    if entry.needs is not Access.PUBLIC:
        found |= AUTHENTICATED
    if entry.method in WRITES and entry.needs is not Access.PUBLIC:
        found.add(409)
    if entry.takes_body and entry.intake is not BodyMode.RAW:
        found |= {400, 422}
    if entry.needs is not Access.PUBLIC and (entry.parameters or entry.query):
        found |= {404, 422} if entry.parameters else {422}
    return sorted(found)


# Webhooks -----------------------------------------------------------------------------------------


def _webhook(kind: str, data: Any, schemas: Schemas) -> dict[str, Any]:
    """Return the description of one webhook as a receiver gets it (webhooks.md sections 3 and 7)."""
    shown = {"type": {"type": "string", "enum": [kind]}, "created_at": schemas.answer(IsoTime)}
    shown["data"] = schemas.answer(data)
    body = {"type": "object", "properties": shown, "required": [*shown], "additionalProperties": False}
    return {
        "operationId": "_".join(["webhook", *re.findall(r"[a-z]+", kind)]),
        "summary": kind,
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": text,
                "schema": {"type": "string"},
            }
            for name, text in WEBHOOK_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": {"2XX": {"description": "Taken. Every other answer is tried again."}},
    }


@route("GET", "/openapi.json", needs=Access.PUBLIC, summary="This document")
async def openapi(request: Request) -> Reply[Document]:
    made = request.services.find(ApiDocument) or ApiDocument()
    return Reply(await made.ready(request.use(RouteTable)))
