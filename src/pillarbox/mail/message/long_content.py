"""A message that is not in memory as a whole, as it may be written after DATA."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pillarbox.mail.message.files import EncodedFile
from pillarbox.mail.smtp.content import BLOCK, assert_clean

Piece = bytes | EncodedFile
"""Octets of a message that are here, or a file of it."""


class LongContent:
    """The counterpart of `Content` for a message in several pieces. The last is here and ends a line."""

    __slots__ = ("is_ascii", "pieces", "size")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """Build the content; raise ValueError for what is not clean (TRAP-08); files are clean by
        their making."""
        here = [piece for piece in pieces if isinstance(piece, bytes)]
        for piece in here:
            assert_clean(piece)
        self.pieces = tuple(pieces)
        self.is_ascii = all(piece.isascii() for piece in here)
        self.size = sum(len(piece) if isinstance(piece, bytes) else piece.size for piece in pieces)

    def at_once(self) -> None:
        """Return None: there is too much of it."""

    async def blocks(self) -> AsyncIterator[bytes]:
        """Yield all of it; no block ends between a CR and its LF."""
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                async for block in piece.blocks():
                    yield block

    async def stuffed(self) -> AsyncIterator[bytes | memoryview]:
        """Yield it as it goes on the wire, without the final dot, in blocks of a bounded size."""
        begins_line = True
        async for block in self.blocks():
            out = block.replace(b"\r\n.", b"\r\n..")
            if begins_line and block.startswith(b"."):
                out = b"." + out
            begins_line = block.endswith(b"\r\n")
            for start in range(0, len(out), 2 * BLOCK):
                yield memoryview(out)[start : start + 2 * BLOCK]

    async def whole(self) -> bytes:
        """Return the message in one piece, for those who have room for it."""
        return b"".join([block async for block in self.blocks()])
