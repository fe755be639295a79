"""The manifest of links to unsubscribe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.unsubscribe.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(name="unsubscribe", plugin=_plugin)
