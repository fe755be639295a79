"""The fields of a reply or a forward, and their rules (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.emails.requests import attachment_input, parse
from pillarbox.inboxes.sending.originals import MOST_ATTACHED, ForwardTooLarge
from pillarbox.inboxes.sending.recipients import MOST, NamedRecipient
from pillarbox.kernel.wire.fields import ReadFields
from pillarbox.kernel.wire.problems import Invalid, InvalidAttachment, MissingField


class ReplyRequest(NamedTuple):
    """A reply or a forward that is to be sent. `to` is for a forward; without `subject` it is made from that
    of the thread. `allows_automatic`: the original may be an automatic message."""

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


# Fields ------------------------------------------------------------------------------------------


def named(value: object, path: str) -> list[NamedRecipient]:
    """Return the addresses of a field."""
    return [
        NamedRecipient(text, mailbox) for text, mailbox in zip(*parse.mailboxes(path, value), strict=True)
    ]


def needed(value: object, path: str) -> list[NamedRecipient]:
    """Return the addresses of a field that must have one."""
    found = named(value, path)
    if not found:
        raise MissingField(path)
    return found


def subject(value: object, _: str) -> str | None:
    return None if value == "" else parse.subject_text(value)


def check_size(read: ReadFields) -> None:
    parse.check_size(read.get("html"), read.get("text"))


def attachments(value: object, _: str) -> list[NewAttachment]:
    """Return the attachments of a request; an empty one is refused, as are more than a message may have."""
    found = attachment_input.read(value)
    for index, one in enumerate(found):
        if one.data == b"":
            raise InvalidAttachment(f"Invalid `attachments[{index}].content` field. The file is empty.")
    if sum([len(one.data or b"") for one in found]) > MOST_ATTACHED:
        raise ForwardTooLarge
    return found


def is_said(body: str | None) -> bool:
    """Return whether a body has anything but blanks."""
    return body is not None and not body.isspace() and body != ""
