"""The manifest of links to unsubscribe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.unsubscribe.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="unsubscribe", plugin=_plugin)
