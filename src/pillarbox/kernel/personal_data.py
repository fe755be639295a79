"""The data of one person that a slice holds: read for its export, and erased.

A slice says so in its `PLUGIN` (`Slice.personal_data`). Rows are found by a pattern, because an address
stands in texts of many forms: in JSON, in a URL, in a reply of a server. What is compared first is a short
text of the local part, and one of the domain. That costs little; a pattern needs two seconds for ten
megabytes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

ERASED_ADDRESS: Final = "erased@erased.invalid"
"""Stands where the address of an erased person stood. No server has the domain (RFC 2606)."""

BATCH: Final = 500
"""Rows that one step looks at."""

_PLAIN: Final = re.compile(r"[a-z0-9]+")
_SIGN: Final = "(?:2[13467abde]|5[ef]|7e)"
"""Signs of a local part, as URLs and JSON encode them."""
_BEFORE: Final = (
    r"(?:(?<![a-z0-9.!#$*+^_~-])(?<![a-z0-9]['&])"
    rf"|(?<=%[0-9a-f][0-9a-f])(?<![a-z0-9]%{_SIGN})"
    rf"|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{{4}})(?<![a-z0-9]\\u00{_SIGN}))"
)
"""The place where an address begins. A letter with a sign before it belongs to the address of somebody else:
o'hara is not hara."""
_AFTER: Final = r"(?![a-z0-9-]|\.[a-z0-9])"
_QUOTED: Final = r'([^"\\]|\\.)*'


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSubject:
    """Whose data it is: `address` as it is compared, `given` as it was written where that differs, and the
    contact of the address where there is one.

    `pattern` is a regular expression of PostgreSQL that finds the address, and no longer one that ends like
    it; `quoted` finds the JSON strings that have it. `needle` is for LIKE, and fits every text in lower
    case that has it.
    """

    address: str
    given: str | None
    contact_id: UUID | None
    pattern: str
    quoted: str
    needle: str

    @classmethod
    def of(cls, address: str, given: str | None = None, contact_id: UUID | None = None) -> DataSubject:
        """Return the person of an address in the form that is compared."""
        local, _, domain = address.rpartition("@")
        domains = [domain] if given is None else [domain, given.rpartition("@")[2]]
        names = "|".join(_escaped(name) for name in domains)
        pattern = f"{_BEFORE}{_local(local)}(?:@|%40)(?:{names}){_AFTER}"
        return cls(
            address=address,
            given=given,
            contact_id=contact_id,
            pattern=pattern,
            quoted=f'"{_QUOTED}{pattern}{_QUOTED}"',
            needle=_longest(local) if given else f"{_longest(local)}%{_longest(domain)}",
        )

    @property
    def found_by(self) -> tuple[str, str]:
        """The arguments of a statement that finds the address in a text."""
        return self.needle, self.pattern


def _longest(text: str) -> str:
    """Return the longest part of a text without special characters."""
    found: list[str] = _PLAIN.findall(text)
    return max(found or [""], key=len)


def _local(text: str) -> str:
    """Return the pattern of a local part, whose special characters URLs and JSON encode."""
    return "".join(_character(char) for char in text)


def _character(char: str) -> str:
    if char.isascii() and (char.isalnum() or char in "_-~"):
        return char
    before, after = {'"': (r"\\?", ""), "\\": ("", "{1,2}")}.get(char, ("", ""))
    return f"(?:{before}{_escaped(char)}{after}|{_encoded(char)})"


def _encoded(char: str) -> str:
    return "".join(f"%{octet:02x}" for octet in char.encode("utf-8", "surrogatepass"))


def _escaped(text: str) -> str:
    """Return the text as a pattern of itself."""
    return "".join(
        char if char.isalnum() or char == "_" or not char.isascii() else f"\\{char}" for char in text
    )


class ErasedRows(NamedTuple):
    """The result of one step: how many rows it changed or removed, and the place of the next step; None where
    all is done. `waiting` rows could not be erased yet, because mail to the person is under way. `blobs`
    have no
    row any more."""

    place: str | None
    rows: int = 0
    waiting: int = 0
    blobs: Sequence[str | None] = ()


EraseStep = Callable[[TeamDb, DataSubject, str, datetime], Awaitable[ErasedRows]]
"""Erases some rows, in the transaction that the database stands for, from a place on ("" is the first)."""

ReadPerson = Callable[[TeamDb, DataSubject], AsyncIterator[Any]]
"""Yields what is held about a person, as values for JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """One kind of data that a slice holds about people. Those of the least `order` are erased first; in the
    file `name` is the key, and without `read` the file does not have it. `eraser` is given the container."""

    name: str
    order: int
    eraser: Callable[[Any], EraseStep]
    read: ReadPerson | None = None


def place_of(last: UUID | None, count: int, limit: int) -> str | None:
    """Return the place behind a row; None where fewer rows than asked for were there."""
    return None if last is None or count < limit else str(last)


def id_at(place: str) -> UUID:
    """Return the id that a place stands for; the least one at the beginning."""
    return UUID(place) if place else UUID(int=0)


class WalkedRows(NamedTuple):
    """Rows that a statement looked at, the last of them, and how many it changed."""

    last: UUID | None
    walked: int
    changed: int

    @property
    def step(self) -> ErasedRows:
        """The result of a step that did this alone."""
        return ErasedRows(place_of(self.last, self.walked, BATCH), self.changed)
