"""What a request says of a draft (inboxes.md 7.2 and 7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.emails.requests import parse
from pillarbox.inboxes.sending import answers
from pillarbox.inboxes.sending.answers import TooManyRecipients
from pillarbox.inboxes.sending.recipients import MOST
from pillarbox.kernel.wire.problems import Invalid, InvalidField

NAMES: Final = ("to", "cc", "bcc", "subject", "html", "text", "attachments")

T = TypeVar("T")


class NothingInIt(Invalid):
    def __init__(self) -> None:
        super().__init__(
            "A draft needs at least one of `to`, `cc`, `bcc`, `subject`, `html`, `text` and `attachments`."
        )


class DraftContent(NamedTuple):
    """What a draft says. `to` is None where nobody has said to whom."""

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


EMPTY: Final = DraftContent(None, (), (), None, None, None)


class DraftFields(NamedTuple):
    """The fields of a request; UNSET where it does not have them."""

    to: Sequence[str] | UnsetType | None
    cc: Sequence[str] | UnsetType
    bcc: Sequence[str] | UnsetType
    subject: str | UnsetType | None
    html: str | UnsetType | None
    text: str | UnsetType | None
    attachments: Sequence[NewAttachment] | UnsetType

    def over(self, before: DraftContent) -> DraftContent:
        """The content with these fields. Html or text replaces both: what is not given is cleared."""
        html, text = before.html, before.text
        if self.html is not UNSET or self.text is not UNSET:
            html, text = _or(self.html, None), _or(self.text, None)
        return DraftContent(
            _or(self.to, before.to),
            _or(self.cc, before.cc),
            _or(self.bcc, before.bcc),
            _or(self.subject, before.subject),
            html,
            text,
        )


def fields(body: Mapping[str, Any]) -> DraftFields:
    """The fields of a request; raises for the first that is wrong."""
    to = _addresses(body, "to")
    cc, bcc = _addresses(body, "cc"), _addresses(body, "bcc")
    subject, html, text = _subject(body), _body(body, "html"), _body(body, "text")
    parse.check_size(html, text)
    attachments = answers.attachments(body["attachments"]) if "attachments" in body else UNSET
    return DraftFields(
        to,
        () if cc is None else cc,
        () if bcc is None else bcc,
        subject,
        html,
        text,
        attachments,
    )


def changed(body: Mapping[str, Any]) -> DraftFields:
    """The fields of a change, of which there must be one."""
    if not any(name in body for name in NAMES):
        raise Invalid(f"Use at least one of {', '.join([f'`{name}`' for name in NAMES])}.")
    return fields(body)


def _addresses(body: Mapping[str, Any], name: str) -> Sequence[str] | UnsetType | None:
    if name not in body:
        return UNSET
    value = body[name]
    if value is None or value == "":
        return None
    return list(parse.mailboxes(name, value)[0])


def _subject(body: Mapping[str, Any]) -> str | UnsetType | None:
    if "subject" not in body:
        return UNSET
    value = body["subject"]
    if value is None or value == "":
        return None
    subject = parse.subject_text(value)
    if not subject.strip():
        raise InvalidField("subject", "Use a text that is not blank.")
    return subject


def _body(body: Mapping[str, Any], name: str) -> str | UnsetType | None:
    if name not in body:
        return UNSET
    value = body[name]
    if value is not None and not isinstance(value, str):
        raise InvalidField(name, "Use a string.")
    return value or None


def _or(value: T | UnsetType, otherwise: T) -> T:
    return otherwise if isinstance(value, UnsetType) else value
