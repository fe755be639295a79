"""The manifest of API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Group, Manifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.api_keys.plugin import SLICE

    return SLICE


def _keys() -> typer.Typer:
    from pillarbox.api_keys.commands import group

    return group


MANIFEST = Manifest(
    name="api_keys",
    plugin=_plugin,
    commands={
        "keys": Group(_keys, "Make, list, suspend, resume and delete API keys."),
    },
)
