"""The content of a version of a template, and what it has to be (templates.md 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.mail.message.encoded_words import FORBIDDEN
from pillarbox.mail.placeholders.parsing import CONTACT_PATH, MOST, RESERVED, placeholders
from pillarbox.templates.variables import Variable

MOST_SUBJECT: Final = 998
MOST_BODY: Final = 10 * 1024 * 1024
"""Octets of html and text together."""
MOST_REPLIES: Final = 50


@dataclass(frozen=True, slots=True)
class TemplateContent:
    """The content of a version. `text` is null where it is made from the html, empty where mail has none."""

    sender: str | None
    subject: str | None
    reply_to: tuple[str, ...] | None
    html: str
    text: str | None
    variables: tuple[Variable, ...]
    source: str | None = None
    """The document that the html was made of, as `documents.source` keeps it."""

    @property
    def size(self) -> int:
        """Characters of the bodies."""
        return len(self.html) + len(self.text or "")

    @property
    def is_blank(self) -> bool:
        """Whether nothing can be sent of it."""
        return not self.html.strip()


class UndeclaredVariable(InvalidField):
    def __init__(self, field: str, key: str) -> None:
        super().__init__(field, f"The variable `{key}` is used but not declared.")


class TemplateTooLarge(InvalidField):
    def __init__(self) -> None:
        super().__init__("html", "The bodies may have 10 MB together.")


def sender(value: str) -> str | None:
    """Return the sender as it is stored; it is checked as in mail, and has no placeholders."""
    if not value:
        return None
    if next(placeholders(value), None) is not None:
        raise InvalidField("from", "Placeholders are not allowed in it.")
    return mailbox(value, "from")


def replies(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the addresses for answers as they are stored."""
    if isinstance(value, str):
        return (mailbox(value, "reply_to"),)
    return tuple([mailbox(one, "reply_to") for one in value])


def mailbox(value: str, field: str) -> str:
    try:
        parse_mailbox(value)
    except AddressError as wrong:
        raise InvalidField(field, wrong.reason) from None
    return value.strip()


def subject(value: str) -> str | None:
    if FORBIDDEN.search(value):
        raise InvalidField("subject", "Line breaks and control characters are not allowed.")
    return value or None


def check(content: TemplateContent) -> None:
    """Raise where the content as a whole is not as it has to be: too large, with too many placeholders, or
    with one that nothing is declared for."""
    if len(content.html.encode()) + len((content.text or "").encode()) > MOST_BODY:
        raise TemplateTooLarge
    known = {variable.key for variable in content.variables}
    for field, part in (("html", content.html), ("text", content.text), ("subject", content.subject)):
        found = list(islice(placeholders(part or ""), MOST + 1))
        if len(found) > MOST:
            raise InvalidField(field, f"Use at most {MOST} placeholders.")
        for each in found:
            name = each.name
            if name not in known and name not in RESERVED and not name.startswith(CONTACT_PATH):
                raise UndeclaredVariable(field, name)
