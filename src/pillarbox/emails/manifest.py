"""The manifest of emails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.emails.settings import SETTINGS
from pillarbox.kernel.manifests import Group, Manifest

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


MANIFEST = Manifest(
    name="emails",
    title="Emails",
    plugin=_plugin,
    settings=SETTINGS,
    commands={
        "emails": Group(_emails, "List emails, and show what became of one."),
        "suppressions": Group(
            _suppressions, "List, add, remove, import, export and explain suppressed addresses."
        ),
    },
)
