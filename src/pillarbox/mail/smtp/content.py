"""Prepares content for DATA (RFC 5321, 4.5.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from pillarbox.mail.message.transfer_encoding import is_clean

BLOCK: Final = 256 * 1024
AHEAD: Final = 128 * 1024
"""Up to this size a message is made ready in full; a larger one only when it is sent."""


class SmtpContent:
    """A message that may be written: clean CRLF, no NUL. Made once, where that costs the least (a thread
    of its own, say), and used for as many transactions as there are."""

    __slots__ = ("_stuffed", "is_ascii", "octets", "size")

    def __init__(self, octets: bytes, *, is_checked: bool = False) -> None:
        """Build the content; raise ValueError for what is not clean (TRAP-08); `is_checked` says that it was
        looked at."""
        if not is_checked:
            assert_clean(octets)
        self.octets = octets
        self.is_ascii = octets.isascii()
        self.size = len(octets) + (0 if octets.endswith(b"\r\n") else 2)
        """As the server counts it (RFC 1870, 6.3): without the dots that stuffing adds."""
        self._stuffed = dot_stuffed(octets) if len(octets) <= AHEAD else None

    def at_once(self) -> bytes | None:
        """Return all of it as it goes on the wire, without the final dot; None where that is too much to be
        written at once."""
        return self._stuffed

    async def stuffed(self) -> AsyncIterator[bytes | memoryview]:
        """Yield it as it goes on the wire, in blocks, whatever its size."""
        stuffed = memoryview(dot_stuffed(self.octets))
        for start in range(0, len(stuffed), BLOCK):
            yield stuffed[start : start + BLOCK]

    async def whole(self) -> bytes:
        """Return the message as it was given."""
        return self.octets


def assert_clean(content: bytes) -> None:
    """Raise ValueError unless every CR and LF is part of a CRLF and there is no NUL (TRAP-08).

    A bare CR or LF would let a message smuggle a second one past a server that is lax about line ends.
    """
    if is_clean(content):
        return
    if b"\0" in content:
        raise ValueError("the content holds a NUL")
    raise ValueError("the content holds a bare CR or LF")


def dot_stuffed(content: bytes) -> bytes:
    """Return `content` with a dot before each line that starts with one, ending in CRLF, without the
    final dot."""
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    if stuffed.startswith(b"."):
        stuffed = b"." + stuffed
    if stuffed and not stuffed.endswith(b"\r\n"):
        stuffed += b"\r\n"
    return stuffed
