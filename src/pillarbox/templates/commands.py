"""`pillarbox templates`: which templates a team has, and what is in them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    counted,
    instant,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption, one_team
from pillarbox.templates import overview_queries, queries, wire
from pillarbox.templates.changes import named
from pillarbox.templates.queries import Template

group = typer.Typer(no_args_is_help=True, help="List and show templates, and the mail that is made of them.")

TemplateName = Annotated[str, typer.Argument(metavar="TEMPLATE", help="The template's alias, or its id.")]


@group.command("list")
def show_all(
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the templates of a team, the newest first."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


@group.command("show")
def show_one(
    template: TemplateName,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show the newest content of a template, and what its variables are."""
    perform(
        lambda connected: shown(connected, team, template, json=json), data=data, database_url=database_url
    )


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them."""
    owner = await one_team(connected, team)
    found = await overview_queries.every(TeamDb(connected.pool, owner.id))
    if json:
        show_json({"object": "list", "data": [msgspec.structs.asdict(one) for one in found]})
    elif found:
        show_table(
            ("Id", "Alias", "Name", "Status", "Draft", "Changed"),
            [
                (
                    one.id,
                    one.alias or "",
                    one.name,
                    one.status,
                    "newer" if one.has_draft and one.status == "published" else "",
                    one.updated_at,
                )
                for one in found
            ],
        )
    else:
        say(f"The team {owner.name!r} has no templates.")
    return 0


async def shown(connected: CommandDatabase, team: str | None, template: str, *, json: bool) -> int:
    """Print it."""
    owner = await one_team(connected, team)
    found = await queries.get(TeamDb(connected.pool, owner.id), named(template))
    if found is None:
        raise CommandRefused(f"There is no template {template!r}.")
    if json:
        show_json(document(found))
        return 0
    content = found.content
    say(f"{found.name}, template {found.id} of {owner.name}")
    say(f"Alias: {found.alias or 'none'}")
    say(f"Created {instant(found.created_at)}, changed {instant(found.updated_at)}.")
    if found.published_at is None:
        say("Never published: no mail can be made of it.")
    else:
        say(f"Published {instant(found.published_at)}.")
        if found.has_draft:
            say("There is a draft that is newer, shown here; mail is made of what was published.")
    say(f"From: {content.sender or 'as the request says'}")
    say(f"Subject: {content.subject or 'as the request says'}")
    say(f"Reply to: {', '.join(content.reply_to or ()) or 'the sender'}")
    text = {None: "made from the HTML", "": "none"}.get(content.text, "its own")
    say(f"HTML of {counted(len(content.html), 'character')}; text: {text}")
    if content.variables:
        say()
        show_table(
            ("Variable", "Type", "Fallback"),
            [
                (one.key, one.type, "" if one.fallback_value is None else one.fallback_value)
                for one in content.variables
            ],
        )
    return 0


def document(template: Template) -> Any:
    """Return the template as the API shows it."""
    return msgspec.to_builtins(wire.full(template))
