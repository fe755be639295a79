"""The process that reads one XLSX file: it is on standard input, its first sheet goes as CSV to standard
output.

Spreadsheets are compressed XML with sizes that the sender chooses, so they are read where little can be used
up: in a process of its own with a limit of memory and of processor time, which has no database, no settings
and no secrets (docs/decisions/0186). It ends with one of the statuses below, or dies at a limit.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import signal
import sys
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from pillarbox.kernel.process.parent import die_with_parent

MEMORY: Final = 768 * 1024 * 1024
"""Octets of address space: a sheet of a million rows and five columns needs some 500 MB."""

SECONDS: Final = 40
"""Processor time."""

MOST_CELLS: Final = 20_000_000
MOST_COLUMNS: Final = 1000
UNREADABLE: Final = 3
EMPTY: Final = 4
TOO_LARGE: Final = 5
NICENESS: Final = 10
ROWS: Final = 500
"""Rows that are written at once."""


def main() -> int:
    """Write the first sheet as CSV; return the exit status."""
    die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    content = sys.stdin.buffer.read()
    # Not before: the parent's stores are counted as they come, and the library is not small.
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.typ is SheetTypeEnum.WorkSheet and sheet.visible is SheetVisibleEnum.Visible
        ]
        if not names:
            return EMPTY
        sheet = book.get_sheet_by_name(names[0])
        if sheet.total_width > MOST_COLUMNS or sheet.total_width * sheet.total_height > MOST_CELLS:
            return TOO_LARGE
        return write(sheet.iter_rows())
    except MemoryError:
        return TOO_LARGE
    except (CalamineError, OSError, ValueError, TypeError):
        return UNREADABLE


def write(rows: Iterable[list[Any]]) -> int:
    """Write the rows as CSV; return the exit status."""
    out = io.StringIO()
    writer = csv.writer(out)
    count = 0
    for row in rows:
        texts = [text_of(value) for value in row]
        if any(texts):
            count += 1
            writer.writerow(texts)
        if count % ROWS == 0:
            flush(out)
    flush(out)
    sys.stdout.buffer.flush()
    return 0 if count else EMPTY


def flush(out: io.StringIO) -> None:
    """Write what has gathered to standard output."""
    sys.stdout.buffer.write(out.getvalue().encode("utf-8", "replace"))
    out.seek(0)
    out.truncate()


def text_of(value: Any) -> str:
    """Return a cell as the text that a person reads in it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return str(value).replace("\0", "")


if __name__ == "__main__":
    sys.exit(main())
