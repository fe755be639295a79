"""The manifest of contact properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.contact_properties.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(name="contact_properties", plugin=_plugin)
