"""Which addresses may stand on the list."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address

NO_WILDCARD: Final = "Name each address by itself: `*` does not stand for others."


def listed_address(text: str) -> EmailAddress:
    """Return the address to put on the list, or to take off it. Raises NotAnAddress also where `*` seems to
    stand for many: a server may have such a mailbox, but nobody who writes this means it."""
    address = email_address(text)
    if "*" in address.address:
        raise NotAnAddress(NO_WILDCARD)
    return address
