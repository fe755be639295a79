"""The settings of the MCP server."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

MCP = Setting(
    name="mcp",
    parse=kinds.switch,
    shape="BOOL",
    default="true",
    meaning="Whether `/mcp` serves tools for models (Model Context Protocol).",
)

SETTINGS: tuple[Setting[Any], ...] = (MCP,)
