"""The OpenAPI 3.1 document of the route table, and the endpoint that serves it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from pillarbox import __version__
from pillarbox.kernel.auth import Access
from pillarbox.kernel.http import Reply, Request
from pillarbox.kernel.rendering import ErrorBody
from pillarbox.kernel.routing import Intake, Route, RouteTable, route

REFERENCE = "#/components/schemas/{name}"
ERROR = {"$ref": "#/components/schemas/Error"}
PAGING = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "after": {"type": "string", "format": "uuid"},
    "before": {"type": "string", "format": "uuid"},
}
ERRORS = {
    "400": "The body is not JSON, or a header is malformed.",
    "401": "No credential, or one that may not call this endpoint.",
    "403": "A credential that is not valid, or something that it may not do.",
    "404": "The resource does not exist.",
    "409": "The state of the resource forbids it.",
    "413": "The body is too large.",
    "415": "The content type or encoding is not supported.",
    "422": "A field or parameter is missing or invalid.",
    "429": "Too many requests.",
    "500": "An unexpected failure.",
    "503": "The service is not available right now.",
}
PUBLIC_ERRORS = ("404", "500", "503")


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole document; its schemas are those of the types that the routes name."""
    listed = list(routes)
    shown = {id(kind): kind for entry in listed for kind in (entry.body, entry.reply) if kind is not None}
    kinds = [*shown.values(), ErrorBody]
    references, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    components["Error"] = components.pop("ErrorBody")
    schema_of = dict(zip((id(kind) for kind in kinds), references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for entry in listed:
        for path in (entry.path, *entry.aliases):
            paths.setdefault(path, {})[entry.method.lower()] = _operation(entry, path, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pillarbox", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _operation(entry: Route, path: str, schema_of: dict[int, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": _operation_id(entry.method, path),
        "summary": entry.summary,
        "tags": [entry.path.split("/")[1] or "root"],
        "responses": _responses(entry, schema_of),
    }
    if entry.needs is Access.PUBLIC:
        made["security"] = []
    else:
        made["x-access"] = entry.needs.value
    if parameters := _parameters(entry):
        made["parameters"] = parameters
    if entry.body is not None:
        media = "multipart/form-data" if entry.intake is Intake.RAW else "application/json"
        made["requestBody"] = {"content": {media: {"schema": schema_of[id(entry.body)]}}}
    return made


def _operation_id(method: str, path: str) -> str:
    return "_".join([method.lower(), *re.findall(r"[A-Za-z0-9_]+", path)])


def _parameters(entry: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "format": "uuid"} if name in entry.uuids else {"type": "string"},
        }
        for name in entry.parameters
    ]
    found += [
        {"name": name, "in": "query", "required": False, "schema": PAGING.get(name, {"type": "string"})}
        for name in entry.query
    ]
    if entry.idempotent:
        schema = {"type": "string", "minLength": 1, "maxLength": 256}
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema})
    return found


def _responses(entry: Route, schema_of: dict[int, Any]) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "Done"}
    if entry.reply is not None:
        done["content"] = {"application/json": {"schema": schema_of[id(entry.reply)]}}
    made: dict[str, Any] = {str(entry.status): done}
    for status, meaning in ERRORS.items():
        if entry.needs is not Access.PUBLIC or status in PUBLIC_ERRORS:
            made[status] = {"description": meaning, "content": {"application/json": {"schema": ERROR}}}
    return made


@route("GET", "/openapi.json", needs=Access.PUBLIC, summary="This document")
async def openapi(request: Request) -> Reply:
    return Reply(document(request.use(RouteTable).routes))
