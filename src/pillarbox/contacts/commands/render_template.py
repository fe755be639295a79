"""`pillarbox templates render`: the mail that would be made of a template, as it would go out."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

import typer
from msgspec import structs

from pillarbox.contacts.mail_values import mail_values
from pillarbox.emails.outgoing import OutgoingEmail, UsedTemplate
from pillarbox.emails.requests.parse import outgoing
from pillarbox.emails.requests.templating import ContactSource, TemplateRendering
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, show_json
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.mail.message.compose import OutgoingMessage, compose
from pillarbox.mail.placeholders.parsing import UNSUBSCRIBE_URL, Span, filled_at, links
from pillarbox.teams.commands.choosing import TeamOption, one_team
from pillarbox.templates.changes import named, template_of
from pillarbox.templates.published import PublishedTemplate, published
from pillarbox.templates.variables import Scalar

group = typer.Typer()

NOBODY: Final = "recipient@example.com"
NO_SENDER: Final = "sender@example.com"
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

TemplateName = Annotated[str, typer.Argument(metavar="TEMPLATE", help="The template's alias, or its id.")]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A value of a variable. Again for each.", show_default=False
    ),
]
ContactOption = Annotated[
    str | None,
    typer.Option(
        "--contact",
        metavar="ADDRESS",
        help="Whom the mail is for: what it says of contacts is this one's.",
        show_default=False,
    ),
]
Draft = Annotated[
    bool, typer.Option("--draft", help="Use the newest content, also where it is not published.")
]


@dataclass(frozen=True, slots=True)
class RenderArguments:
    """The arguments of a rendering: the template, the values of its variables, and the contact that it is
    for."""

    template: str
    values: Sequence[str]
    contact: str | None
    is_draft: bool


@group.command("render")
def render_template(
    template: TemplateName,
    values: Values = None,
    contact: ContactOption = None,
    draft: Draft = False,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the mail that would be made of a template, as it would go out, to standard output."""
    wanted = RenderArguments(template, values or (), contact, draft)
    perform(
        lambda connected: rendered(connected, team, wanted, json=json), data=data, database_url=database_url
    )


async def rendered(
    connected: CommandDatabase, team: str | None, render_arguments: RenderArguments, *, json: bool
) -> int:
    """Print it."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    template = (
        await _draft(db, render_arguments.template)
        if render_arguments.is_draft
        else await _live(db, render_arguments.template)
    )
    UsedTemplate(template, {}).check()
    use = {"id": render_arguments.template, "variables": _values(template, render_arguments.values)}
    body = {"to": render_arguments.contact or NOBODY, "template": use, **_lacking(template)}
    now = SystemClock().now()
    email = outgoing(body, now, {render_arguments.template: template})
    email = await TemplateRendering(ContactSource(mail_values)).one(db, email)
    email = _with_link(email, f"{connected.settings.public_url}/unsubscribe/PREVIEW")
    if json:
        show_json(
            {"from": email.sender_text, "subject": email.subject, "html": email.html, "text": email.text}
        )
        return 0
    message = OutgoingMessage(
        sender=email.sender,
        to=email.to,
        reply_to=email.reply_to,
        subject=email.subject,
        date=now,
        message_id=f"<preview@{email.sender.domain}>",
        seed=UUID(int=0).bytes,
        html=email.html,
        text=email.text,
    )
    sys.stdout.buffer.write(compose(message))
    sys.stdout.buffer.flush()
    return 0


async def _live(db: TeamDb, name: str) -> PublishedTemplate:
    found = await published(db, [name])
    if name not in found:
        raise CommandRefused(f"There is no template {name!r}.")
    return found[name]


async def _draft(db: TeamDb, name: str) -> PublishedTemplate:
    try:
        found = await template_of(db, named(name))
    except NotFound:
        raise CommandRefused(f"There is no template {name!r}.") from None
    return PublishedTemplate(found.id, found.alias, True, found.content)


def _lacking(template: PublishedTemplate) -> dict[str, str]:
    """Return placeholders for the fields of a request that the template lacks: its sender and subject."""
    content = template.content
    found = {}
    if content is not None and content.sender is None:
        found["from"] = NO_SENDER
    if content is not None and content.subject is None:
        found["subject"] = "(no subject)"
    return found


def _values(template: PublishedTemplate, given: Sequence[str]) -> Mapping[str, Scalar]:
    """Return the values of the command line, as the types of the variables want them."""
    kinds = {} if template.content is None else {one.key: one.type for one in template.content.variables}
    found: dict[str, Scalar] = {}
    for one in given:
        key, is_there, value = one.partition("=")
        if not is_there:
            raise CommandRefused(f"--set {one!r} is not of the form KEY=VALUE.")
        if not _is_text(value):
            raise CommandRefused(f"The value of --set {key!r} is no UTF-8.")
        is_number = kinds.get(key) == "number" and _NUMBER.fullmatch(value) is not None
        found[key] = float(value) if is_number else value
    return found


def _is_text(value: str) -> bool:
    """Return whether it can be written; what is no UTF-8 on the command line comes as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_link(email: OutgoingEmail, url: str) -> OutgoingEmail:
    """Return the email with something in the place of the link that its recipient would get."""
    if email.link_places is None:
        return email
    in_html, in_text = email.link_places
    return structs.replace(
        email,
        html=_filled(email.html, in_html, links(url, is_html=True)[UNSUBSCRIBE_URL[0]]),
        text=_filled(email.text, in_text, url),
    )


def _filled(body: str | None, places: Sequence[Span], url: str) -> str | None:
    return None if body is None else filled_at(body, places, url)
