"""The manifest of claims of domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.domains.claims.settings import SETTINGS
from pillarbox.kernel.manifests import SliceManifest

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.domains.claims.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(
    name="claims",
    title="Claims of domains",
    plugin=_plugin,
    settings=SETTINGS,
)
