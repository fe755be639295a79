"""Addresses of a CSV file, row by row: what is wrong with a row costs that row alone, and no row more memory
than a line may be long."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO, Final, NamedTuple

from pillarbox.kernel.wire.email_address import NotAnAddress
from pillarbox.suppressions.addresses import listed_address
from pillarbox.suppressions.changes import ORIGINS

LONGEST_LINE: Final = 64 * 1024
LONGEST_ROW: Final = 2 * LONGEST_LINE
LONGEST_SKIPPED: Final = 64 * 1024 * 1024
TOO_LONG: Final = "The row is too long: a quote may not be closed."
DELIMITERS: Final = ",;\t"
NAMES: Final = frozenset({"email", "e-mail", "email address", "email_address", "address", "recipient"})
"""The names of the column of addresses, in files of other programs too."""


class NotReadable(ValueError):  # noqa: N818 - a fact about the file
    """The file is none that addresses can be read from; the message is a sentence."""


class AddressRow(NamedTuple):
    """An address to be put on the list."""

    line: int
    address: str
    given: str | None
    origin: str


class RefusedRow(NamedTuple):
    """A row that has none, as it stands in the file."""

    line: int
    text: str
    reason: str


class CsvRows:
    """Reads a file; `octets` is how far it is."""

    def __init__(self, file: BinaryIO, column: str | None, origin: str | None) -> None:
        self._file = file
        self._column = column
        self._origin = origin
        self._wrong: list[RefusedRow] = []
        self._line = 0
        self.octets = 0

    def __iter__(self) -> Iterator[AddressRow | RefusedRow]:
        """Yield every row but that of the names and empty ones. Raises NotReadable, mostly before the
        first."""
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            yield from self._taken()
            return
        delimiter = max(DELIMITERS, key=first.count)
        rows = self._rows(first, lines, delimiter)
        head = next((row for row in rows if any(row)), [])
        place, origin_place = self._places(head)
        if place is None:
            place, origin_place = 0, None
            yield self._read(head, place, origin_place)
        for cells in rows:
            yield from self._taken()
            if any(cell.strip() for cell in cells):
                yield self._read(cells, place, origin_place)
        yield from self._taken()

    def _rows(self, first: str, lines: Iterator[str], delimiter: str) -> Iterator[Sequence[str]]:
        """Yield the cells of each row. A quote that is not closed takes rows with it only up to a limit."""
        source = chain([first], lines)
        while True:
            began = self._line + 1
            try:
                yield next(csv.reader(_limited(source), delimiter=delimiter, skipinitialspace=True))
            except StopIteration:
                return
            except csv.Error:
                self._wrong.append(RefusedRow(began, "", TOO_LONG))

    def _places(self, head: Sequence[str]) -> tuple[int | None, int | None]:
        """Return the columns of the addresses and the origins; None where the first row has no names."""
        names = [cell.strip().lower() for cell in head]
        wanted = {self._column.strip().lower()} if self._column is not None else NAMES
        found = [place for place, name in enumerate(names) if name in wanted]
        if found:
            return found[0], names.index("origin") if "origin" in names else None
        if self._column is not None:
            raise NotReadable(f"The first row has no column {self._column!r}.")
        if not head or "@" not in head[0]:
            raise NotReadable(
                "The first row has no column `email` and no address; --column names the column."
            )
        return None, None

    def _read(self, cells: Sequence[str], place: int, origin_place: int | None) -> AddressRow | RefusedRow:
        text = cells[place] if place < len(cells) else ""
        origin = self._origin
        if origin is None:
            has_one = origin_place is not None and origin_place < len(cells)
            origin = (
                cells[origin_place].strip().lower() if has_one and origin_place is not None else ""
            ) or "manual"
        if origin not in ORIGINS:
            return RefusedRow(
                self._line, text, f"The origin {origin[:50]!r} is none: bounce, complaint or manual."
            )
        try:
            found = listed_address(text)
        except NotAnAddress as wrong:
            return RefusedRow(self._line, text, wrong.reason)
        return AddressRow(self._line, found.address, found.given, origin)

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the file that are text."""
        while line := self._file.readline(LONGEST_LINE):
            self._line += 1
            self.octets += len(line)
            if self._line == 1:
                line = _without_mark(line)
            if len(line) >= LONGEST_LINE and not line.endswith(b"\n"):
                self._skip_rest()
                self._wrong.append(
                    RefusedRow(self._line, "", f"The line is longer than {LONGEST_LINE:,} octets.")
                )
                continue
            try:
                text = line.decode()
            except UnicodeDecodeError:
                shown = line.decode("ascii", "replace").strip()
                self._wrong.append(RefusedRow(self._line, shown, "The line is not text in UTF-8."))
                continue
            if "\0" in text:
                self._wrong.append(
                    RefusedRow(self._line, text.replace("\0", "\ufffd").strip(), "The line has a NUL.")
                )
                continue
            yield text

    def _skip_rest(self) -> None:
        """Read on to the end of a line that is too long, unless it seems to have none."""
        begin = self.octets
        while rest := self._file.readline(LONGEST_LINE):
            self.octets += len(rest)
            if rest.endswith(b"\n"):
                return
            if self.octets - begin > LONGEST_SKIPPED:
                raise NotReadable(f"Line {self._line:,} does not end; the file is no CSV file.")

    def _taken(self) -> list[RefusedRow]:
        """Return the rows that were refused since the last call."""
        taken, self._wrong = self._wrong, []
        return taken


def _limited(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of one row; csv.Error where there seem to be too many. The limit of the csv module is
    of a whole process, and others have other wishes."""
    length = 0
    for line in lines:
        length += len(line)
        if length > LONGEST_ROW:
            raise csv.Error
        yield line


def _without_mark(line: bytes) -> bytes:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NotReadable("The file is in UTF-16; save it in UTF-8.")
    if line.startswith((b"PK\x03\x04", b"\x1f\x8b")):
        raise NotReadable("The file is packed, or a workbook; save it as CSV.")
    return line.removeprefix(b"\xef\xbb\xbf")
