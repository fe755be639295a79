"""The manifest of automations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.automations.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.automations.commands.simulate import group

    return group


MANIFEST = SliceManifest(
    name="automations",
    plugin=_plugin,
    commands={
        "automations": CommandGroup(_commands, "Look at automations and their runs, and simulate one.")
    },
)
