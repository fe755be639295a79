"""The manifest of OAuth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import CommandGroup, SliceManifest
from pillarbox.oauth.settings import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.oauth.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.oauth.commands import group

    return group


MANIFEST = SliceManifest(
    name="oauth",
    title="OAuth",
    plugin=_plugin,
    settings=SETTINGS,
    commands={"oauth": CommandGroup(_commands, "Look at programs that act for people, and disable them.")},
)
