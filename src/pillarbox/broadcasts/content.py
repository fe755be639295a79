"""What a broadcast says, to whom and by whom: from a request body, field by field (broadcasts.md section
3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from pillarbox.emails.requests.parse import MOST_BODY as MOST_BODY
from pillarbox.emails.requests.parse import MOST_SUBJECT as MOST_SUBJECT
from pillarbox.emails.requests.parse import BodiesTooLarge, MissingBody
from pillarbox.kernel.wire.fields import NOT_AN_OBJECT, reference
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField, Problem
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.mail.message.encoded_words import FORBIDDEN
from pillarbox.mail.placeholders.parsing import MOST, has_too_many

MOST_NAME: Final = 255
MOST_PREVIEW: Final = 500
MOST_REPLY_TO: Final = 50

Body = Mapping[str, Any]


class InvalidSender(Invalid):
    """The one field whose message clients know by heart; its name is that of every malformed sender
    (contract decision 4)."""

    def __init__(self) -> None:
        super().__init__("Invalid `from` field.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastContent:
    """What its team may change of a broadcast. Bodies are as they were given: no text is generated, and an
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


def as_object(body: object) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Invalid(NOT_AN_OBJECT)
    return body


def new_content(body: dict[str, Any]) -> BroadcastContent:
    """The content of a new broadcast; the first violation is raised, what is missing in the contract's
    order."""
    segment_id = _segment(body)
    if segment_id is None:
        raise MissingField("segment_id")
    sender = _sender(_required(body, "from"))
    subject = _subject(_required(body, "subject"))
    html, text = _body(body, "html"), _body(body, "text")
    return BroadcastContent(
        segment_id=segment_id,
        sender=sender,
        subject=subject,
        **_bodies(html, text),
        name=_name(body.get("name")),
        reply_to=_reply_to(body.get("reply_to")),
        preview_text=_preview(body.get("preview_text")),
        topic_id=_topic(body),
    )


def changes(body: dict[str, Any]) -> dict[str, Any]:
    """The fields that are to change, as a content has them: those that are absent stay, and null clears what
    may be absent. Raises for the first that is wrong in every broadcast, so before anything is looked up."""
    found: dict[str, Any] = {}
    for field in ("segment_id", "audience_id"):
        if field in body and body[field] in (None, ""):
            raise InvalidField(field, "It cannot be cleared.")
    if "segment_id" in body or "audience_id" in body:
        found["segment_id"] = _segment(body)
    if "from" in body:
        found["sender"] = _sender(body["from"])
    if "subject" in body:
        found["subject"] = _subject(body["subject"])
    for field in ("html", "text"):
        if field in body:
            found[field] = _body(body, field)
    if "html" in body and "text" in body:
        _bodies(found["html"], found["text"])
    if "name" in body:
        found["name"] = _name(body["name"])
    if "reply_to" in body:
        found["reply_to"] = _reply_to(body["reply_to"])
    if "preview_text" in body:
        found["preview_text"] = _preview(body["preview_text"])
    if "topic_id" in body:
        found["topic_id"] = _topic(body)
    return found


def changed(content: BroadcastContent, fields: dict[str, Any]) -> BroadcastContent:
    """The content with these fields; one of its bodies has to be left."""
    after = replace(content, **fields)
    if "html" in fields or "text" in fields:
        bodies = _bodies(after.html, after.text)
        after = replace(after, html=bodies["html"], text=bodies["text"])
    return after


def hindrance(content: BroadcastContent) -> str | None:
    """Why this cannot be sent, in a sentence for people: what was stored is judged once more at the start."""
    try:
        parse_mailbox(content.sender)
        for text in content.reply_to or ():
            parse_mailbox(text)
        _subject(content.subject)
        _bodies(content.html, content.text)
    except AddressError as wrong:
        return f"An address is not valid. {wrong.reason}"
    except Problem as wrong:
        return wrong.message
    return None


def _segment(body: Body) -> UUID | None:
    """Of the two names of the same field; both may be given where they agree."""
    given = {name: body[name] for name in ("segment_id", "audience_id") if body.get(name) not in (None, "")}
    found = {reference(dict(given), name) for name in given}
    if len(found) > 1:
        raise Invalid("Use either `segment_id` or `audience_id`, or the same id for both.")
    return found.pop() if found else None


def _required(body: Body, field: str) -> object:
    value = body.get(field)
    if value is None or value == "":
        raise MissingField(field)
    return value


def _sender(value: object) -> str:
    try:
        if not isinstance(value, str):
            raise InvalidSender
        parse_mailbox(value)
    except AddressError:
        raise InvalidSender from None
    return value.strip()


def _subject(value: object) -> str:
    subject = _text("subject", value, MOST_SUBJECT)
    if not subject:
        raise InvalidField("subject", "It must not be empty.")
    if FORBIDDEN.search(subject):
        raise InvalidField("subject", "Line breaks and control characters are not allowed.")
    return _few_placeholders("subject", subject)


def _body(body: Body, field: str) -> str | None:
    value = body.get(field)
    return None if value is None else _few_placeholders(field, _text(field, value))


def _bodies(html: str | None, text: str | None) -> dict[str, str | None]:
    if not html and not text:
        raise MissingBody
    if len((html or "").encode()) + len((text or "").encode()) > MOST_BODY:
        raise BodiesTooLarge("html" if html else "text")
    return {"html": html or None, "text": text}


def _name(value: object) -> str | None:
    return None if value is None else _text("name", value, MOST_NAME) or None


def _preview(value: object) -> str | None:
    if value is None:
        return None
    return _few_placeholders("preview_text", _text("preview_text", value, MOST_PREVIEW)) or None


def _reply_to(value: object) -> tuple[str, ...] | None:
    if value is None or value == "" or value == []:
        return None
    items: Sequence[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
    if not items:
        raise InvalidField("reply_to", "Use a string or an array of strings.")
    if len(items) > MOST_REPLY_TO:
        raise InvalidField("reply_to", f"Use at most {MOST_REPLY_TO} addresses.")
    return tuple(_address("reply_to", item) for item in items)


def _address(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidField(field, "Use a string.")
    try:
        parse_mailbox(value)
    except AddressError as wrong:
        raise InvalidField(field, wrong.reason) from None
    return value.strip()


def _topic(body: dict[str, Any]) -> UUID | None:
    return None if body.get("topic_id") == "" else reference(body, "topic_id")


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
