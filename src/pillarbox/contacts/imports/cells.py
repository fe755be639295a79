"""Parses cells (contact-imports.md 5, "Cell values"): each text becomes a value, or the reason of a row
error."""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Final, NamedTuple

from pillarbox.kernel.wire.email_address import NotAnAddress, email_address

MISSING_EMAIL: Final = "missing_email"
INVALID_EMAIL: Final = "invalid_email"
INVALID_UNSUBSCRIBED: Final = "invalid_unsubscribed"
INVALID_NUMBER: Final = "invalid_number"
INVALID_BOOLEAN: Final = "invalid_boolean"
VALUE_TOO_LONG: Final = "value_too_long"
INVALID_CHARACTER: Final = "invalid_character"

LONGEST_NAME: Final = 255
LONGEST_STRING: Final = 2000
LARGEST: Final = 2**53 - 1
LONGEST_NUMBER: Final = 400
"""Characters; a number of the allowed size needs no more."""

TRUE: Final = frozenset(("true", "1", "yes", "y", "t"))
FALSE: Final = frozenset(("false", "0", "no", "n", "f"))
UNSUBSCRIBED: Final = TRUE | {"unsubscribed"}
SUBSCRIBED: Final = FALSE | {"subscribed"}
LONGEST_WORD: Final = 12
_BOOLEANS: Final = dict.fromkeys(TRUE, "true") | dict.fromkeys(FALSE, "false")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")
_LINE_BREAKS = re.compile(r"[\r\n]+")
_SURROGATES = re.compile("[\ud800-\udfff]")

# Most addresses. Whatever has another form is left to the one parser that there is; a test compares the two.
_PLAIN_ADDRESS = re.compile(r"[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]{2,24}")
_PLAIN_LENGTH: Final = 64

_quoted: Final[Callable[[str], str]] = encode_basestring


class RowFault(Exception):  # noqa: N818 (a fact about the row)
    """The row is not applied; `reason` is what the list of errors shows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ImportedAddress(NamedTuple):
    """An address as it is compared, and as it was given where that differs."""

    address: str
    given: str | None


def plain_address(cell: str) -> str | None:
    """Return the address in a trimmed cell of the usual form; None of another form."""
    if len(cell) <= _PLAIN_LENGTH and cell.isascii() and _PLAIN_ADDRESS.fullmatch(low := cell.lower()):
        return low
    return None


def address_of(cell: str) -> ImportedAddress:
    """Return the address in a trimmed cell."""
    if not cell:
        raise RowFault(MISSING_EMAIL)
    if (plain := plain_address(cell)) is not None:
        return ImportedAddress(plain, None)
    if _SURROGATES.search(cell):
        raise RowFault(INVALID_CHARACTER)
    try:
        found = email_address(cell)
    except NotAnAddress:
        raise RowFault(INVALID_EMAIL) from None
    return ImportedAddress(found.address, found.given)


def name_of(cell: str) -> str:
    """Return a name; line breaks in it become one space."""
    if not cell.isprintable():
        cell = _storable(cell)
        if "\n" in cell or "\r" in cell:
            cell = _LINE_BREAKS.sub(" ", cell)
    if len(cell) > LONGEST_NAME:
        raise RowFault(VALUE_TOO_LONG)
    return cell


def is_unsubscribed(cell: str) -> bool:
    """Return whether a word means that the contact is unsubscribed from everything; RowFault where it means
    neither."""
    return _one_of(cell, UNSUBSCRIBED, SUBSCRIBED, INVALID_UNSUBSCRIBED)


def boolean_of(cell: str) -> str:
    """Return a truth value, as JSON."""
    if (word := _BOOLEANS.get(cell)) is not None:
        return word
    return "true" if _one_of(cell, TRUE, FALSE, INVALID_BOOLEAN) else "false"


def string_of(cell: str) -> str:
    """Return a text, as JSON."""
    if len(cell) > LONGEST_STRING:
        raise RowFault(VALUE_TOO_LONG)
    return _quoted(cell if cell.isascii() else _storable(cell))


def number_of(cell: str) -> str:
    """Return a number, as JSON."""
    if _WHOLE.fullmatch(cell):
        return cell if cell != "-0" else "0"
    if len(cell) > LONGEST_NUMBER or _NUMBER.fullmatch(cell) is None:
        raise RowFault(INVALID_NUMBER)
    value = float(cell)
    if not abs(value) <= LARGEST:
        raise RowFault(INVALID_NUMBER)
    return repr(int(value)) if value.is_integer() else repr(value)


PROPERTY_TYPES: Final = {"string": string_of, "number": number_of, "boolean": boolean_of}


def _one_of(cell: str, yes: frozenset[str], no: frozenset[str], otherwise: str) -> bool:
    word = cell.lower() if len(cell) <= LONGEST_WORD else ""
    if word in yes:
        return True
    if word in no:
        return False
    raise RowFault(otherwise)


def _storable(cell: str) -> str:
    if _SURROGATES.search(cell):
        raise RowFault(INVALID_CHARACTER)
    return cell
