"""The manifest of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.segments.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.segments.commands import group

    return group


MANIFEST = SliceManifest(
    name="segments",
    plugin=_plugin,
    commands={"segments": CommandGroup(_commands, "List the segments of a team.")},
)
