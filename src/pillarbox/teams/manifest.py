"""The manifest of teams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest
from pillarbox.teams.settings import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.teams.plugin import SLICE

    return SLICE


def _teams() -> typer.Typer:
    from pillarbox.teams.commands.teams import group

    return group


MANIFEST = SliceManifest(
    name="teams",
    title="Teams",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "teams": CommandGroup(_teams, "Make, list and show teams, set their limits, block them."),
    },
)
