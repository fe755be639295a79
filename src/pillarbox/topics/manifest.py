"""The manifest of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Group, Manifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.topics.plugin import SLICE

    return SLICE


def _commands() -> typer.Typer:
    from pillarbox.topics.commands import group

    return group


MANIFEST = Manifest(
    name="topics",
    plugin=_plugin,
    commands={"topics": Group(_commands, "List the topics of a team.")},
)
