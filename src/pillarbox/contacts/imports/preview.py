"""The preview of a file before it is imported: its header, its first rows, and guesses of what its columns
are."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from pillarbox.contacts.imports.cells import FALSE, TRUE, RowFault, number_of, plain_address
from pillarbox.contacts.imports.dialect import CsvHeader, CsvLines, FileFault, is_blank, records

ROWS: Final = 8
"""Data rows that are shown."""

SAMPLE: Final = 100
"""Data rows from which types are guessed."""

MOST_COLUMNS: Final = 50
"""Columns that are shown and can be mapped on a page."""

LONGEST_CELL: Final = 120
LONGEST_KEY: Final = 50

IGNORED: Final = ""
EMAIL: Final = "email"
PROPERTY: Final = "property"
NAMES: Final = {
    "email": ("email", "emailaddress", "mail", "emailadresse", "mailadresse", "correo", "courriel"),
    "first_name": ("firstname", "givenname", "forename", "vorname", "prenom", "first"),
    "last_name": ("lastname", "surname", "familyname", "nachname", "familienname", "nom", "last"),
    "unsubscribed": ("unsubscribed", "optedout", "optout", "abgemeldet"),
}
"""Headers by which a field is known, in lower case and letters alone."""


class GuessedColumn(msgspec.Struct, frozen=True):
    """A column of a file: its header, what it feeds, and the key and type of a property."""

    header: str
    field: str
    key: str
    type: str


class FilePreview(msgspec.Struct, frozen=True):
    """The beginning of a file. `width` is how many columns it has."""

    columns: list[GuessedColumn]
    rows: list[list[str]]
    width: int


def preview_of(head: bytes, encoding: str, header: CsvHeader) -> FilePreview:
    """Return what is shown of a file that begins with these octets."""
    sample: list[list[str]] = []
    with contextlib.suppress(FileFault):
        for record in _records(head, encoding, header):
            sample.append([cell.strip() for cell in record[:MOST_COLUMNS]])
            if len(sample) >= SAMPLE:
                break
    return FilePreview(
        guessed(header.cells[:MOST_COLUMNS], sample),
        [[_shown(cell) for cell in record] for record in sample[:ROWS]],
        len(header.cells),
    )


def guessed(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[GuessedColumn]:
    """Return what the columns seem to be. A field is guessed once; the address also by the cells."""
    columns: list[GuessedColumn] = []
    taken: set[str] = set()
    by_cells = _addresses(headers, rows)
    for at, header in enumerate(headers):
        cells = [row[at] for row in rows if at < len(row) and row[at]]
        field = _field_of(header)
        if field == IGNORED and at == by_cells and not any(_field_of(name) == EMAIL for name in headers):
            field = EMAIL
        if field in taken:
            field = IGNORED
        if field:
            taken.add(field)
        elif cells:
            field = PROPERTY
        columns.append(GuessedColumn(_shown(header), field, _key_of(header, at, taken), type_of(cells)))
    return columns


def type_of(cells: Sequence[str]) -> str:
    """Return the type of property that all of these cells fit, with text where there are none."""
    if cells and all(cell.lower() in TRUE | FALSE for cell in cells):
        return "number" if all(cell in "01" for cell in cells) and len(set(cells)) > 2 else "boolean"
    return "number" if cells and all(_is_number(cell) for cell in cells) else "string"


def _records(head: bytes, encoding: str, header: CsvHeader) -> Iterator[list[str]]:
    pieces = iter([head[header.end :]])
    lines = CsvLines(lambda: next(pieces, b""), encoding, header.end)
    return (record for record in records(lines, header.delimiter) if not is_blank(record))


def _addresses(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> int | None:
    """Return the first column that has addresses in most of its cells."""
    for at in range(len(headers)):
        cells = [row[at] for row in rows if at < len(row) and row[at]]
        if cells and sum(plain_address(cell) is not None for cell in cells) * 2 > len(cells):
            return at
    return None


def _field_of(header: str) -> str:
    word = re.sub(r"[^a-z]", "", header.lower())
    return next((field for field, names in NAMES.items() if word in names), IGNORED)


def _key_of(header: str, index: int, taken: set[str]) -> str:
    """Return a key for a property that no column before has."""
    key = re.sub(r"[^a-z0-9]+", "_", header.lower()).strip("_")[: LONGEST_KEY - 5] or f"column_{index + 1}"
    if key in taken:
        key = f"{key}_{index + 1}"
    taken.add(key)
    return key


def _is_number(cell: str) -> bool:
    try:
        number_of(cell)
    except RowFault:
        return False
    # A number that begins with zeros is a code, as of a place or a telephone.
    return re.match(r"[+-]?0[0-9]", cell) is None


def _shown(cell: str) -> str:
    text = cell[:LONGEST_CELL].encode("utf-8", "replace").decode()
    return re.sub(r"\s+", " ", text)
