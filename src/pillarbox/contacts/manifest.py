"""The manifest of contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.contacts.plugin import SLICE

    return SLICE


def _contacts() -> typer.Typer:
    from pillarbox.contacts.commands.contacts import group

    return group


def _templates() -> typer.Typer:
    from pillarbox.contacts.commands.render_template import group

    return group


MANIFEST = SliceManifest(
    name="contacts",
    plugin=_plugin,
    commands={
        "contacts": CommandGroup(
            _contacts, "Show a contact; read contacts from a file and write them to one."
        ),
        "templates": CommandGroup(_templates),
    },
)
