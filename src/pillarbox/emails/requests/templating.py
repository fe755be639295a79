"""Mail of a template, as it is accepted: rendered once, with what is known then (templates.md 6 and 8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec import structs

from pillarbox.emails.outgoing import OutgoingEmail, TemplatesTooLarge, UsedTemplate
from pillarbox.emails.requests.parse import (
    MOST_BODY,
    VARIABLES,
    BodiesTooLarge,
    MissingBody,
    check_size,
    template_names,
)
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.placeholders.contact_values import NOBODY, ContactValues
from pillarbox.templates import mail
from pillarbox.templates.published import MOST_OCTETS, PublishedTemplate, published


@dataclass(frozen=True, slots=True)
class ContactSource:
    """The contacts of a team, as a higher slice provides them. `values` takes addresses as they are compared,
    and returns the values of those that are contacts."""

    values: Callable[[TeamDb, Collection[str]], Awaitable[Mapping[str, ContactValues]]]


@dataclass(frozen=True, slots=True)
class TemplateRendering:
    """Finds the templates that requests name, and makes mail of them."""

    contacts: ContactSource

    async def named(self, db: TeamDb, items: Sequence[Any]) -> Mapping[str, PublishedTemplate]:
        """Return the templates that these items of a request name, of those that the team has."""
        return await published(db, template_names(items))

    async def rendered(
        self, db: TeamDb, emails: Sequence[OutgoingEmail | Problem]
    ) -> Sequence[OutgoingEmail | Problem]:
        """Return the same emails, those of templates with their subjects and bodies, or the problem."""
        if not any(isinstance(email, OutgoingEmail) and email.template is not None for email in emails):
            return emails
        contacts = await self._contacts(db, emails)
        return await in_thread_if_large(_weight(emails), _rendered_all, emails, contacts)

    async def one(self, db: TeamDb, email: OutgoingEmail) -> OutgoingEmail:
        """Return one email in the same way; raises its problem."""
        [made] = await self.rendered(db, [email])
        if isinstance(made, Problem):
            raise made
        return made

    async def _contacts(
        self, db: TeamDb, emails: Sequence[OutgoingEmail | Problem]
    ) -> Mapping[str, ContactValues]:
        """Return the contacts that these emails say something of."""
        wanted = set()
        known: dict[UUID, bool] = {}
        for email in emails:
            if isinstance(email, OutgoingEmail) and email.template is not None:
                # Items of a batch often share a template, which may be large.
                template_id, content = email.template.check()
                if template_id not in known:
                    known[template_id] = await in_thread_if_large(
                        content.size, mail.is_about_contact, content
                    )
                if known[template_id] or mail.names_contact(email.subject):
                    wanted |= {one.key for one in _alone(email)}
        return await self.contacts.values(db, wanted) if wanted else {}


def _weight(emails: Sequence[OutgoingEmail | Problem]) -> int:
    """Return an upper bound of what rendering these emails reads and writes, in characters."""
    return sum(
        mail.weight(email.template.check()[1])
        for email in emails
        if isinstance(email, OutgoingEmail) and email.template is not None
    )


def _rendered_all(
    emails: Sequence[OutgoingEmail | Problem], contacts: Mapping[str, ContactValues]
) -> list[OutgoingEmail | Problem]:
    """Return the emails in their order. The templates and what is rendered of them are charged to one budget
    before anything is rendered, also where the email is refused afterwards."""
    left = MOST_OCTETS
    rendered: list[OutgoingEmail | Problem] = []
    for email in emails:
        if not isinstance(email, OutgoingEmail) or email.template is None:
            rendered.append(email)
            continue
        try:
            size = _size(email, email.template, contacts, left)
            left -= size
            rendered.append(_rendered(email, email.template, contacts))
        except _RenderingRefused as refused:
            left -= refused.size
            rendered.append(refused.problem)
        except Problem as problem:
            rendered.append(problem)
    return rendered


class _RenderingRefused(Exception):  # noqa: N818 - it carries a problem and what finding it has cost
    """An email that is not rendered, after `size` characters were read."""

    def __init__(self, size: int, problem: Problem) -> None:
        self.size = size
        self.problem = problem


def _size(
    email: OutgoingEmail, template: UsedTemplate, contacts: Mapping[str, ContactValues], left: int
) -> int:
    """Return the characters that rendering the email reads or writes, whichever is more.

    Raises _RenderingRefused where they are more than are left, or where the bodies alone are too large.
    """
    content = template.check()[1]
    if content.size > left:
        raise _RenderingRefused(0, TemplatesTooLarge())
    try:
        written = mail.rendered_size(
            content, template.given, _contact(email, contacts), VARIABLES, template.foreign
        )
    except Problem as problem:
        raise _RenderingRefused(content.size, problem) from None
    # The text that is made of the html is read from all of it.
    cost = max(content.size, written if content.text is not None else 2 * written)
    if cost > left:
        raise _RenderingRefused(content.size, TemplatesTooLarge())
    if written > MOST_BODY:
        raise _RenderingRefused(content.size, BodiesTooLarge("html" if content.html else "text"))
    return cost


def _rendered(
    email: OutgoingEmail, template: UsedTemplate, contacts: Mapping[str, ContactValues]
) -> OutgoingEmail:
    template_id, content = template.check()
    made = mail.render(
        content, email.subject, template.given, _contact(email, contacts), VARIABLES, template.foreign
    )
    if not made.html and made.text is None:
        raise MissingBody
    # As in other mail, text that is made of the html does not count.
    check_size(made.html, None if content.text is None else made.text)
    return structs.replace(
        email,
        subject=made.subject or "",
        html=made.html or None,
        text=made.text,
        template=None,
        template_id=template_id,
        link_places=made.links,
    )


def _contact(email: OutgoingEmail, contacts: Mapping[str, ContactValues]) -> ContactValues:
    """Return the values of a single recipient that the email may show; NOBODY where there are several."""
    for recipient in _alone(email):
        return contacts.get(recipient.key) or ContactValues(email=recipient.addr_spec)
    return NOBODY


def _alone(email: OutgoingEmail) -> Sequence[Any]:
    """Return the recipient of mail that has only one: what is said of a contact is said to nobody else."""
    recipients = email.recipients()
    return recipients if len(recipients) == 1 else ()
