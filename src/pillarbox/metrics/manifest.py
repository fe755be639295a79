"""The manifest of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest
from pillarbox.metrics.settings import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.metrics.plugin import SLICE

    return SLICE


def _metrics() -> typer.Typer:
    from pillarbox.metrics.commands import group

    return group


MANIFEST = SliceManifest(
    name="metrics",
    title="Metrics",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "metrics": CommandGroup(_metrics, "Show what became of the mail of the last days; count it anew."),
    },
)
