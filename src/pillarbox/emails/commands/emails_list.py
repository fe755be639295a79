"""`pillarbox emails list`: finds emails, and shows them in two lines each on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
import typer
from rich.text import Text

from pillarbox.delivery.commands.queue import team_names
from pillarbox.emails.search.filters import SOURCES, EmailFilter, EmailPage, FoundEmail, NotAFilter
from pillarbox.emails.search.find import find
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    as_id,
    clean,
    instant,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.teams.commands.choosing import one_team
from pillarbox.timeline.rules import STATES

NARROWEST = 40

To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="ADDRESS", help="To this address, or @DOMAIN: to any of it.", show_default=False
    ),
]
From = Annotated[
    str | None, typer.Option("--from", metavar="ADDRESS", help="From this address.", show_default=False)
]
Subject = Annotated[
    str | None,
    typer.Option(
        "--subject", metavar="WORDS", help="With all these words in the subject.", show_default=False
    ),
]
State = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="STATE", help=f"With a recipient in it: {', '.join(STATES)}.", show_default=False
    ),
]
Domain = Annotated[
    str | None,
    typer.Option("--domain", metavar="NAME", help="Sent from this domain.", show_default=False),
]
Tag = Annotated[
    str | None,
    typer.Option(
        "--tag",
        metavar="NAME[:VALUE]",
        help="With this tag, of that value or of any.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="ID", help="Sent by this API key.", show_default=False)
]
Broadcast = Annotated[
    str | None,
    typer.Option("--broadcast", metavar="ID", help="A copy of this broadcast.", show_default=False),
]
EmailSource = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="SOURCE", help=f"Where it comes from: {', '.join(SOURCES)}.", show_default=False
    ),
]
MessageId = Annotated[
    str | None,
    typer.Option("--message-id", metavar="ID", help="With this Message-ID.", show_default=False),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Accepted at this time or later.", show_default=False),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Accepted before this time.", show_default=False)
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="ID", help="Go on behind this email of the list.", show_default=False),
]


def wanted(
    *,
    to: str | None,
    sender: str | None,
    subject: str | None,
    state: str | None,
    domain: str | None,
    since: str | None,
    until: str | None,
    tag: str | None,
    key: str | None,
    broadcast: str | None,
    source: str | None,
    message_id: str | None,
) -> EmailFilter:
    """Return the filter that the options mean."""
    try:
        return EmailFilter.parsed(
            to=to,
            sender=sender,
            subject=subject,
            state=state,
            domain=domain,
            since=None if since is None else moment("--since", since),
            until=None if until is None else moment("--until", until),
            tag=tag,
            key_id=key,
            broadcast_id=broadcast,
            source=source,
            message_id=message_id,
        )
    except NotAFilter as wrong:
        raise CommandRefused(str(wrong)) from None


def moment(option: str, text: str) -> datetime:
    """Return the instant that an option is."""
    try:
        return parse_instant(text, date_only=True)
    except ValueError:
        raise CommandRefused(
            f"{option} {text!r} is no time: use 2026-10-03 or 2026-10-03T08:15:00Z."
        ) from None


async def show_found(
    connected: CommandDatabase,
    team: str | None,
    filters: EmailFilter,
    limit: int,
    after: str | None,
    *,
    json: bool,
) -> int:
    """Print a page of what fits."""
    team_id = None if team is None else (await one_team(connected, team)).id
    cursor = None if after is None else as_id(after, "an email")
    found = await full_page(connected, team_id, filters, limit, cursor)
    if json:
        emails = [found_shape(email) for email in found.emails]
        show_json({"object": "list", "has_more": found.following is not None, "data": emails})
        return 0
    names = await team_names(connected)
    if sys.stdout.isatty():
        show_lines(found.emails, names)
    else:
        show_rows(found.emails, names)
    if found.following is not None:
        typer.echo(f"There are more: --after {found.emails[-1].id}", err=True)
    return 0


async def full_page(
    connected: CommandDatabase, team_id: UUID | None, filters: EmailFilter, limit: int, after: UUID | None
) -> EmailPage:
    """Return as many emails as asked for, or all that there are, however long that takes."""
    emails: list[FoundEmail] = []
    while True:
        page = await find(connected.pool, team_id, filters, limit=limit - len(emails), after=after)
        emails += page.emails
        after = page.following
        if after is None or len(emails) >= limit:
            return EmailPage(emails, after)


def show_rows(emails: Sequence[FoundEmail], names: Mapping[UUID, str]) -> None:
    """Print one line for each email, for programs that read lines."""
    show_table(
        ("Id", "Accepted", "Team", "From", "To", "Subject", "State"),
        [
            (
                email.id,
                email.created_at,
                names.get(email.team_id, email.team_id),
                email.sender,
                ", ".join(texts(email.to_list)),
                email.subject,
                email.last_event,
            )
            for email in emails
        ],
    )


def show_lines(emails: Sequence[FoundEmail], names: Mapping[UUID, str]) -> None:
    """Print two lines for each email, none wider than the terminal: id, time and state, then whose it is."""
    width = max(NARROWEST, shutil.get_terminal_size().columns)
    for email in emails:
        say(cut(f"{email.id}  {instant(email.created_at)}  {email.last_event}", width))
        team = f"{names.get(email.team_id, email.team_id)}: " if len(names) > 1 else ""
        people = f"{bare(email.sender)} to {', '.join(map(bare, texts(email.to_list)))}"
        say(cut(f"    {team}{cut(people, max(NARROWEST, width * 2 // 3))}: {email.subject}", width))


def bare(address: str) -> str:
    """Return the address without a display name."""
    return address.rpartition("<")[2].removesuffix(">")


def cut(text: str, width: int) -> str:
    """Return the text in no more than so many columns."""
    line = Text(clean(text))
    line.truncate(width, overflow="ellipsis")
    return line.plain


def found_shape(email: FoundEmail) -> dict[str, Any]:
    return {
        "id": email.id,
        "team_id": email.team_id,
        "created_at": email.created_at,
        "from": email.sender,
        "to": texts(email.to_list),
        "subject": email.subject,
        "last_event": email.last_event,
        "scheduled_at": email.scheduled_at,
    }


def texts(json_text: str | None) -> list[str]:
    """Return the addresses of a list that is stored as JSON."""
    return [] if json_text is None else msgspec.json.decode(json_text, type=list[str])
