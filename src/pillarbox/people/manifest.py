"""The manifest of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Manifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.people.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="people", plugin=_plugin)
