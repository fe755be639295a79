"""The manifest of receiving."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Command, CommandGroup, SliceManifest
from pillarbox.receiving.settings import SETTINGS

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.receiving.plugin import SLICE

    return SLICE


def _inbound() -> Callable[..., None]:
    from pillarbox.receiving.commands.inbound import command

    return command


def _emails() -> typer.Typer:
    from pillarbox.receiving.commands.emails import group

    return group


MANIFEST = SliceManifest(
    name="receiving",
    title="Receiving",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "inbound": Command("Receive the message on standard input.", _inbound),
        "emails": CommandGroup(_emails),
    },
)
