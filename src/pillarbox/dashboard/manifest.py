"""The manifest of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.dashboard.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(
    name="dashboard",
    plugin=_plugin,
)
