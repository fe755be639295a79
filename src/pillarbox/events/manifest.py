"""The manifest of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.events.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.events.commands import group

    return group


MANIFEST = SliceManifest(
    name="events",
    plugin=_plugin,
    commands={"events": CommandGroup(_commands, "List the events of a team, and send one.")},
)
