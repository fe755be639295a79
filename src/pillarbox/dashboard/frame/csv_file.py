"""CSV files of lists: each piece is one block of rows, and no cell is taken for a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any, Final

MEDIA: Final = "text/csv; charset=utf-8"
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How texts begin that spreadsheets would compute."""


def lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows as lines of CSV. Texts that a spreadsheet would compute begin with an apostrophe."""
    text = StringIO()
    csv.writer(text).writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
