"""The manifest of OAuth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Manifest
from pillarbox.oauth.settings import SETTINGS

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.oauth.plugin import SLICE

    return SLICE


MANIFEST = Manifest(name="oauth", plugin=_plugin, settings=SETTINGS)
