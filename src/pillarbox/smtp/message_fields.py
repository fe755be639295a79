"""The fields of a send request from a message and its envelope (emails.md sections 1 and 10).

The envelope says who gets the mail. A recipient whom To or Cc names has that role, the others are bcc; who
stands in the header alone gets nothing. What no field stands for is left behind: the message that is sent
is composed anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.mail.message import loop_marks
from pillarbox.mail.message.address import AddressError, Mailbox, parse_mailbox, wire_local
from pillarbox.mail.message.address_fields import NamedAddress
from pillarbox.mail.message.attachments import DEFAULT_TYPE, parse_content_type
from pillarbox.mail.message.headers import LONGEST_VALUE, is_reserved
from pillarbox.mail.message.parse import AttachedPart, ParsedMessage
from pillarbox.mail.smtp.commands import Path

CLASSES = ("to", "cc", "bcc")
IDEMPOTENCY_HEADERS = frozenset(("resend-idempotency-key", "pillarbox-idempotency-key"))
HOPS_HEADER = "X-Pillarbox-Hops"
"""Mail that we send has no Received field from before. This field keeps the count, so that a loop through us
has an end. A program's own mail has passed nobody and does not get it."""

DROPPED = frozenset((*IDEMPOTENCY_HEADERS, HOPS_HEADER.lower(), loop_marks.FIELD.lower(), "reply-to"))
KEPT_PARAMETERS = ("charset", "method")
"""Of an attachment's type: without them a text cannot be read, and an invitation is none."""

REMEMBERED = 8192
_parsed = lru_cache(REMEMBERED)(parse_mailbox)
_NUMBER = re.compile(r"[0-9]{1,4}")
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]{1,60}")


def recipient(path: Path) -> Mailbox:
    """Return the mailbox that RCPT named, or raise AddressError."""
    return _parsed(f"{wire_local(path.local)}@{path.domain}")


def fields(message: ParsedMessage, envelope: Sequence[Mailbox]) -> dict[str, Any]:
    """Return the send request that this message stands for; raise problems for addresses in its header."""
    body: dict[str, Any] = dict(_classes(message, envelope))
    body["from"] = _sender(message)
    body["subject"] = message.subject
    body["text"] = message.text
    body["html"] = None if message.html is None else message.html.replace("\r\n", "\n")
    body["headers"] = _headers(message)
    if message.reply_to:
        body["reply_to"] = [str(mailbox) for mailbox in message.reply_to]
    if message.attachments:
        body["attachments"] = [_attachment(message, found) for found in message.attachments]
    return body


def idempotency_key(message: ParsedMessage) -> bytes | None:
    """Return the idempotency key in the header, stripped."""
    for header in message.headers:
        if header.name.lower() in IDEMPOTENCY_HEADERS:
            return header.raw.strip()
    return None


def hops(message: ParsedMessage) -> int:
    """Return how many servers the message has passed, also before it came through us the last time."""
    passed = 0
    for header in message.headers:
        name = header.name.lower()
        if name == "received":
            passed += 1
        elif name == HOPS_HEADER.lower() and _NUMBER.fullmatch(header.value):
            passed += int(header.value)
    return passed


def _sender(message: ParsedMessage) -> str | None:
    authors = message.authors
    if not authors.mailboxes:
        return message.first("from")
    if len(authors.mailboxes) > 1 or not authors.exact:
        raise InvalidField("from", "Use one mailbox, `user@host` or `Name <user@host>`.")
    return str(authors.mailboxes[0])


def _classes(message: ParsedMessage, envelope: Sequence[Mailbox]) -> Iterator[tuple[str, list[str]]]:
    """Yield each recipient in the role that the header gives it (to over cc over bcc), once."""
    left = {mailbox.key: mailbox.addr_spec for mailbox in envelope}
    for role, named in (("to", message.to), ("cc", message.cc)):
        texts = [str(mailbox) for mailbox, key in _keys(role, named) if left.pop(key, None) is not None]
        yield role, texts
    yield "bcc", list(left.values())


def _keys(role: str, named: Iterable[NamedAddress]) -> Iterator[tuple[NamedAddress, str]]:
    for mailbox in named:
        try:
            yield mailbox, _parsed(mailbox.address).key
        except AddressError as wrong:
            raise InvalidField(role, wrong.reason) from None


def _headers(message: ParsedMessage) -> dict[str, str]:
    """Return the custom headers; of one that stands several times the last counts, as in a JSON object."""
    kept = {}
    for header in message.headers:
        name = header.name.lower()
        if is_reserved(name) or name in DROPPED or not header.value:
            continue
        kept[header.name] = _shortened(header.value) if name == "references" else header.value
    if passed := hops(message):
        kept[HOPS_HEADER] = str(passed + 1)
        if marks := list(loop_marks.carried(message.headers))[: loop_marks.MOST_MARKS]:
            kept[loop_marks.FIELD] = " ".join(marks)
    return kept


def _shortened(references: str) -> str:
    """Return long References without ids after the first, the oldest of which go first (RFC 5322, 3.6.4 and
    RFC 5537, 3.4.4)."""
    if len(references) <= LONGEST_VALUE:
        return references
    first, *others = references.split()
    room = LONGEST_VALUE - len(first)
    kept: list[str] = []
    for message_id in reversed(others):
        room -= len(message_id) + 1
        if room < 0:
            break
        kept.append(message_id)
    return " ".join([first, *reversed(kept)])


def _attachment(message: ParsedMessage, attached_part: AttachedPart) -> dict[str, Any]:
    return {
        "filename": attached_part.filename,
        "content": message.content(attached_part),
        "content_type": _content_type(attached_part),
        "content_id": attached_part.content_id,
    }


def _content_type(attached_part: AttachedPart) -> str:
    parameters = attached_part.part.parameters
    kept = [
        f"; {name}={parameters[name]}"
        for name in KEPT_PARAMETERS
        if _PLAIN.fullmatch(parameters.get(name, ""))
    ]
    try:
        return parse_content_type(attached_part.content_type + "".join(kept))
    except ValueError:
        return DEFAULT_TYPE
