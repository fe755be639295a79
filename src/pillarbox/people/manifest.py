"""The manifest of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest
from pillarbox.people.settings import SETTINGS, refuse_wrong

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.people.plugin import SLICE

    return SLICE


def _people() -> typer.Typer:
    from pillarbox.people.commands.people import group

    return group


MANIFEST = SliceManifest(
    name="people",
    title="People",
    plugin=_plugin,
    settings=SETTINGS,
    refuse_wrong=refuse_wrong,
    commands={
        "people": CommandGroup(_people, "Make and list people who log in, help them back in, shut them out.")
    },
)
