"""The manifest of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pillarbox.kernel.manifests import Command, CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.kernel.plugin import SLICE

    return SLICE


def _maintenance() -> typer.Typer:
    from pillarbox.kernel.terminal.maintenance import group

    return group


def _keyring() -> typer.Typer:
    from pillarbox.kernel.terminal.keyring import group

    return group


def _settings() -> Callable[..., None]:
    from pillarbox.kernel.terminal.settings import command

    return command


MANIFEST = SliceManifest(
    name="kernel",
    plugin=_plugin,
    commands={
        "settings": Command("Show every setting with its value and where it came from.", _settings),
        "keyring": CommandGroup(_keyring, "See which keys the database needs, and rotate the key ring."),
        "maintenance": CommandGroup(_maintenance, "Put API and SMTP clients off, and let them in again."),
    },
)
