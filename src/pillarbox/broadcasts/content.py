"""The fields of a broadcast and their rules (broadcasts.md section 3).

The functions that read a field are called only for values that were given; the shapes (`wire`) handle null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from pillarbox.emails.requests.parse import MOST_BODY as MOST_BODY
from pillarbox.emails.requests.parse import MOST_SUBJECT as MOST_SUBJECT
from pillarbox.emails.requests.parse import BodiesTooLarge, MissingBody
from pillarbox.kernel.wire.fields import ReadFields, parse_value
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField, Problem
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.mail.message.encoded_words import FORBIDDEN
from pillarbox.mail.placeholders.parsing import MOST, has_too_many

MOST_NAME: Final = 255
MOST_PREVIEW: Final = 500
MOST_REPLY_TO: Final = 50


class InvalidSender(Invalid):
    """The one field whose message clients know by heart; its name is that of every malformed sender
    (contract decision 4)."""

    def __init__(self) -> None:
        super().__init__("Invalid `from` field.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastContent:
    """The fields of a broadcast that its team may change. Bodies stay as given: no text is generated, and an
    empty one means that the mail has no text part."""

    name: str | None
    segment_id: UUID | None
    topic_id: UUID | None
    sender: str
    subject: str
    reply_to: tuple[str, ...] | None
    preview_text: str | None
    html: str | None
    text: str | None

    @property
    def domain(self) -> str:
        """The domain of the sender."""
        return parse_mailbox(self.sender).domain


def changed(content: BroadcastContent, fields: dict[str, Any]) -> BroadcastContent:
    """Return the content with these fields; one of its bodies has to be left."""
    after = replace(content, **fields)
    if "html" in fields or "text" in fields:
        bodies = _bodies(after.html, after.text)
        after = replace(after, html=bodies["html"], text=bodies["text"])
    return after


def hindrance(content: BroadcastContent) -> str | None:
    """Return why this cannot be sent, in a sentence for people; None where it can. The start checks what was
    stored once more."""
    try:
        parse_mailbox(content.sender)
        for text in content.reply_to or ():
            parse_mailbox(text)
        subject(content.subject, "subject")
        _bodies(content.html, content.text)
    except AddressError as wrong:
        return f"An address is not valid. {wrong.reason}"
    except Problem as wrong:
        return wrong.message
    return None


# Fields ------------------------------------------------------------------------------------------


def segment(value: object, path: str) -> UUID | None:
    return None if value == "" else parse_value(UUID, value, path)


def one_segment(read: ReadFields) -> None:
    """Make one field of the two names `segment_id` and `audience_id`; both may be given where they agree."""
    given = {read.pop(name) for name in ("segment_id", "audience_id") if read.get(name) is not None}
    if len(given) > 1:
        raise Invalid("Use either `segment_id` or `audience_id`, or the same id for both.")
    if given:
        read["segment_id"] = given.pop()


def needed_segment(read: ReadFields) -> None:
    one_segment(read)
    if read.get("segment_id") is None:
        raise MissingField("segment_id")


def sender(value: object, _: str) -> str:
    try:
        if not isinstance(value, str):
            raise InvalidSender
        parse_mailbox(value)
    except AddressError:
        raise InvalidSender from None
    return value.strip()


def subject(value: object, path: str) -> str:
    text = _text(path, value, MOST_SUBJECT)
    if not text:
        raise InvalidField(path, "It must not be empty.")
    if FORBIDDEN.search(text):
        raise InvalidField(path, "Line breaks and control characters are not allowed.")
    return _few_placeholders(path, text)


def body(value: object, path: str) -> str:
    return _few_placeholders(path, _text(path, value))


def needed_bodies(read: ReadFields) -> None:
    read.update(_bodies(read.get("html"), read.get("text")))


def bodies_of_both(read: ReadFields) -> None:
    """Check the bodies of a change that gives both. One that is not given stays, so it is checked later
    whether any is left."""
    if "html" in read and "text" in read:
        _bodies(read["html"], read["text"])


def refuse_too_large(html: str | None, text: str | None) -> None:
    """Raise a 422 for bodies that are too large together."""
    if len((html or "").encode()) + len((text or "").encode()) > MOST_BODY:
        raise BodiesTooLarge("html" if html else "text")


def _bodies(html: str | None, text: str | None) -> dict[str, str | None]:
    if not html and not text:
        raise MissingBody
    refuse_too_large(html, text)
    return {"html": html or None, "text": text}


def name(value: object, path: str) -> str | None:
    return _text(path, value, MOST_NAME) or None


def preview(value: object, path: str) -> str | None:
    return _few_placeholders(path, _text(path, value, MOST_PREVIEW)) or None


def reply_to(value: object, path: str) -> tuple[str, ...] | None:
    if value == "" or value == []:
        return None
    items: Sequence[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
    if not items:
        raise InvalidField(path, "Use a string or an array of strings.")
    if len(items) > MOST_REPLY_TO:
        raise InvalidField(path, f"Use at most {MOST_REPLY_TO} addresses.")
    return tuple(_address(path, item) for item in items)


def topic(value: object, path: str) -> UUID | None:
    return None if value == "" else parse_value(UUID, value, path)


def _address(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidField(field, "Use a string.")
    try:
        parse_mailbox(value)
    except AddressError as wrong:
        raise InvalidField(field, wrong.reason) from None
    return value.strip()


def _text(field: str, value: object, limit: int | None = None) -> str:
    if not isinstance(value, str):
        raise InvalidField(field, "It must be a string.")
    if limit is not None and len(value) > limit:
        raise InvalidField(field, f"Use at most {limit} characters.")
    return value


def _few_placeholders(field: str, source: str) -> str:
    if has_too_many(source):
        raise InvalidField(field, f"Use at most {MOST} placeholders.")
    return source
