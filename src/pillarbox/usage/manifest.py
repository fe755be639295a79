"""The manifest of usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.usage.plugin import SLICE

    return SLICE


def _teams() -> typer.Typer:
    from pillarbox.usage.commands import group

    return group


MANIFEST = SliceManifest(
    name="usage",
    plugin=_plugin,
    commands={
        "teams": CommandGroup(_teams),
    },
)
