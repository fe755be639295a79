"""The manifest of tracking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest
from pillarbox.tracking.settings import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.tracking.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.tracking.commands import group

    return group


MANIFEST = SliceManifest(
    name="tracking",
    title="Tracking",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "tracking": CommandGroup(_commands, "Look into tracked links, and at the machines that follow them.")
    },
)
