"""The manifest of personal data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.personal_data.plugin import SLICE

    return SLICE


def _contacts() -> typer.Typer:
    from pillarbox.personal_data.commands.people import group

    return group


MANIFEST = SliceManifest(
    name="personal_data",
    plugin=_plugin,
    commands={"contacts": CommandGroup(_contacts)},
)
