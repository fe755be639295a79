"""The list of a team in other ways than the API pages it: by a part of the address, and whole as CSV."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.suppressions import queries
from pillarbox.suppressions.queries import SuppressionRow

BLOCK: Final = 1000
"""Rows that are written, or read, at once. Each may make a delivery to each of fifty webhooks."""

COLUMNS: Final = ("email", "origin", "source_id", "created_at", "id")
SCANNED: Final = 100_000
"""Entries that one search looks through; the next page goes on behind them."""

LATEST: Final = UUID(int=(1 << 128) - 1)

CsvRow = tuple[Any, ...]


class FoundSuppressions(NamedTuple):
    """One page of a search. `following` is the id behind which the next page begins; None at the end."""

    rows: Sequence[SuppressionRow]
    following: UUID | None


async def find_containing(
    db: TeamDb, text: str, origin: str | None, *, limit: int, after: UUID | None = None
) -> FoundSuppressions:
    """Return the entries whose address contains the text, the newest first, behind the id `after`."""
    before = after or LATEST
    rows = await queries.containing(db, text.strip().lower(), origin, before, SCANNED, limit + 1)
    if len(rows) > limit:
        return FoundSuppressions(rows[:limit], rows[limit - 1].id)
    return FoundSuppressions(rows, await queries.nth_before(db, origin, before, SCANNED))


async def count_of(db: TeamDb, origin: str | None) -> int:
    """Return how many entries there are, of any origin or of one."""
    return await queries.count(db, origin)


async def blocks_of(db: TeamDb, origin: str | None) -> AsyncIterator[list[CsvRow]]:
    """Yield the list as rows of `COLUMNS`, the oldest entry first, a block at a time."""
    after = UUID(int=0)
    while block := await queries.following(db, after, origin, BLOCK):
        yield [
            (entry.shown, entry.origin, entry.source_id, iso_style(entry.created_at), entry.id)
            for entry in block
        ]
        after = block[-1].id
