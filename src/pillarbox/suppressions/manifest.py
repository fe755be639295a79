"""The manifest of suppressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.suppressions.plugin import SLICE

    return SLICE


def _suppressions() -> typer.Typer:
    from pillarbox.suppressions.commands.suppressions import group

    return group


MANIFEST = SliceManifest(
    name="suppressions",
    plugin=_plugin,
    commands={
        "suppressions": CommandGroup(
            _suppressions, "List, add, remove, import, export and explain suppressed addresses."
        ),
    },
)
