"""The manifest of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Group, Manifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.segments.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.segments.commands import group

    return group


MANIFEST = Manifest(
    name="segments",
    plugin=_plugin,
    commands={"segments": Group(_commands, "List the segments of a team.")},
)
