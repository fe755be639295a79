"""The manifest of emails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.emails.settings import SETTINGS
from pillarbox.kernel.manifests import CommandGroup, SliceManifest

if TYPE_CHECKING:
    import typer

    from pillarbox.kernel.slices import Slice


def _plugin() -> Slice:
    from pillarbox.emails.plugin import SLICE

    return SLICE


def _emails() -> typer.Typer:
    from pillarbox.emails.commands.emails import group

    return group


def _suppressions() -> typer.Typer:
    from pillarbox.emails.commands.explain import group

    return group


MANIFEST = SliceManifest(
    name="emails",
    title="Emails",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "emails": CommandGroup(_emails, "List emails, and show what became of one."),
        "suppressions": CommandGroup(
            _suppressions, "List, add, remove, import, export and explain suppressed addresses."
        ),
    },
)
