"""The tools with their routes and schemas, made when the first client asks.

Schemas are those of the OpenAPI document, of the same types: input from parameters and body of the
route, output from what it answers, both with the fields of the tool alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pillarbox.kernel.http.idempotency import LONGEST_KEY
from pillarbox.kernel.http.routing import Route, RouteTable
from pillarbox.kernel.http.schemas import REFERENCE, RequiredParameter, Schema, Schemas
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.paging import DEFAULT
from pillarbox.mail.deception.safe_text import safe_line, safe_mailbox
from pillarbox.mcp.tool import Tool
from pillarbox.mcp.tools import ARGUMENTS, TOOLS

IDEMPOTENCY_KEY: Final = "idempotency_key"
LIMIT: Final = "limit"
MAILBOXES: Final = frozenset({"from", "to", "cc", "bcc", "reply_to"})
"""Fields with addresses, or names and addresses."""

DEFINITIONS: Final = "#/$defs/"


class Place(Enum):
    """Where an argument goes in the request."""

    PATH = "path"
    QUERY = "query"
    BODY = "body"
    KEY = "the header Idempotency-Key"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A tool with its route, the place of each argument, what nobody need give, and its schemas."""

    tool: Tool
    route: Route
    places: Mapping[str, Place]
    required: tuple[str, ...]
    defaults: Mapping[str, int]
    input_schema: Schema
    output_schema: Schema

    def is_for(self, caller: Caller) -> bool:
        """Return whether the credential is enough for the route."""
        if caller.inbox_id is not None:
            rights = self.route.inbox_rights
            return rights is not None and rights <= caller.inbox_rights
        if caller.scopes is not None:
            return caller.has(self.route.token_scope)
        return caller.may(self.route.needs)

    def listed(self) -> dict[str, Any]:
        """Return the tool as `tools/list` shows it."""
        tool = self.tool
        return {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": {"title": tool.title, **tool.effect.marks},
        }


def bound_tools(table: RouteTable, tools: Iterable[Tool] = TOOLS) -> dict[str, BoundTool]:
    """Return the tools by name, without those whose route is not served here."""
    routes = {(entry.method, entry.path): entry for entry in table.routes}
    return {
        tool.name: _bound(tool, routes[tool.method, tool.path])
        for tool in tools
        if (tool.method, tool.path) in routes
    }


def _bound(tool: Tool, route: Route) -> BoundTool:
    schemas = Schemas()
    properties: dict[str, Schema] = {}
    places: dict[str, Place] = {}
    required: list[str] = []
    for name in route.parameters:
        properties[name] = _path_schema(route, name, schemas)
        places[name] = Place.PATH
        required.append(name)
    for name in tool.query:
        kind = route.query[name]
        if isinstance(kind, RequiredParameter):
            kind = kind.kind
            required.append(name)
        properties[name] = schemas.request(kind)
        places[name] = Place.QUERY
    if tool.fields:
        body = _resolved(schemas.request(route.body), schemas)
        for name in tool.fields:
            properties[name] = body["properties"][name]
            places[name] = Place.BODY
        required += [name for name in tool.fields if name in body["required"]]
    if route.idempotent:
        properties[IDEMPOTENCY_KEY] = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY}
        places[IDEMPOTENCY_KEY] = Place.KEY
    defaults = {**({LIMIT: DEFAULT} if LIMIT in route.query else {}), **tool.defaults}
    for name in defaults.keys() & properties.keys():
        properties[name] = {**properties[name], "default": defaults[name]}
    described = {name: _described(name, schema) for name, schema in properties.items()}
    wanted: Schema = {"type": "object", "properties": described, "additionalProperties": False}
    if required:
        wanted["required"] = required
    return BoundTool(
        tool=tool,
        route=route,
        places=places,
        required=tuple(required),
        defaults=defaults,
        input_schema=_closed(wanted, schemas),
        output_schema=output_schema(tool, route),
    )


def _path_schema(route: Route, name: str, schemas: Schemas) -> Schema:
    if name in route.path_types:
        return schemas.request(route.path_types[name])
    return {"type": "string", "format": "uuid"} if name in route.uuids else {"type": "string", "minLength": 1}


def _described(name: str, schema: Schema) -> Schema:
    if name in ARGUMENTS and "$ref" not in schema:
        return {"description": ARGUMENTS[name], **schema}
    return schema


def output_schema(tool: Tool, route: Route) -> Schema:
    """Return the schema of what the tool gives: of the answer of its route, with the fields that it shows."""
    schemas = Schemas()
    answer = _resolved(schemas.answer(route.reply), schemas)
    if tool.shown and _is_list(answer):
        item = _resolved(answer["properties"]["data"]["items"], schemas)
        items = {**answer["properties"]["data"], "items": _chosen(item, tool)}
        answer = {**answer, "properties": {**answer["properties"], "data": items}}
    elif tool.shown:
        answer = _chosen(answer, tool)
    return _closed(answer, schemas)


def _is_list(answer: Schema) -> bool:
    is_array: bool = answer.get("properties", {}).get("data", {}).get("type") == "array"
    return is_array


def _chosen(schema: Schema, tool: Tool) -> Schema:
    """Return the schema of an object with the fields that the tool shows."""
    properties = {name: shown for name, shown in schema["properties"].items() if name in tool.shown}
    if missing := set(tool.shown) - properties.keys():
        raise ValueError(f"{tool.name} shows {missing.pop()}, which {tool.path} does not answer")
    return {
        **schema,
        "properties": properties,
        "required": [name for name in schema["required"] if name in properties],
    }


def _resolved(schema: Schema, schemas: Schemas) -> Schema:
    while "$ref" in schema:
        schema = schemas.components[schema["$ref"].removeprefix(REFERENCE)]
    return schema


def _closed(schema: Schema, schemas: Schemas) -> Schema:
    """Return the schema with all that it refers to inside it."""
    names: dict[str, Schema] = {}
    shown = _moved(schema, names, schemas)
    return {**shown, "$defs": names} if names else shown


def _moved(value: Any, names: dict[str, Schema], schemas: Schemas) -> Any:
    if isinstance(value, list):
        return [_moved(one, names, schemas) for one in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(REFERENCE)
        if name not in names:
            names[name] = {}
            names[name] = _moved(schemas.components[name], names, schemas)
        return {**value, "$ref": DEFINITIONS + name}
    return {key: _moved(one, names, schemas) for key, one in value.items()}


def shown_answer(tool: Tool, answer: Any) -> Any:
    """Return what the tool shows of an answer: its fields, long texts cut, and in safe lines what strangers
    wrote."""
    if not tool.shown and not tool.cut and not tool.lines:
        return answer
    if isinstance(answer, dict) and isinstance(answer.get("data"), list):
        return {**answer, "data": [_shown(tool, item) for item in answer["data"]]}
    return _shown(tool, answer)


def _shown(tool: Tool, item: dict[str, Any]) -> dict[str, Any]:
    found = {name: item[name] for name in tool.shown if name in item} if tool.shown else dict(item)
    for name, most in tool.cut.items():
        text = found.get(name)
        if isinstance(text, str) and len(text) > most:
            found[name] = text[: most - 1] + "…"
    return {name: _in_lines(tool.lines, name, value) for name, value in found.items()}


def _in_lines(lines: frozenset[str], name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {inner: _in_lines(lines, inner, one) for inner, one in value.items()}
    if isinstance(value, list):
        return [_in_lines(lines, name, one) for one in value]
    if name not in lines or not isinstance(value, str):
        return value
    return safe_mailbox(value) if name in MAILBOXES else safe_line(value)
