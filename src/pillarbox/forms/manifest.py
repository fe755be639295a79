"""The manifest of sign-up forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.forms.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(name="forms", plugin=_plugin)
