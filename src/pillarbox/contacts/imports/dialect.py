"""The CSV of imports: encoding, header row, delimiter and records (contact-imports.md 5).

Bytes and text in, values out. Records are read by the csv module; what is ours is where lines end, what may
not be in a file, and at which byte a record ends.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Final

LONGEST_FIELD: Final = 1024 * 1024
LONGEST_RECORD: Final = 4 * 1024 * 1024
"""Characters; a record is held in memory as a whole."""

LONGEST_HEADER: Final = 64 * 1024
HEAD: Final = 256 * 1024
"""Octets from the start of a file in which its header row must be complete."""

MOST_COLUMNS: Final = 1000
PIECE: Final = 256 * 1024
MOST_TRIES: Final = 16
"""How often the csv module may find a quote open in a header row where the search for the delimiter found
none."""

DELIMITERS: Final = (",", ";", "\t", "|")
NO_DELIMITER: Final = "\0"
"""Of a file with one column: what can be in no text."""

BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

INVALID_ENCODING: Final = "invalid_encoding"
NUL: Final = "invalid_character"
UNCLOSED_QUOTE: Final = "unclosed_quote"
FIELD_TOO_LARGE: Final = "field_too_large"
ROW_TOO_LARGE: Final = "row_too_large"

csv.field_size_limit(LONGEST_FIELD)


class FileFault(Exception):  # noqa: N818 (a fact about the file)
    """The file cannot be read any further; `reason` is what the list of errors shows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HeaderFault(ValueError):  # noqa: N818 (a fact about the file)
    """The header row is none; the text is a sentence for the person who sent the file."""


@dataclass(frozen=True, slots=True)
class CsvHeader:
    """The header row: its trimmed cells, what divides cells in this file, and the byte at which the data
    begins."""

    cells: tuple[str, ...]
    delimiter: str
    end: int


class Utf8Check:
    """Finds out piece by piece whether a file is UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_valid = True

    def take(self, piece: bytes) -> None:
        """Check the next octets of the file."""
        if self._is_valid:
            try:
                self._decoder.decode(piece)
            except UnicodeDecodeError:
                self._is_valid = False

    def is_valid(self) -> bool:
        """Return whether all that was taken is UTF-8 and complete."""
        return self._is_valid and not self._decoder.getstate()[0]


def encoding_of(head: bytes, *, is_utf8: bool) -> tuple[str, int]:
    """Return the encoding of a file that begins so, and the octets of its byte order mark."""
    for mark, encoding in BOMS:
        if head.startswith(mark):
            return encoding, len(mark)
    return ("utf-8" if is_utf8 else "cp1252"), 0


def errors_of(encoding: str) -> str:
    """Return the decoder's treatment of errors. Half a surrogate pair of UTF-16 spoils its row, not the
    file."""
    return "surrogatepass" if encoding.startswith("utf-16") else "strict"


def octets(text: str, encoding: str) -> int:
    """Return how many octets of the file this text was."""
    if encoding == "cp1252" or (encoding == "utf-8" and text.isascii()):
        return len(text)
    return len(text.encode(encoding, errors_of(encoding)))


class CsvLines:
    """The lines of a file with their ends (LF, CRLF or CR), for csv.reader.

    `read` gives the next octets, `b""` at the end. Whoever takes records calls `ended_record` behind each of
    them. Raises FileFault where the file cannot be read on; all lines before that place come first.
    """

    def __init__(self, read: Callable[[], bytes], encoding: str, offset: int = 0) -> None:
        self._read = read
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)(errors_of(encoding))
        self._base = offset
        self._text = ""
        self._given = 0
        self._record = 0
        self._carry = ""
        self._fault: str | None = None
        self.is_over = False

    def __iter__(self) -> Iterator[str]:
        while self._next_text():
            for line in StringIO(self._text, newline=""):
                self._given += len(line)
                yield line
        self.is_over = True

    def ended_record(self) -> None:
        """Note that the characters given so far end with a whole record."""
        self._record = self._given

    @property
    def offset(self) -> int:
        """The byte of the file behind the lines that were given."""
        return self._base + octets(self._text[: self._given], self._encoding)

    def _next_text(self) -> bool:
        """Go on to the next lines; False at the end of the file."""
        self._base += octets(self._text, self._encoding)
        waiting = self._given - self._record
        self._text, self._given, self._record = "", 0, -waiting
        while not self._text:
            if waiting + len(self._carry) > LONGEST_RECORD:
                raise FileFault(ROW_TOO_LARGE)
            if self._fault is not None:
                raise FileFault(self._fault)
            piece = self._read()
            self._take(piece)
            if not piece and self._fault is None:
                self._text, self._carry = self._carry, ""
                return bool(self._text)
        return True

    def _take(self, piece: bytes) -> None:
        """Put what ends with a line end into the text, and carry the rest. A CR at the very end is carried,
        too: it may be half of a CRLF."""
        new = self._decoded(piece)
        last = len(new) - 1 if new.endswith("\r") and not self._fault else len(new)
        end = max(new.rfind("\n"), new.rfind("\r", 0, last)) + 1
        if end:
            self._text, self._carry = self._carry + new[:end], new[end:]
        elif self._carry.endswith("\r") and (new or self._fault):
            self._text, self._carry = self._carry, new
        else:
            self._carry += new

    def _decoded(self, piece: bytes) -> str:
        try:
            text = self._decoder.decode(piece, not piece)
        except UnicodeDecodeError as wrong:
            self._fault = INVALID_ENCODING
            text = wrong.object[: wrong.start].decode(self._encoding, errors_of(self._encoding))
        nul = text.find("\0")
        if nul >= 0:
            self._fault = NUL
            text = text[:nul]
        return text


def records(lines: CsvLines, delimiter: str) -> Iterator[list[str]]:
    """Yield the records of the lines, blank ones as well. Raises FileFault."""
    try:
        for record in csv.reader(lines, delimiter=delimiter):
            if lines.is_over:
                raise FileFault(UNCLOSED_QUOTE)
            lines.ended_record()
            yield record
    except csv.Error:
        raise FileFault(FIELD_TOO_LARGE) from None


def is_blank(record: list[str]) -> bool:
    """Return whether there is nothing but white space in any cell."""
    return not any(cell and not cell.isspace() for cell in record)


def header_of(head: bytes, encoding: str, mark: int, *, is_whole: bool) -> CsvHeader:
    """Return the header row of a file that begins with these octets, `is_whole` where there are no others.
    Raises HeaderFault."""
    pieces = iter([head[mark:]])

    def read() -> bytes:
        piece = next(pieces, b"")
        if not piece and not is_whole:
            raise HeaderFault(f"The header row must end within the first {HEAD} bytes of the file.")
        return piece

    lines = CsvLines(read, encoding, mark)
    every = iter(lines)
    try:
        for line in every:
            if line.isspace():
                continue
            text, delimiter, record = _row(line, every)
            if not is_blank(record):
                return _checked(text, delimiter, record, encoding, lines.offset)
    except (FileFault, csv.Error) as fault:
        raise HeaderFault(HEADER_FAULTS.get(str(fault), HEADER_FAULTS[UNCLOSED_QUOTE])) from None
    raise HeaderFault("The file has no header row.")


def _checked(text: str, delimiter: str, record: list[str], encoding: str, end: int) -> CsvHeader:
    if octets(text, encoding) > LONGEST_HEADER:
        raise FileFault(ROW_TOO_LARGE)
    if len(record) > MOST_COLUMNS:
        raise HeaderFault(f"The file has more than {MOST_COLUMNS} columns.")
    return CsvHeader(tuple(cell.strip() for cell in record), delimiter, end)


HEADER_FAULTS: Final = {
    INVALID_ENCODING: "The header row cannot be decoded.",
    NUL: "The header row contains a NUL character.",
    UNCLOSED_QUOTE: "A quote in the header row is not closed.",
    ROW_TOO_LARGE: f"The header row is larger than {LONGEST_HEADER} bytes.",
}


def _row(line: str, every: Iterator[str]) -> tuple[str, str, list[str]]:
    """Return the row that begins with this line: its text, its delimiter and its cells. A quoted cell goes on
    in the lines that follow."""
    text, tries = line, 0
    bare, is_open = _outside_quotes(line, is_open=False)
    while True:
        if len(text) > LONGEST_HEADER:
            raise FileFault(ROW_TOO_LARGE)
        if not is_open:
            delimiter = _most_frequent(bare)
            record = _whole_record(text, delimiter)
            if record is not None:
                return text, delimiter, record
            tries += 1
        if (more := next(every, None)) is None or tries > MOST_TRIES:
            raise FileFault(UNCLOSED_QUOTE)
        text += more
        added, is_open = _outside_quotes(more, is_open=is_open)
        bare += added


def _whole_record(text: str, delimiter: str) -> list[str] | None:
    """Yield the cells of a record that ends with the text; None where a quote in it is open."""
    is_over = False

    def lines() -> Iterator[str]:
        nonlocal is_over
        yield from StringIO(text, newline="")
        is_over = True

    record = next(csv.reader(lines(), delimiter=delimiter))
    return None if is_over else record


def _most_frequent(bare: str) -> str:
    counts = [bare.count(delimiter) for delimiter in DELIMITERS]
    most = max(counts)
    return DELIMITERS[counts.index(most)] if most else NO_DELIMITER


def _outside_quotes(text: str, *, is_open: bool) -> tuple[str, bool]:
    """Return the text without what is inside quotes, and whether a quote is open at its end. A quote opens at
    the start of a cell, whatever divides the cells."""
    if '"' not in text:
        return ("" if is_open else text), is_open
    kept: list[str] = []
    at, begins = 0, True
    while at < len(text):
        if is_open or (begins and text[at] == '"'):
            end = _closing(text, at if is_open else at + 1)
            if end is None:
                return "".join(kept), True
            at, begins, is_open = end, False, False
        else:
            kept.append(text[at])
            begins = text[at] in DELIMITERS
            at += 1
    return "".join(kept), False


def _closing(text: str, index: int) -> int | None:
    """Return the place behind the quote that closes; None where none does."""
    while (end := text.find('"', index)) >= 0:
        if text[end + 1 : end + 2] != '"':
            return end + 1
        index = end + 2
    return None
