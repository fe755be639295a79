"""The manifest of webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest
from pillarbox.webhooks.settings import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.webhooks.plugin import SLICE

    return SLICE


def _webhooks() -> typer.Typer:
    from pillarbox.webhooks.commands import group

    return group


MANIFEST = SliceManifest(
    name="webhooks",
    title="Webhooks",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "webhooks": CommandGroup(_webhooks, "Watch events, forward them to a program here, try one out."),
    },
)
