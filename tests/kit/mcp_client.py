"""The official Python client of MCP, and messages as they go over the wire.

async with mcp_client(team, STATELESS) as client:
    tools = await client.list_tools()
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from kit.world import Team

STATELESS: Final = "2026-07-28"
AUTO: Final = "auto"
"""The mode in which the client asks `server/discover` first."""

HANDSHAKE: Final = "legacy"
"""The mode in which the client begins with `initialize`; the version is 2025-11-25."""

META: Final = "io.modelcontextprotocol/"


@asynccontextmanager
async def mcp_client(team: Team, mode: str) -> AsyncIterator[Client]:
    """Yield the client, connected to the server of the team's world with its key."""
    headers = {"authorization": f"Bearer {team.token}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http:
        transport = streamable_http_client(f"{team.world.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:  # type: ignore[arg-type]
            yield client


def message(method: str, params: dict[str, Any] | None = None, *, id: Any = 1) -> dict[str, Any]:
    """Return a request of the versions with a handshake."""
    made: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    return made if params is None else {**made, "params": params}


async def posted(team: Team, body: Any, **headers: str) -> httpx.Response:
    """Return the answer to a body, of a client that names no version."""
    return await team.post("/mcp", body, **headers)


async def used(team: Team, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the result of a tool."""
    answer = await posted(team, message("tools/call", {"name": tool, "arguments": arguments}))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert "error" not in found, found
    return dict(found["result"])


async def stateless(
    team: Team, method: str, params: dict[str, Any] | None = None, **changed: str
) -> httpx.Response:
    """Return the answer in the version of 2026-07-28; `changed` are headers in place of the right ones."""
    meta = {f"{META}protocolVersion": STATELESS, f"{META}clientCapabilities": {}}
    headers = {"mcp_protocol_version": STATELESS, "mcp_method": method}
    if params and "name" in params:
        headers["mcp_name"] = params["name"]
    return await posted(team, message(method, {**(params or {}), "_meta": meta}), **{**headers, **changed})
