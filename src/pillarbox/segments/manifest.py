"""The manifest of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.segments.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="segments", plugin=_plugin)
