"""Marks by which we recognise mail that was here before (RFC 5321, 6.3; SMTP-14).

    marks.of("help@harbor.example")                  # stands in our Received field of mail for this address
    marks.is_loop(["help@harbor.example"], headers)  # True: it comes to this address for the second time

A mark says which address a mail was received for, to us alone: it is a MAC, so nobody can make one up, and
who forwards a mail tells nobody for whom it was. It travels in our Received field; where that is taken off,
in submission, in a field of its own.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pillarbox.mail.message.header_block import HeaderField

FIELD = "X-Pillarbox-Loop"
MOST_MARKS = 30
"""Of one mail that is submitted again; as many servers it has passed then."""

REMEMBERED = 4096
"""Marks that need not be made again: mail comes to the same addresses."""

_BYTES = 15
_COMMENT = re.compile(rb"\(mark((?:[ \t\r\n]+[a-z2-7]{24}){1,200})\)")
_MARK = re.compile(r"[a-z2-7]{24}")
_MARKS = re.compile(r"[a-z2-7]{24}(?: [a-z2-7]{24})*")


class LoopMarks:
    """Makes and finds marks. The first key makes them; those of every key are found."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("at least one key is needed")
        self._keys = tuple(keys)

    def of(self, address: str) -> str:
        """Return the mark of an address, in any case of letters; 24 characters."""
        return _mark(self._keys[0], address)

    def comment(self, addresses: Iterable[str]) -> str:
        """Return the comment in the Received field of a mail for these addresses."""
        marks = "\r\n\t".join(map(self.of, addresses))
        return f"(mark {marks})"

    def is_loop(self, addresses: Iterable[str], headers: Iterable[HeaderField]) -> bool:
        """Return whether the mail was received for one of these addresses before."""
        known = carried(headers)
        return bool(known) and any(_mark(key, a) in known for a in addresses for key in self._keys)


def carried(headers: Iterable[HeaderField]) -> dict[str, None]:
    """Return the marks that a mail carries, each once, from the top; whose they are is not known."""
    found: dict[str, None] = {}
    for header in headers:
        name = header.name.lower()
        if name == "received" and b"(mark" in header.raw:
            for comment in _COMMENT.finditer(header.raw):
                found.update(dict.fromkeys(_MARK.findall(comment[1].decode("ascii"))))
        elif name == FIELD.lower() and _MARKS.fullmatch(header.value):
            found.update(dict.fromkeys(header.value.split()))
    return found


@lru_cache(REMEMBERED)
def _mark(key: bytes, address: str) -> str:
    octets = address.lower().encode("utf-8", "replace")
    return b32encode(hmac.digest(key, b"loop 1" + octets, "sha256")[:_BYTES]).decode("ascii").lower()
