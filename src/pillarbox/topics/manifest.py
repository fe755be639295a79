"""The manifest of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.topics.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.topics.commands import group

    return group


MANIFEST = SliceManifest(
    name="topics",
    plugin=_plugin,
    commands={"topics": CommandGroup(_commands, "List the topics of a team.")},
)
