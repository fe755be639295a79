"""The manifest of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.events.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="events", plugin=_plugin)
