"""Reading the text of a message up to its end (RFC 5321 4.1.1.4 and 4.5.2).

Only CR LF `.` CR LF ends it. Of each line that begins with a dot, one dot is taken away. What does not fit
in memory goes to a file while it is read, so a session needs little memory whatever is sent to it; what is
larger than the listener takes is read to its real end and dropped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

END = b"\r\n.\r\n"
IN_MEMORY = 512 * 1024
BLOCK = 256 * 1024

_HELD = (b"\r\n.\r", b"\r\n.", b"\r\n", b"\r")
"""The beginnings of the end of the text; they are held back until more has come."""


class ReceivedText:
    """A message as it was sent: lines ended by CR LF, no dots doubled. Close it when it is done with."""

    __slots__ = ("_file", "_text", "size")

    def __init__(self, text: bytes, file: IO[bytes] | None, size: int) -> None:
        self._text = text
        self._file = file
        self.size = size

    @property
    def in_memory(self) -> bool:
        return self._file is None

    def read(self) -> bytes:
        """Return all of it, in memory."""
        if self._file is None:
            return self._text
        self._file.seek(0)
        return self._file.read()

    def blocks(self) -> Iterator[bytes]:
        """Yield all of it, in blocks."""
        if self._file is None:
            yield self._text
            return
        self._file.seek(0)
        while block := self._file.read(BLOCK):
            yield block

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class DataIntake:
    """One message on its way in. `most` is the largest size in octets that is kept. `folder` is where a large
    one waits, by default where the system has its temporary files, which may be in memory."""

    __slots__ = (
        "_carry",
        "_file",
        "_first",
        "_folder",
        "_most",
        "_parts",
        "_size",
        "bare",
        "normalize",
        "total",
    )

    def __init__(self, limit: int, *, normalize: bool = False, folder: str | None = None) -> None:
        self._most = limit
        self._folder = folder
        self._carry = b"\r\n"
        self._first = True
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._size = 0
        self.total = 0
        """Octets that have come."""
        self.bare = False
        """True once a bare CR, a bare LF or a NUL was seen."""
        self.normalize = normalize
        """Take a bare LF for a line end inside the text (never as part of the end)."""

    @property
    def too_big(self) -> bool:
        return self.total > self._most

    def feed(self, data: bytes) -> bytes | None:
        """Take what came; None while the end is not there, then what came after it."""
        text = self._carry + data
        end = text.find(END)
        if end >= 0:
            # The line end before the dot belongs to the text, unless there is no text at all.
            self._keep(text[: end + 2])
            self._carry = b""
            return text[end + len(END) :]
        held = next((len(part) for part in _HELD if text.endswith(part)), 0)
        cut = len(text) - held
        self._carry = text[cut:]
        if cut:
            self._keep(text[:cut])
        return None

    def _keep(self, text: bytes) -> None:
        if not self.bare:
            self.bare = _is_bare(text, self.normalize)
        if b"\r\n." in text:
            text = text.replace(b"\r\n.", b"\r\n")
        if self.normalize:
            text = text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        if self._first:
            # The line end in front stood for the beginning of the first line.
            text = text[2:]
            self._first = False
        self.total += len(text)
        if self.too_big or self.bare:
            self._drop()
            return
        self._parts.append(text)
        self._size += len(text)
        if self._size > IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="pillarbox-", dir=self._folder)  # noqa: SIM115 - kept
        self._file.write(b"".join(self._parts))
        self._parts.clear()
        self._size = 0

    def _drop(self) -> None:
        self._parts.clear()
        self._size = 0
        self.close()

    def content(self) -> ReceivedText:
        """Return the content, once `feed` has found the end."""
        if self._file is None:
            text = b"".join(self._parts)
            return ReceivedText(text, None, len(text))
        self._spill()
        file, self._file = self._file, None
        return ReceivedText(b"", file, self.total)

    def close(self) -> None:
        """Forget it all."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _is_bare(text: bytes, normalize: bool) -> bool:
    """Return whether the text has a NUL, a CR that no LF follows or an LF without CR; the last may
    be normalized."""
    pairs = text.count(b"\r\n")
    if text.count(b"\r") != pairs or b"\0" in text:
        return True
    return not normalize and text.count(b"\n") != pairs
