"""The manifest of capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.capture.settings import SETTINGS
from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.capture.plugin import SLICE

    return SLICE


MANIFEST = Manifest(
    name="capture",
    title="Capture",
    plugin=_plugin,
    settings=SETTINGS,
)
