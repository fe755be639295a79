"""The manifest of capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.capture.settings import SETTINGS
from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.capture.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(
    name="capture",
    title="Capture",
    plugin=_plugin,
    settings=SETTINGS,
)
