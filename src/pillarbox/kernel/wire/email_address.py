"""Addresses of people as the audience keeps them: contacts, suppressions, imports (contacts.md 0.6)."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.mail.message.address import FORMS, AddressError, parse_mailbox

BARE = "Use a bare address such as `user@host`, without a name."


class NotAnAddress(ValueError):  # noqa: N818 - a fact about the text
    """`reason` is a sentence for the person who sent it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class EmailAddress(NamedTuple):
    """`address` is compared: all of it in lower case, the domain in A-labels. `given` is what was given, in
    lower case, where that differs: a domain that is not ASCII."""

    address: str
    given: str | None

    @property
    def shown(self) -> str:
        """The spelling that answers and pages show."""
        return self.given or self.address


def email_address(text: str) -> EmailAddress:
    """Return the address that `text` is, blanks around it aside. Raise NotAnAddress where it is none."""
    text = unicodedata.normalize("NFC", text.strip())
    if text.endswith(">"):
        raise NotAnAddress(BARE)
    try:
        address = parse_mailbox(text).key
    except AddressError as wrong:
        raise NotAnAddress(wrong.reason.removesuffix(FORMS) + BARE) from wrong
    given = unicodedata.normalize("NFC", text.lower())
    # What is shown names the same address again. Small letters may need more octets than their capitals.
    shown = [one for one in (given, address) if text.isascii() or _has_key(one, address)]
    if not shown:
        raise NotAnAddress(f"It is too long in lower case. {BARE}")
    return EmailAddress(address, None if shown[0] == address else given)


def _has_key(text: str, key: str) -> bool:
    try:
        return parse_mailbox(text).key == key
    except AddressError:
        return False


def identifier(text: str) -> UUID | str | None:
    """Return the address (compared form) or id that a path names; None for neither, as for one unknown."""
    if "@" in text:
        try:
            return email_address(text).address
        except NotAnAddress:
            return None
    return UUID(text) if well_formed(text) else None
