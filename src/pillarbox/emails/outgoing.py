"""An email that passed its checks and is not stored yet: values only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.wire.problems import InvalidField, NotFound
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.placeholders.parsing import LinkPlaces
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.published import PublishedTemplate
from pillarbox.templates.variables import Scalar

BY_SMTP, BY_AUTOMATION = "smtp", "automation"
"""Sources of mail that an email has no other column for."""


class EmailRecipient(NamedTuple):
    """One address that gets the mail, in the role that won (to over cc over bcc); `key` is the form that is
    compared, `addr_spec` the one that the envelope carries."""

    role: str
    mailbox: Mailbox
    key: str
    addr_spec: str


class NewAttachment(NamedTuple):
    """An attachment as accepted: `data`, or `url` to be fetched after the answer."""

    filename: str
    content_type: str
    cid: str | None
    data: bytes | None
    url: str | None


class EmailTag(NamedTuple):
    name: str
    value: str


class NotPublished(InvalidField):
    def __init__(self) -> None:
        super().__init__("template", "The template was never published. Publish it first.")


class TemplatesTooLarge(InvalidField):
    def __init__(self) -> None:
        super().__init__("template", "The templates of one request may have 25 MB together.")


class UsedTemplate(NamedTuple):
    """A template that mail is to be made of, None where the team has none of that name, and the values that
    are given for its variables. Those of `foreign` are not the sender's own data."""

    found: PublishedTemplate | None
    given: Mapping[str, Scalar]
    foreign: Collection[str] = ()

    @property
    def content(self) -> TemplateContent | None:
        return None if self.found is None else self.found.content

    def check(self) -> tuple[UUID, TemplateContent]:
        """Return the id and content of the template; raises NotFound, NotPublished or TemplatesTooLarge."""
        if self.found is None:
            raise NotFound("Template")
        if not self.found.is_published:
            raise NotPublished
        if self.found.content is None:
            raise TemplatesTooLarge
        return self.found.id, self.found.content


class OutgoingEmail(Struct, frozen=True, kw_only=True):
    """One email as the sender wants it: every field parsed, no look-up made yet.

    The `*_texts` are shown as they were given; the mailboxes are what goes on the wire. Where a `template` is
    named, the subject is still to be rendered, and there are no bodies yet; `templating` makes them, and what
    comes out has only the id of the template. `link_places` are known of bodies that were rendered. Mail of
    an inbox that answers or forwards a message of it has its `answered_id`.
    """

    sender_text: str
    sender: Mailbox
    to_texts: Sequence[str]
    to: Sequence[Mailbox]
    cc_texts: Sequence[str]
    cc: Sequence[Mailbox]
    bcc_texts: Sequence[str]
    bcc: Sequence[Mailbox]
    reply_to_texts: Sequence[str]
    reply_to: Sequence[Mailbox]
    subject: str
    html: str | None
    text: str | None
    headers: Sequence[tuple[str, str]]
    attachments: Sequence[NewAttachment]
    tags: Sequence[EmailTag]
    scheduled_at: datetime | None
    topic_id: UUID | None = None
    template: UsedTemplate | None = None
    template_id: UUID | None = None
    link_places: LinkPlaces | None = None
    inbox_id: UUID | None = None
    answered_id: UUID | None = None
    source: str | None = None

    @property
    def is_personal(self) -> bool:
        """Whether each recipient gets a copy of its own, with its own link, which is made when it is sent."""
        return self.topic_id is not None or (self.link_places is not None and any(self.link_places))

    def recipients(self) -> list[EmailRecipient]:
        """Return everybody who gets the mail, once (emails.md 1.1)."""
        seen: set[str] = set()
        found = []
        for role, mailboxes in (("to", self.to), ("cc", self.cc), ("bcc", self.bcc)):
            for mailbox in mailboxes:
                address = mailbox.addr_spec
                key = address.lower() if address.isascii() else mailbox.key
                if key not in seen:
                    seen.add(key)
                    found.append(EmailRecipient(role, mailbox, key, address))
        return found
