"""The manifest of domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.domains.settings import SETTINGS
from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.domains.plugin import SLICE

    return SLICE


def _domains() -> typer.Typer:
    from pillarbox.domains.commands.domains import group

    return group


MANIFEST = SliceManifest(
    name="domains",
    title="Domains",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "domains": CommandGroup(_domains, "List domains, show what they need, and vouch for them."),
    },
)
