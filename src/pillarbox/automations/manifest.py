"""The manifest of automations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.automations.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="automations", plugin=_plugin)
