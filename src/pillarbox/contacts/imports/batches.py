"""Batches of rows, ready for the database: text in, lines for COPY and counts out.

A batch has each address once. Rows of the same address are put together with the first, in the order of the
file. That comes to the same as applying them one by one: a new contact has the first row's values and then
what later rows give, one that exists gets what any of them gives, the last one winning. Under `skip` the
first row alone counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pillarbox.contacts.imports import cells
from pillarbox.contacts.imports.cells import RowFault
from pillarbox.contacts.imports.dialect import CsvLines, FileFault, is_blank, records

MOST_ROWS: Final = 4_000
MOST_CHARACTERS: Final = 1024 * 1024
LONGEST_SHOWN: Final = 320

# In COPY's text format these would end or change a value.
_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
NULL: Final = "\\N"


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """How the records of one file are read. Properties are numbers of definitions with the column and the
    type of each; `row` data rows are before `offset`, and `errors_left` more errors are told."""

    encoding: str
    delimiter: str
    fields: dict[str, int]
    properties: Sequence[tuple[int, int, str]]
    skip: bool
    offset: int
    row: int
    errors_left: int


@dataclass(frozen=True, slots=True)
class ImportRowError:
    """A data row that is not applied."""

    row: int
    email: str | None
    reason: str


@dataclass(slots=True)
class ImportBatch:
    """`rows` data rows up to the byte `offset` of the file, `failed` of them not applied, of which the first
    are told in `errors`. `lines` are for COPY, one for each address. `given` of them say something about the
    subscription. `row` is the number of the last row, `at` the milliseconds since 1970 in the ids, `fault`
    why the file is not read any further."""

    rows: int = 0
    failed: int = 0
    given: int = 0
    staged: int = 0
    row: int = 0
    offset: int = 0
    at: int = 0
    is_last: bool = False
    fault: str | None = None
    errors: list[ImportRowError] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Row:
    """The values that a file gives for one address so far; no text is empty. The key of a property is
    `"NUMBER":`."""

    given: str | None
    first_name: str | None
    last_name: str | None
    unsubscribed: bool | None
    properties: dict[str, str]


def batches(
    read: Callable[[], bytes],
    plan: ImportPlan,
    now: Callable[[], int],
    max_rows: Callable[[], int] = lambda: MOST_ROWS,
) -> Iterator[ImportBatch]:
    """Yield the batches of a file from the plan's offset on; the last one says that it is. Before each,
    `max_rows` says how many rows it may have, up to `MOST_ROWS`."""
    lines = CsvLines(read, plan.encoding, plan.offset)
    reader = _RowReader(plan)
    source = records(lines, plan.delimiter)
    while True:
        batch = reader.next(source, lines, max_rows())
        batch.at = now()
        batch.given = reader.given
        batch.lines = reader.staged(batch.at)
        batch.staged = len(batch.lines)
        yield batch
        if batch.is_last:
            return


class _RowReader:
    """Makes rows of records."""

    def __init__(self, plan: ImportPlan) -> None:
        self._skip = plan.skip
        self._row = plan.row
        self._errors_left = plan.errors_left
        self._email = plan.fields["email"]
        self._first = plan.fields.get("first_name")
        self._last = plan.fields.get("last_name")
        self._unsubscribed = plan.fields.get("unsubscribed")
        self._properties = [
            (f'"{number}":', column, cells.PROPERTY_TYPES[kind]) for number, column, kind in plan.properties
        ]
        columns = [*plan.fields.values(), *(column for _, column, _ in plan.properties)]
        self._width = max(columns) + 1
        self._found: dict[str, _Row] = {}

    def next(self, source: Iterator[list[str]], lines: CsvLines, limit: int) -> ImportBatch:
        """Read until the batch has so many rows, or is large, or the file ends."""
        batch = ImportBatch()
        self._found = {}
        size = 0
        try:
            for record in source:
                if len(record) < self._width:
                    record += [""] * (self._width - len(record))
                cell = record[self._email]
                if (not cell or cell.isspace()) and is_blank(record):
                    continue
                self._row += 1
                batch.rows += 1
                try:
                    size += self._take(record)
                except RowFault as fault:
                    self._failed(batch, record[self._email], fault.reason)
                if batch.rows >= limit or size >= MOST_CHARACTERS:
                    break
            else:
                batch.is_last = True
        except FileFault as fault:
            batch.is_last, batch.fault = True, fault.reason
        batch.row, batch.offset = self._row, lines.offset
        return batch

    def _take(self, record: list[str]) -> int:
        """Apply a row; about how many characters it has."""
        cell = record[self._email].strip()
        given = None
        if (address := cells.plain_address(cell)) is None:
            address, given = cells.address_of(cell)
        first = last = unsubscribed = None
        if self._first is not None and (cell := record[self._first].strip()):
            first = cells.name_of(cell)
        if self._last is not None and (cell := record[self._last].strip()):
            last = cells.name_of(cell)
        if self._unsubscribed is not None and (cell := record[self._unsubscribed].strip()):
            unsubscribed = cells.is_unsubscribed(cell)
        properties: dict[str, str] = {}
        size = 200
        for key, column, made in self._properties:
            if cell := record[column].strip():
                properties[key] = value = made(cell)
                size += len(value)
        row = _Row(
            given=given, first_name=first, last_name=last, unsubscribed=unsubscribed, properties=properties
        )
        if (before := self._found.setdefault(address, row)) is not row and not self._skip:
            _merge(before, row)
        return size

    def _failed(self, batch: ImportBatch, cell: str, reason: str) -> None:
        batch.failed += 1
        if self._errors_left > 0:
            self._errors_left -= 1
            batch.errors.append(ImportRowError(self._row, shown(cell), reason))

    @property
    def given(self) -> int:
        """How many of the addresses that were read say something about the subscription."""
        return sum(row.unsubscribed is not None for row in self._found.values())

    def staged(self, now: int) -> list[str]:
        """Return the lines for COPY, in the order of addresses: locks are taken in one order."""
        found, self._found = self._found, {}
        make_id = ids_of(now)
        return [_line(make_id(at), address, found[address]) for at, address in _numbered(found)]


def _numbered(rows: dict[str, _Row]) -> Iterator[tuple[int, str]]:
    """Yield the addresses in order, each with the number of its row: ids follow the order of the file."""
    numbers = {address: number for number, address in enumerate(rows)}
    for address in sorted(rows):
        yield numbers[address], address


def _merge(row: _Row, later: _Row) -> None:
    if later.first_name is not None:
        row.first_name = later.first_name
    if later.last_name is not None:
        row.last_name = later.last_name
    if later.unsubscribed is not None:
        row.unsubscribed = later.unsubscribed
    row.properties.update(later.properties)


def _line(properties: str, address: str, row: _Row) -> str:
    given, first, last = row.given, row.first_name, row.last_name
    unsubscribed = NULL if row.unsubscribed is None else "t" if row.unsubscribed else "f"
    values = ",".join([key + value for key, value in row.properties.items()])
    if _is_special(f"{address}{given}{first}{last}{values}"):
        address, values = _text(address), _text(values)
        given, first, last = given and _text(given), first and _text(first), last and _text(last)
    texts = (properties, address, given or NULL, first or NULL, last or NULL, unsubscribed, f"{{{values}}}")
    return "\t".join(texts) + "\n"


def _is_special(text: str) -> bool:
    return "\\" in text or "\t" in text or "\n" in text or "\r" in text


def _text(value: str) -> str:
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], value)


def ids_of(now: int) -> Callable[[int], str]:
    """Return a function that makes UUIDv7s (RFC 9562, 5.7) of one millisecond, which increase with its
    argument."""
    start = f"{now >> 16:08x}-{now & 0xFFFF:04x}-7"
    supply = os.urandom(6 * MOST_ROWS).hex()

    def make(number: int) -> str:
        chance = supply[number * 12 : number * 12 + 12]
        return f"{start}{number >> 6:03x}-{0x80 | number & 0x3F:02x}55-{chance}"

    return make


def shown(cell: str) -> str | None:
    """Return a cell as the list of errors shows it: cut, without half characters; None where it is empty."""
    text = cell[:LONGEST_SHOWN].encode("utf-8", "replace").decode()
    return text or None
