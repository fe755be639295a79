"""Turns an XLSX file into CSV while it is received, through a process of its own (`spreadsheet_process`)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from pillarbox.contacts.imports.reading import child_environment
from pillarbox.contacts.imports.spreadsheet_process import EMPTY, TOO_LARGE, UNREADABLE
from pillarbox.kernel.wire.problems import Invalid, ServerOverloaded, TooLarge

PROGRAM: Final = "pillarbox.contacts.imports.spreadsheet_process"
MOST_BYTES: Final = 32 * 1024 * 1024
"""Of an XLSX file: its process holds it in memory."""

UNEXPECTED: Final = 1
"""The status of a Python program that ends with an exception."""

MAGIC: Final = b"PK\x03\x04"
OLD_MAGIC: Final = b"\xd0\xcf\x11\xe0"
PIECE: Final = 256 * 1024
LONGEST: Final = 120.0
"""Seconds that the process may take behind the last octet of the file."""

MOST_RUNNING: Final = 2
"""Files that are read at the same time in one process."""


class SpreadsheetFault(Invalid):
    """The file is no spreadsheet that can be read (422)."""


class Spreadsheets:
    """The XLSX files that are being read in this process."""

    def __init__(self) -> None:
        self._running = 0

    async def csv_of(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the first sheet of the file as CSV; 422 where it cannot be read, 503 where too many are."""
        if self._running >= MOST_RUNNING:
            raise ServerOverloaded("Too many spreadsheets are being read. Try again later.", 10)
        self._running += 1
        try:
            async with contextlib.aclosing(_converted(pieces)) as converted:
                async for piece in converted:
                    yield piece
        finally:
            self._running -= 1


async def _converted(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        PROGRAM,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=child_environment(),
        limit=PIECE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        size = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            async for piece in pieces:
                size += len(piece)
                if size > MOST_BYTES:
                    raise TooLarge(f"A spreadsheet may have at most {MOST_BYTES} bytes. Save it as CSV.")
                process.stdin.write(piece)
                await process.stdin.drain()
            process.stdin.close()
        async with asyncio.timeout(LONGEST):
            while piece := await process.stdout.read(PIECE):
                yield piece
            _check(await process.wait())
    except TimeoutError:
        raise _fault(TOO_LARGE) from None
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.stdin is not None
    process.stdin.close()
    await asyncio.gather(process.stdin.wait_closed(), return_exceptions=True)


def _check(status: int) -> None:
    if status:
        raise _fault(status)


def _fault(status: int) -> SpreadsheetFault:
    """Return what the exit status of the process means; one that was ended by a limit was too large, and one
    that met what its library does not expect could not read it."""
    if status in (UNREADABLE, UNEXPECTED):
        return SpreadsheetFault("The file is no spreadsheet that can be read. Save it as XLSX or CSV again.")
    if status == EMPTY:
        return SpreadsheetFault("The first sheet of the file is empty.")
    return SpreadsheetFault(
        "The spreadsheet is too large: it may have at most 1,000 columns and 20 million cells. "
        "Save it as CSV, without the empty columns."
    )
