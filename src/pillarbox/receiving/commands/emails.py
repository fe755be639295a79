"""`pillarbox emails show`: one email, sent or received."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.emails.commands.emails import show_sent
from pillarbox.kernel.terminal.answers import CommandRefused, Json, as_id, perform
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.receiving.commands.received import show_received

group = typer.Typer()

EmailId = Annotated[str, typer.Argument(metavar="ID", help="The email's id.")]


@group.command("show")
def show(email: EmailId, json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Show an email: each recipient's state, every step, what waits and why; or one that was received."""
    perform(lambda connected: show_one(connected, email, json=json), data=data, database_url=database_url)


async def show_one(connected: CommandDatabase, id_text: str, *, json: bool) -> int:
    email_id = as_id(id_text, "an email")
    if await show_sent(connected, email_id, json=json) or await show_received(connected, email_id, json=json):
        return 0
    raise CommandRefused(f"There is no email {email_id}.")
