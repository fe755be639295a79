"""`pillarbox contacts`: what is known of a person, and files of all of them."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.contacts.commands.export import Export, export_file
from pillarbox.contacts.commands.show import show_contact
from pillarbox.kernel.terminal.answers import Json, perform
from pillarbox.kernel.terminal.connect import Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption

group = typer.Typer(no_args_is_help=True, help="Show a contact, and write contacts to a file.")

Named = Annotated[str, typer.Argument(metavar="ADDRESS", help="The contact's address, or its id.")]
Target = Annotated[str, typer.Argument(metavar="FILE", help="The file to write, or - for standard output.")]
SegmentOption = Annotated[
    str | None,
    typer.Option("--segment", metavar="ID", help="Only contacts of this segment.", show_default=False),
]
AsTheyAre = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="Write cells as they are, for programs; else an apostrophe stands before what a spreadsheet "
        "would take for a formula.",
    ),
]


@group.command("show")
def show(
    named: Named,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show a contact with all that decides whether it gets mail, and the last mails to it."""
    perform(
        lambda connected: show_contact(connected, team, named, json=json),
        data=data,
        database_url=database_url,
    )


@group.command("export")
def export(
    file: Target,
    team: TeamOption = None,
    segment: SegmentOption = None,
    plain: AsTheyAre = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the contacts of a team to a CSV file, the oldest first, with a column for each property."""
    wanted = Export(file, segment, is_plain=plain)
    perform(lambda connected: export_file(connected, team, wanted), data=data, database_url=database_url)
