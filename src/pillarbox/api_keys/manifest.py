"""The manifest of API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.api_keys.plugin import SLICE

    return SLICE


def _keys() -> typer.Typer:
    from pillarbox.api_keys.commands import group

    return group


MANIFEST = SliceManifest(
    name="api_keys",
    plugin=_plugin,
    commands={
        "keys": CommandGroup(_keys, "Make, list, keep, suspend, resume and delete API keys."),
    },
)
