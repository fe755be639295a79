"""`pillarbox contacts export`: contacts of any number, in the memory of some thousand."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pillarbox.contact_properties.definitions import PropertyDefinition, definitions
from pillarbox.contacts import queries, segment_queries
from pillarbox.contacts.conditions import membership
from pillarbox.contacts.list_queries import ExportedContact
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, as_id, say
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.kernel.terminal.output_file import STANDARD, output_file
from pillarbox.kernel.terminal.progress import transfer
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.people.audit import Act, record_command
from pillarbox.teams.commands.choosing import one_team

BLOCK: Final = 5000
COLUMNS: Final = ("email", "first_name", "last_name", "unsubscribed", "created_at", "id")
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Texts that begin so are formulas for spreadsheets."""


@dataclass(frozen=True, slots=True)
class Export:
    """The arguments of an export: the file, and the id of a segment where not all contacts are wanted."""

    file: str
    segment: str | None
    is_plain: bool


async def export_file(connected: CommandDatabase, team: str | None, export: Export) -> int:
    """Write the contacts of a team, or of a segment; a file is there only when it is whole."""
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    segment_id = None if export.segment is None else as_id(export.segment, "a segment")
    if segment_id is not None and not await segment_queries.exists(db, segment_id):
        raise CommandRefused(f"The team {owner.name!r} has no segment {segment_id}.")
    now = SystemClock().now()
    known = sorted(await definitions(db), key=lambda one: one.key)
    total = await membership.count(db, segment_id, now) if sys.stderr.isatty() else None
    try:
        with output_file(export.file) as file, transfer("Exporting", total) as shown:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow((*COLUMNS, *(one.key for one in known)))
            rows, after = 0, queries.FIRST
            while block := await membership.following(db, after, segment_id, BLOCK, now):
                writer.writerows(cells(block, known, is_plain=export.is_plain))
                rows, after = rows + len(block), block[-1].id
                shown.reach(rows, rows)
            summary = shown.summary
    except BrokenPipeError:
        raise
    except OSError as wrong:
        where = wrong.filename or export.file
        raise CommandRefused(f"{where} cannot be written: {wrong.strerror or wrong}.") from None
    await record_command(db, Act.CONTACTS_EXPORTED, export.segment, {"count": rows})
    if export.file != STANDARD:
        say(f"{export.file}: {summary}.")
    return 0


def cells(
    block: Sequence[ExportedContact], known: Sequence[PropertyDefinition], *, is_plain: bool
) -> Iterator[list[object]]:
    """Yield the cells of each contact."""
    for one in block:
        values = one.values()
        row: list[object] = [
            one.email,
            one.first_name,
            one.last_name,
            _word(one.unsubscribed),
            iso_style(one.created_at),
            one.id,
            *(_word(values.get(str(definition.number))) for definition in known),
        ]
        yield row if is_plain else [harmless(value) for value in row]


def harmless(value: object) -> object:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
