"""The manifest of inboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.inboxes.settings import SETTINGS
from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.inboxes.plugin import SLICE

    return SLICE


def _inboxes() -> typer.Typer:
    from pillarbox.inboxes.commands.threads import group

    return group


MANIFEST = SliceManifest(
    name="inboxes",
    title="Inboxes",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "inboxes": CommandGroup(_inboxes, "List and create inboxes, read their threads and answer them.")
    },
)
