"""The manifest of templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.templates.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.templates.commands import group

    return group


MANIFEST = SliceManifest(
    name="templates",
    plugin=_plugin,
    commands={
        "templates": CommandGroup(_commands, "List and show templates, and the mail that is made of them.")
    },
)
