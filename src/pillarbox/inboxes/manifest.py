"""The manifest of inboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.inboxes.settings import SETTINGS
from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.inboxes.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="inboxes", plugin=_plugin, settings=SETTINGS)
