"""HTTP routes of the MCP server (mcp.md)."""

from __future__ import annotations

from typing import Final

import msgspec

from pillarbox.kernel.http.request import Failures, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mcp import wire
from pillarbox.mcp.codes import INVALID_REQUEST, PARSE_ERROR, REFUSED, NotAMessage
from pillarbox.mcp.server import PATH, McpServer
from pillarbox.oauth.authorization import Authorization
from pillarbox.oauth.wire import ResourceMetadata, resource_metadata

LARGEST: Final = 1024 * 1024
JSON: Final = "application/json"
PUBLISHED: Final = {"cache-control": "public, max-age=300"}


def _failure(problem: Problem) -> Reply:
    """Return a problem as JSON-RPC shows it."""
    code = REFUSED
    if problem.status == 400:
        code = INVALID_REQUEST if isinstance(problem, NotAMessage) else PARSE_ERROR
    shown = wire.McpFailure(id=None, error=wire.McpError(code=code, message=problem.message))
    return Reply(msgspec.json.encode(shown), problem.status, problem.headers, JSON)


FAILURES: Final = Failures("Mcp", wire.McpFailure, _failure)


@route(
    "POST",
    PATH,
    needs=Access.PUBLIC,
    multipart=True,
    media=JSON,
    body=wire.McpMessage,
    limit=LARGEST,
    also=(202,),
    problems=(400, 401, 403, 404, 429, 451),
    failures=FAILURES,
    summary="Use the API by tools of the Model Context Protocol",
)
async def speak(request: Request) -> Reply[wire.McpAnswer]:
    return await request.use(McpServer).answer(request)


@route(
    "GET",
    "/.well-known/oauth-protected-resource/mcp",
    needs=Access.PUBLIC,
    shared=True,
    summary="Describe the MCP server as a resource (RFC 9728)",
)
async def mcp_metadata(request: Request) -> Reply[ResourceMetadata]:
    shown = resource_metadata(request.use(Authorization).issuer, PATH)
    return Reply(shown, headers=PUBLISHED, media=JSON)
