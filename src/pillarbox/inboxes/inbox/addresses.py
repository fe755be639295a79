"""Addresses and names of inboxes (inboxes.md 3.1). Pure."""

from __future__ import annotations

import base64
import re
import unicodedata
from typing import Final, NamedTuple

from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.mail.message.address import AddressError, parse_domain

LONGEST_NAME: Final = 64
LONGEST_FROM_NAME: Final = 78
LONGEST_LOCAL: Final = 64

_LOCAL: Final = re.compile(r"[a-z0-9_%+-]+(?:\.[a-z0-9_%+-]+)*", re.ASCII)
_REFUSED: Final = re.compile(r"[:<>\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ADDRESS: Final = re.compile(r"(?<=[^\s@])@([^\s@\"'(),;\\]+)")
_RANDOM_OCTETS: Final = 15

FORM: Final = (
    "Use an address such as `help@your-domain.example`; before the `@` are letters, digits and `._%+-`, at "
    "most 64, with no dot at either end and no two in a row."
)


class InboxAddress(NamedTuple):
    """`domain` is in A-labels; all of it is in lower case."""

    local: str
    domain: str

    @property
    def address(self) -> str:
        return f"{self.local}@{self.domain}"


def inbox_address(text: str) -> InboxAddress:
    """Return the address that an inbox may have, or raise a 422."""
    local, _, domain = text.strip().lower().rpartition("@")
    if len(local) > LONGEST_LOCAL or _LOCAL.fullmatch(local) is None:
        raise InvalidField("email_address", FORM)
    try:
        return InboxAddress(local, parse_domain(domain))
    except AddressError:
        raise InvalidField("email_address", FORM) from None


def meant_by(address: str) -> tuple[str, ...]:
    """Return the addresses of inboxes that an address may mean, the nearest first. Dots count, and what
    follows a plus does not where the address itself is that of no inbox."""
    exact = address.lower()
    local, _, domain = exact.rpartition("@")
    base = local.partition("+")[0]
    return (exact,) if not base or base == local else (exact, f"{base}@{domain}")


def inbox_name(text: str) -> str:
    """Return the name of an inbox without the blanks around it, which may be nothing; 422 where it is too
    long."""
    name = text.strip()
    if len(name) > LONGEST_NAME:
        raise InvalidField("name", f"Use at most {LONGEST_NAME} characters.")
    return name


def from_name(text: str) -> str:
    """Return the name that recipients see, or raise a 422."""
    if len(text) > LONGEST_FROM_NAME:
        raise InvalidField("from_name", f"Use at most {LONGEST_FROM_NAME} characters.")
    if _REFUSED.search(text):
        raise InvalidField(
            "from_name", "It may not contain `:`, `<`, `>`, line breaks or control characters."
        )
    return text


def domains_in(text: str) -> list[str | None]:
    """Return the domains of the addresses inside a name, in A-labels; None for each that is no domain.
    Characters that look like `@` count as one."""
    return [_domain(found) for found in _ADDRESS.findall(unicodedata.normalize("NFKC", text))]


def receiving_address(random: bytes, inbound_domain: str) -> str:
    """Return the address at which a forwarding inbox receives; `random` is 15 octets or more."""
    label = base64.b32encode(random[:_RANDOM_OCTETS]).decode().lower()
    return f"{label}@{inbound_domain}"


def _domain(text: str) -> str | None:
    try:
        return parse_domain(text.rstrip("."))
    except AddressError:
        return None
