"""Shapes of MCP messages, which are JSON-RPC 2.0 (mcp.md 2)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.kernel.http.schemas import AnObject, shown_as

Id = Annotated[Any, Meta(extra_json_schema={"type": ["string", "integer"]})]
AnswerId = Annotated[Any, Meta(extra_json_schema={"type": ["string", "integer", "null"]})]
Encoded = Annotated[Raw, shown_as(AnObject)]


class McpMessage(Struct, kw_only=True):
    """A request, or without `id` a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: Id | None = None
    params: AnObject | None = None


class McpError(Struct, kw_only=True):
    code: int
    message: str
    data: AnObject | UnsetType = UNSET


class McpFailure(Struct, kw_only=True):
    """The answer where there is no result."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: AnswerId
    error: McpError


class McpAnswer(Struct, kw_only=True):
    """The result of a method, or its error."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: AnswerId
    result: Encoded | UnsetType = UNSET
    error: McpError | UnsetType = UNSET


def encoded(value: object) -> Raw:
    """Return a result as it is written."""
    return Raw(msgspec.json.encode(value))
