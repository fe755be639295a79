"""Mail of a template, as it is accepted: rendered once, with what is known then (templates.md 6 and 8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec import structs

from pillarbox.emails.outgoing import Outgoing, TemplatesTooLarge
from pillarbox.emails.requests.parse import VARIABLES, MissingBody, check_size, template_names
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.message.contact_placeholders import NOBODY, ContactValues
from pillarbox.templates import mail
from pillarbox.templates.published import MOST_OCTETS, PublishedTemplate, published


@dataclass(frozen=True, slots=True)
class ContactSource:
    """What mail may say of those of these addresses, as they are compared, that are contacts of the team; a
    higher slice provides it."""

    values: Callable[[TeamDb, Collection[str]], Awaitable[Mapping[str, ContactValues]]]


@dataclass(frozen=True, slots=True)
class Templating:
    """Finds the templates that requests name, and makes mail of them."""

    contacts: ContactSource

    async def named(self, db: TeamDb, items: Sequence[Any]) -> Mapping[str, PublishedTemplate]:
        """The templates that these items of a request name, of those that the team has."""
        return await published(db, template_names(items))

    async def rendered(
        self, db: TeamDb, emails: Sequence[Outgoing | Problem]
    ) -> Sequence[Outgoing | Problem]:
        """The same emails, those of templates with their subjects and bodies, or with what is wrong."""
        if not any(isinstance(email, Outgoing) and email.template is not None for email in emails):
            return emails
        contacts = await self._contacts(db, emails)
        left = MOST_OCTETS
        found: list[Outgoing | Problem] = []
        for email in emails:
            if isinstance(email, Outgoing) and email.template is not None:
                template_size = email.template.check()[1].size
                made = await self._made(email, contacts, template_size, left)
                # What came to nothing was read all the same.
                left -= max(template_size if template_size <= left else 0, _size(made))
                found.append(made)
            else:
                found.append(email)
        return found

    async def one(self, db: TeamDb, email: Outgoing) -> Outgoing:
        """One email; raises what is wrong with it."""
        [made] = await self.rendered(db, [email])
        if isinstance(made, Problem):
            raise made
        return made

    async def _contacts(
        self, db: TeamDb, emails: Sequence[Outgoing | Problem]
    ) -> Mapping[str, ContactValues]:
        """The contacts that these emails say something of."""
        wanted = set()
        known: dict[UUID, bool] = {}
        for email in emails:
            if isinstance(email, Outgoing) and email.template is not None:
                # Items of a batch often share a template, which may be large.
                template_id, content = email.template.check()
                if template_id not in known:
                    known[template_id] = await in_thread_if_large(
                        content.size, mail.is_about_contact, content
                    )
                if known[template_id] or mail.names_contact(email.subject):
                    wanted |= {one.key for one in _alone(email)}
        return await self.contacts.values(db, wanted) if wanted else {}

    async def _made(
        self, email: Outgoing, contacts: Mapping[str, ContactValues], size: int, left: int
    ) -> Outgoing | Problem:
        try:
            if size > left:
                raise TemplatesTooLarge
            made = await in_thread_if_large(size, _rendered, email, contacts)
            if _size(made) > left:
                raise TemplatesTooLarge
        except Problem as problem:
            return problem
        return made


def _rendered(email: Outgoing, contacts: Mapping[str, ContactValues]) -> Outgoing:
    if email.template is None:
        return email
    template_id, content = email.template.check()
    contact = NOBODY
    for recipient in _alone(email):
        contact = contacts.get(recipient.key) or ContactValues(email=recipient.addr_spec)
    used = email.template
    made = mail.render(content, email.subject, used.given, contact, VARIABLES, used.foreign)
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


def _alone(email: Outgoing) -> Sequence[Any]:
    """The recipient of mail that has only one: what is said of a contact is said to nobody else."""
    recipients = email.recipients()
    return recipients if len(recipients) == 1 else ()


def _size(made: Outgoing | Problem) -> int:
    return 0 if isinstance(made, Problem) else len(made.html or "") + len(made.text or "")
