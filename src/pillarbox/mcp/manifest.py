"""The manifest of the MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest
from pillarbox.mcp.settings import SETTINGS

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.mcp.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(name="mcp", title="MCP", plugin=_plugin, settings=SETTINGS)
