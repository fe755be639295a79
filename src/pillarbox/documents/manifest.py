"""The manifest of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.documents.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(name="documents", plugin=_plugin)
