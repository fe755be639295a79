"""The fields of a draft and their rules (inboxes.md 7.2 and 7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.emails.requests import parse
from pillarbox.inboxes.sending import answers
from pillarbox.inboxes.sending.answers import TooManyRecipients
from pillarbox.inboxes.sending.recipients import MOST
from pillarbox.kernel.wire.problems import Invalid, InvalidField


class NothingInIt(Invalid):
    def __init__(self) -> None:
        super().__init__(
            "A draft needs at least one of `to`, `cc`, `bcc`, `subject`, `html`, `text` and `attachments`."
        )


class DraftContent(NamedTuple):
    """The fields of a draft, without its attachments. `to` is None where no recipient was given."""

    to: Sequence[str] | None
    cc: Sequence[str]
    bcc: Sequence[str]
    subject: str | None
    html: str | None
    text: str | None

    def check(self, attachments: int, *, may_be_empty: bool = False) -> None:
        """Raise where it has too many recipients, or nothing in it."""
        if len(self.to or ()) + len(self.cc) + len(self.bcc) > MOST:
            raise TooManyRecipients
        if not may_be_empty and not attachments and not any(self):
            raise NothingInIt


EMPTY: Final = DraftContent(to=None, cc=(), bcc=(), subject=None, html=None, text=None)


# Fields ------------------------------------------------------------------------------------------


def to(value: object, path: str) -> Sequence[str] | None:
    """Return the recipients; None where the value is null or ""."""
    return None if value is None or value == "" else list(parse.mailboxes(path, value)[0])


def copied(value: object, path: str) -> Sequence[str]:
    return to(value, path) or ()


def subject(value: object, path: str) -> str | None:
    if value is None or value == "":
        return None
    text = parse.subject_text(value)
    if not text.strip():
        raise InvalidField(path, "Use a text that is not blank.")
    return text


def body(value: object, path: str) -> str | None:
    return None if value is None else parse.string(value, path) or None


def attachments(value: object, path: str) -> Sequence[NewAttachment]:
    return answers.attachments(value, path)
