"""`pillarbox suppressions import` and `export`: lists of any length, in the memory of some thousand rows."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, Final

import asyncpg

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, transaction
from pillarbox.kernel.terminal.answers import CommandRefused, clean, counted, say
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.kernel.terminal.output_file import STANDARD, output_file
from pillarbox.kernel.terminal.progress import transfer
from pillarbox.people.audit import Act, record_command
from pillarbox.suppressions import changes
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.suppressions.commands.csv_rows import AddressRow, CsvRows, NotReadable, RefusedRow
from pillarbox.suppressions.listing import BLOCK, COLUMNS, blocks_of, count_of
from pillarbox.teams.commands.choosing import one_team
from pillarbox.teams.team import Team
from pillarbox.webhooks.publish import Publisher

HELD = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
TRIES: Final = 10
PAUSE: Final = 0.5

LONGEST_SHOWN: Final = 400


@dataclass(frozen=True, slots=True)
class SuppressionImport:
    """The arguments of an import: the file, its column, the origin of the addresses, the file for errors."""

    file: str
    column: str | None
    origin: str | None
    errors: Path | None

    @property
    def errors_path(self) -> Path:
        if self.errors is not None:
            return self.errors
        return Path("suppressions.errors.csv" if self.file == STANDARD else f"{self.file}.errors.csv")


@dataclass(slots=True)
class ImportOutcome:
    """The counts of rows so far."""

    rows: int = 0
    added: int = 0
    refused: int = 0


class RefusedRows:
    """The file of refused rows; it is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def write(self, rows: Sequence[RefusedRow]) -> None:
        if rows and self._file is None:
            self._file = self._path.open("w", newline="", encoding="utf-8")
            self._file.write("line,email,reason\n")
        if self._file is not None:
            csv.writer(self._file).writerows(
                (row.line, clean(row.text[:LONGEST_SHOWN]), row.reason) for row in rows
            )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


async def import_file(
    connected: CommandDatabase, team: str | None, suppression_import: SuppressionImport
) -> int:
    """Put the addresses of a file on the list; one that is there already keeps its origin."""
    owner = await one_team(connected, team)
    refused = RefusedRows(suppression_import.errors_path)
    outcome = ImportOutcome()
    try:
        with opened(suppression_import.file) as (file, size), transfer("Importing", size) as shown:
            rows = CsvRows(file, suppression_import.column, suppression_import.origin)
            each = iter(rows)
            # In a thread, so that a signal ends the command also while a file is long in coming.
            while block := await asyncio.to_thread(lambda: list(islice(each, BLOCK))):
                await take(connected, owner, block, refused, outcome)
                shown.reach(rows.octets, outcome.rows)
            summary = shown.summary
    except NotReadable as wrong:
        raise CommandRefused(str(wrong)) from None
    except OSError as wrong:
        raise CommandRefused(
            f"{wrong.filename or suppression_import.file} cannot be used: {wrong.strerror or wrong}."
        ) from None
    finally:
        refused.close()
        if outcome.rows:
            say(told(outcome, owner, suppression_import))
    say(summary[0].upper() + summary[1:] + ".")
    return 1 if outcome.refused else 0


async def take(
    connected: CommandDatabase,
    owner: Team,
    block: Sequence[AddressRow | RefusedRow],
    refused: RefusedRows,
    outcome: ImportOutcome,
) -> None:
    """Write one block, in a transaction of its own."""
    wrong = [row for row in block if isinstance(row, RefusedRow)]
    refused.write(wrong)
    right = [row for row in block if isinstance(row, AddressRow)]
    outcome.added += await written(connected, owner, right)
    outcome.rows += len(block)
    outcome.refused += len(wrong)


async def written(connected: CommandDatabase, owner: Team, rows: Sequence[AddressRow]) -> int:
    """Store the addresses and return how many are new. Rows that another transaction has locked are waited
    for."""
    ids = Ids(SystemClock())
    for left in reversed(range(TRIES)):
        at = ids.now()
        causes = [
            SuppressionCause(
                team_id=owner.id,
                address=row.address,
                origin=row.origin,
                source_id=None,
                at=at,
                given=row.given,
            )
            for row in rows
        ]
        try:
            async with transaction(connected.pool) as conn:
                return len(await changes.add(conn, causes, ids, Publisher(ids)))
        except HELD:
            if not left:
                raise
            await asyncio.sleep(PAUSE)
    raise AssertionError("the last try returns or raises")


def told(outcome: ImportOutcome, owner: Team, suppression_import: SuppressionImport) -> str:
    known = outcome.rows - outcome.added - outcome.refused
    parts = [
        f"{counted(outcome.added, 'address', 'addresses')} added to the suppression list of {owner.name}",
        f"{known:,} on it already",
        f"{outcome.refused:,} refused"
        + (f" (see {suppression_import.errors_path})" if outcome.refused else ""),
    ]
    return ", ".join(parts) + "."


async def export_file(connected: CommandDatabase, team: str | None, path: str, origin: str | None) -> int:
    """Write the list of a team; a file is there only when it is whole."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    total = await count_of(db, origin) if sys.stderr.isatty() else None
    try:
        with output_file(path) as file, transfer("Exporting", total) as shown:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            rows = 0
            async for block in blocks_of(db, origin):
                writer.writerows(block)
                rows += len(block)
                shown.reach(rows, rows)
            summary = shown.summary
    except BrokenPipeError:
        raise
    except OSError as wrong:
        raise CommandRefused(
            f"{wrong.filename or path} cannot be written: {wrong.strerror or wrong}."
        ) from None
    await record_command(db, Act.SUPPRESSIONS_EXPORTED, origin, {"count": rows})
    if path != STANDARD:
        say(f"{path}: {summary}.")
    return 0


@contextmanager
def opened(name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Yield the file, and its size where it has one."""
    if name == STANDARD:
        yield sys.stdin.buffer, None
        return
    with Path(name).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        yield file, size or None
