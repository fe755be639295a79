"""Unread input of a client, cut into lines at CR LF and nowhere else."""

from __future__ import annotations

CRLF = b"\r\n"


class LineBuffer:
    """A buffer. Of a line that is too long only its end is waited for, so it takes no memory (SMTP-05)."""

    __slots__ = ("_scanned", "_skipping", "pending", "was_too_long")

    def __init__(self) -> None:
        self.pending = bytearray()
        """The bytes that have come and were not taken; only for reading."""
        self._scanned = 0
        self._skipping = False
        self.was_too_long = False
        """Whether the line that `next` returned had to be cut."""

    def add(self, data: bytes) -> None:
        self.pending += data

    def clear(self) -> None:
        self.pending.clear()
        self._scanned = 0
        self._skipping = False

    def rest(self) -> bytes:
        """Return all that is left, which is no longer here then."""
        data = bytes(self.pending)
        self.clear()
        return data

    def begins_with(self, word: bytes) -> bool:
        """Return whether the next line begins with this word, in any case of letters."""
        return self.pending[: len(word)].upper() == word

    def next(self, limit: int) -> bytes | None:
        """Return the next line without its end; None while it is not complete."""
        end = self.pending.find(CRLF, self._scanned)
        if end < 0:
            if len(self.pending) > limit + 1:
                self._skipping = True
            if self._skipping:
                del self.pending[:-1]
            self._scanned = max(0, len(self.pending) - 1)
            return None
        line = bytes(self.pending[: min(end, limit)])
        del self.pending[: end + 2]
        self._scanned = 0
        self.was_too_long = self._skipping or end > limit
        self._skipping = False
        return line
