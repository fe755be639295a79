"""Shapes of replies and forwards on the wire (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.emails.requests import attachment_input, parse
from pillarbox.emails.requests.parse import MOST_BODY, MOST_HEADERS, MOST_SUBJECT, MissingBody
from pillarbox.emails.wire import AttachmentIn
from pillarbox.inboxes.sending import answers
from pillarbox.inboxes.sending.answers import ReplyRequest, TooManyRecipients, is_said
from pillarbox.inboxes.sending.header_rules import custom_headers
from pillarbox.inboxes.sending.recipients import MOST, NamedRecipient
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import Rules, read_before, read_by
from pillarbox.mail.message.headers import LONGEST_VALUE

GivenAddresses = str | Annotated[list[str], Meta(max_length=MOST)]
NeededAddresses = (
    Annotated[str, Meta(min_length=1)] | Annotated[list[str], Meta(min_length=1, max_length=MOST)]
)
GivenHeaders = Annotated[
    dict[str, Annotated[str, Meta(max_length=LONGEST_VALUE)]], Meta(max_length=MOST_HEADERS)
]
GivenAttachments = Annotated[list[AttachmentIn], Meta(max_length=attachment_input.MOST)]

Recipients = Annotated[list[NamedRecipient], shown_as(GivenAddresses), read_by(answers.named)]
NeededRecipients = Annotated[list[NamedRecipient], shown_as(NeededAddresses), read_by(answers.needed)]
Subject = Annotated[str, Meta(max_length=MOST_SUBJECT), read_by(answers.subject)]
Body = Annotated[str, Meta(max_length=MOST_BODY), read_by(parse.string)]
Headers = Annotated[list[tuple[str, str]], shown_as(GivenHeaders), read_by(custom_headers)]
Attachments = Annotated[list[NewAttachment], shown_as(GivenAttachments), read_by(answers.attachments)]


class ReplyIn(msgspec.Struct, kw_only=True):
    """At least one of `html` and `text`. `headers` may not have those that the service sets."""

    min_properties: ClassVar[int] = 1
    rules: ClassVar[Rules] = {"text": answers.check_size}

    html: Body | None = None
    text: Body | None = None
    cc: Annotated[Recipients, read_before("html")] | None = None
    bcc: Annotated[Recipients, read_before("html")] | None = None
    subject: Annotated[Subject, read_before("html")] | None = None
    reply_all: bool | None = None
    allow_automatic: bool | None = None
    headers: Headers | None = None
    attachments: Attachments | None = None

    def request(self) -> ReplyRequest:
        """Return the reply; raises where the fields do not fit together."""
        cc, bcc = self.cc or [], self.bcc or []
        if not is_said(self.html) and not is_said(self.text):
            raise MissingBody
        if len(cc) + len(bcc) >= MOST:
            raise TooManyRecipients
        return ReplyRequest(
            to=(),
            cc=cc,
            bcc=bcc,
            subject=self.subject,
            html=self.html,
            text=self.text,
            to_all=bool(self.reply_all),
            headers=self.headers or (),
            attachments=self.attachments or (),
            allows_automatic=bool(self.allow_automatic),
        )


class ForwardIn(msgspec.Struct, kw_only=True):
    """`html` and `text` are a note above the original."""

    rules: ClassVar[Rules] = {"text": answers.check_size}

    to: NeededRecipients
    cc: Recipients | None = None
    bcc: Recipients | None = None
    subject: Subject | None = None
    html: Body | None = None
    text: Body | None = None
    headers: Headers | None = None
    attachments: Attachments | None = None

    def request(self) -> ReplyRequest:
        """Return the forward; raises where the fields do not fit together."""
        cc, bcc = self.cc or [], self.bcc or []
        if len(self.to) + len(cc) + len(bcc) > MOST:
            raise TooManyRecipients
        return ReplyRequest(
            to=self.to,
            cc=cc,
            bcc=bcc,
            subject=self.subject,
            html=self.html,
            text=self.text,
            to_all=False,
            headers=self.headers or (),
            attachments=self.attachments or (),
        )
