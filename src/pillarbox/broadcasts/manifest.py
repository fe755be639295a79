"""The manifest of broadcasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.broadcasts.settings import SETTINGS
from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.broadcasts.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.broadcasts.commands.preview import group

    return group


MANIFEST = SliceManifest(
    name="broadcasts",
    title="Broadcasts",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "broadcasts": CommandGroup(
            _commands, "Look at broadcasts, preview, send, cancel, pause and resume them."
        )
    },
)
