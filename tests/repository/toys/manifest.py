"""The manifest of toys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest

from .settings import SETTINGS, refuse_wrong

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from .plugin import SLICE

    return SLICE


def _toys() -> typer.Typer:
    from .commands import group

    return group


MANIFEST = SliceManifest(
    name="toys",
    title="Toys",
    plugin=_plugin,
    settings=SETTINGS,
    refuse_wrong=refuse_wrong,
    commands={"toys": CommandGroup(_toys, "Count and paint toys.")},
)
