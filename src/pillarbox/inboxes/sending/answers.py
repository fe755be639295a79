"""From the body of a reply or a forward to what its author wants (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.emails.requests import attachment_input, parse
from pillarbox.emails.requests.parse import MissingBody
from pillarbox.inboxes.sending.header_rules import custom_headers
from pillarbox.inboxes.sending.originals import MOST_ATTACHED, ForwardTooLarge
from pillarbox.inboxes.sending.recipients import MOST, NamedRecipient
from pillarbox.kernel.wire.problems import Invalid, InvalidAttachment, InvalidField, MissingField


class ReplyRequest(NamedTuple):
    """What is to be sent. `to` is that of a forward; without `subject` it is made from that of the thread.
    `allows_automatic`: the message that is answered may be an automatic one."""

    to: Sequence[NamedRecipient]
    cc: Sequence[NamedRecipient]
    bcc: Sequence[NamedRecipient]
    subject: str | None
    html: str | None
    text: str | None
    to_all: bool
    headers: Sequence[tuple[str, str]]
    attachments: Sequence[NewAttachment]
    allows_automatic: bool = False


class TooManyRecipients(Invalid):
    def __init__(self) -> None:
        super().__init__(f"An email may have at most {MOST} recipients in `to`, `cc` and `bcc` together.")


def reply(body: Mapping[str, Any]) -> ReplyRequest:
    """A reply; raises for the first field that is wrong."""
    found = _answer(body, ())
    if not _is_said(found.html) and not _is_said(found.text):
        raise MissingBody
    if len(found.cc) + len(found.bcc) >= MOST:
        raise TooManyRecipients
    return found


def forward(body: Mapping[str, Any]) -> ReplyRequest:
    """A forward; raises for the first field that is wrong."""
    to = named("to", body.get("to"))
    if not to:
        raise MissingField("to")
    found = _answer(body, to)
    if len(found.to) + len(found.cc) + len(found.bcc) > MOST:
        raise TooManyRecipients
    return found


def named(field: str, value: object) -> list[NamedRecipient]:
    """The addresses of a field."""
    return [
        NamedRecipient(text, mailbox) for text, mailbox in zip(*parse.mailboxes(field, value), strict=True)
    ]


def attachments(value: object) -> list[NewAttachment]:
    """The attachments of a request; an empty one is refused, and more than a message may have."""
    found = attachment_input.read(value)
    for index, one in enumerate(found):
        if one.data == b"":
            raise InvalidAttachment(f"Invalid `attachments[{index}].content` field. The file is empty.")
    if sum([len(one.data or b"") for one in found]) > MOST_ATTACHED:
        raise ForwardTooLarge
    return found


def _answer(body: Mapping[str, Any], to: Sequence[NamedRecipient]) -> ReplyRequest:
    cc, bcc = named("cc", body.get("cc")), named("bcc", body.get("bcc"))
    subject = body.get("subject")
    subject = None if subject is None or subject == "" else parse.subject_text(subject)
    html, text = body.get("html"), body.get("text")
    for field, value in (("html", html), ("text", text)):
        if value is not None and not isinstance(value, str):
            raise InvalidField(field, "Use a string.")
    parse.check_size(html, text)
    to_all, automatic = _switch(body, "reply_all"), _switch(body, "allow_automatic")
    headers = custom_headers(body.get("headers"))
    files = attachments(body.get("attachments"))
    return ReplyRequest(to, cc, bcc, subject, html, text, to_all, headers, files, automatic)


def _switch(body: Mapping[str, Any], field: str) -> bool:
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        raise InvalidField(field, "It must be `true` or `false`.")
    return bool(value)


def _is_said(body: str | None) -> bool:
    return body is not None and not body.isspace() and body != ""
