"""The manifest of the SMTP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import SliceManifest
from pillarbox.smtp.settings import SETTINGS

if TYPE_CHECKING:
    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.smtp.plugin import SLICE

    return SLICE


MANIFEST = SliceManifest(
    name="smtp",
    title="SMTP servers",
    plugin=_plugin,
    settings=SETTINGS,
)
