"""`pillarbox settings`: every setting with its value and where it came from."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.kernel.settings.shown_settings import DEFAULT, ShownSetting, shown_settings
from pillarbox.kernel.terminal.answers import Json, perform, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.program import running_program

Changed = Annotated[bool, typer.Option("--changed", help="Only those that are not the default.")]


def command(
    changed: Changed = False, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Show every setting with its value and where it came from. Secrets are hidden.

    Where a server runs on the data folder its settings are shown, else those that this command was given.
    """
    perform(
        lambda connected: show(connected, changed=changed, json=json), data=data, database_url=database_url
    )


async def show(connected: CommandDatabase, *, changed: bool, json: bool) -> int:
    rows = shown_settings(connected.settings, running_program().manifests)
    if changed:
        rows = [row for row in rows if row.origin != DEFAULT]
    if json:
        show_json({"object": "list", "data": [shape(row) for row in rows]})
        return 0
    show_table(("Setting", "Value", "From"), [(row.flag, row.value, row.origin) for row in rows])
    return 0


def shape(row: ShownSetting) -> dict[str, object]:
    """Return a setting as JSON."""
    return {"flag": row.flag, "env": row.env, "value": row.value, "origin": row.origin}
