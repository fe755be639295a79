"""The manifest of delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.delivery.settings import SETTINGS
from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.delivery.plugin import SLICE

    return SLICE


def _queue() -> typer.Typer:
    from pillarbox.delivery.commands.queue import group

    return group


MANIFEST = SliceManifest(
    name="delivery",
    title="Delivery",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "queue": CommandGroup(
            _queue, "Show what waits to be delivered and why; retry it now, hold it back, drop it."
        )
    },
)
