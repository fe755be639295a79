"""The slice of the MCP server."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.security.authentication import (
    AccessTokens,
    Authenticator,
    Challenges,
    CredentialLookup,
    NoAccessTokens,
)
from pillarbox.kernel.slices import Container, Slice
from pillarbox.mcp import routes
from pillarbox.mcp.server import PATH, McpServer
from pillarbox.mcp.settings import MCP


def _server(kit: Container) -> McpServer | None:
    if not kit.settings[MCP]:
        return None
    url = kit.settings.public_url
    challenges = Challenges(url, PATH)
    authenticator = Authenticator(
        kit.need(CredentialLookup),  # type: ignore[type-abstract]
        kit.find(AccessTokens) or NoAccessTokens(),  # type: ignore[type-abstract]
        challenges,
    )
    return McpServer(url, authenticator, challenges)


SLICE = Slice(
    name="mcp",
    provides={McpServer: _server},
    closed_routes=collect(routes),
    opens=lambda settings: settings[MCP],
)
