"""`pillarbox contacts`: what is known of a person, and files of all of them."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.contacts.commands.export import Export, export_file
from pillarbox.contacts.commands.importing import ImportArguments, import_file
from pillarbox.contacts.commands.show import show_contact
from pillarbox.kernel.terminal.answers import Json, perform
from pillarbox.kernel.terminal.connect import Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption

group = typer.Typer(
    no_args_is_help=True, help="Show a contact; read contacts from a file and write them to one."
)

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


Source = Annotated[str, typer.Argument(metavar="FILE", help="The CSV file to read.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Which column feeds email, first_name, last_name, unsubscribed or a property (KEY=COLUMN, "
        "KEY:number=COLUMN, KEY:boolean=COLUMN). Again for each; without any, columns named like the fields.",
        show_default=False,
    ),
]
Segments = Annotated[
    list[str] | None,
    typer.Option(
        "--segment", metavar="ID", help="Add all to this segment. Again for more.", show_default=False
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="ID=opt_in|opt_out",
        help="What all choose of this topic. Again for more.",
        show_default=False,
    ),
]
OnConflict = Annotated[
    str,
    typer.Option("--on-conflict", metavar="upsert|skip", help="What becomes of contacts that exist."),
]
Errors = Annotated[
    str | None,
    typer.Option("--errors", metavar="FILE", help="Write rows that failed to this file.", show_default=False),
]


@group.command("import")
def import_contacts(
    file: Source,
    columns: Columns = None,
    segment: Segments = None,
    topic: Topics = None,
    on_conflict: OnConflict = "upsert",
    errors: Errors = None,
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Import the contacts of a CSV file, and wait until it is done; exit status 1 where a row failed."""
    wanted = ImportArguments(
        file=file,
        columns=columns or (),
        segments=segment or (),
        topics=topic or (),
        on_conflict=on_conflict,
        errors=errors,
    )
    perform(lambda connected: import_file(connected, team, wanted), data=data, database_url=database_url)


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
