"""SQL of the stored pieces of answers: one is found only while its days have the versions it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.work.collectors import changed
from pillarbox.metrics.read import State
from pillarbox.metrics.table import Counts

FIND = """
    SELECT p.id, p.versions::text[] AS versions, p.rows, p.counts, p.content
      FROM metric_pieces p
     WHERE p.team_id = $1 AND p.id = ANY ($2::uuid[])
       AND array_remove(p.versions, NULL) = ARRAY(
           SELECT v.version
             FROM rollup_versions v
            WHERE v.team_id = $1 AND v.day >= p.first_day
              AND v.day < p.first_day + cardinality(p.versions) * interval '24 hours'
            ORDER BY v.day)
"""

# $5: the versions of a piece's days and $7: its counts, each as the text of an array, because arrays of
# arrays of different lengths are none. In the order of the ids, so that two processes do not wait for each
# other.
STORE = """
    INSERT INTO metric_pieces AS p (team_id, id, first_day, versions, rows, counts, content, made_at)
    SELECT $1, n.id, n.first_day, n.versions::uuid[], n.rows, n.counts::bigint[], n.content, $2
      FROM unnest($3::uuid[], $4::timestamptz[], $5::text[], $6::integer[], $7::text[], $8::bytea[])
           AS n (id, first_day, versions, rows, counts, content)
     ORDER BY n.id
    ON CONFLICT (team_id, id) DO UPDATE
       SET versions = excluded.versions, rows = excluded.rows, counts = excluded.counts,
           content = excluded.content, made_at = excluded.made_at
     WHERE p.versions IS DISTINCT FROM excluded.versions
"""

# Of a team the newest $2 pieces are kept, and of these the newest ones with $3 octets together.
TRIM = """
    DELETE FROM metric_pieces p
     USING (SELECT s.id, row_number() OVER newest AS place, sum(octet_length(s.content)) OVER newest AS octets
              FROM metric_pieces s
             WHERE s.team_id = $1
            WINDOW newest AS (ORDER BY s.made_at DESC, s.id)) AS o
     WHERE p.team_id = $1 AND p.id = o.id AND (o.place > $2 OR o.octets > $3)
"""

# Across teams: what is over its time, or counts days whose rollups retention has removed; and what was stored
# while a clock was wrong and would be the newest of its team until then ($2).
REMOVE = """
    DELETE FROM metric_pieces p
     USING (SELECT s.team_id, s.id
              FROM metric_pieces s
              LEFT JOIN rollup_purges g ON g.team_id = s.team_id
             WHERE s.made_at < $1 OR s.made_at > $2 OR s.first_day < g.before
             LIMIT $3) AS old
     WHERE p.team_id = old.team_id AND p.id = old.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPiece:
    """A piece whose days are in the state in which it was made."""

    id: UUID
    versions: Sequence[str | None]
    rows: int
    counts: Sequence[int]
    content: bytes


class PieceRow(NamedTuple):
    """A piece that is to be stored."""

    id: UUID
    first_day: datetime
    versions: State
    rows: int
    counts: Counts
    content: bytes


async def find(db: TeamDb, ids: Sequence[UUID]) -> list[FoundPiece]:
    """Return those of these pieces that hold."""
    return await db.all(FoundPiece, FIND, ids)


async def store(db: TeamDb, now: datetime, pieces: Sequence[PieceRow]) -> None:
    """Store these, in place of what is known of another state of their days."""
    ids, days, versions, rows, counts, contents = zip(*pieces, strict=True)
    await db.run(
        STORE,
        now,
        ids,
        days,
        ["{" + ",".join(version or "NULL" for version in state) + "}" for state in versions],
        rows,
        ["{" + ",".join(map(str, columns)) + "}" for columns in counts],
        contents,
    )


async def trim(db: TeamDb, limit: int, octets: int) -> None:
    """Remove the pieces that a team has beyond its limit, the oldest first."""
    await db.run(TRIM, limit, octets)


async def remove_old(source: Source, before: datetime, ahead: datetime, limit: int) -> int:
    """Remove up to `limit` pieces of any team that were made before an instant or after `ahead`, or that
    count days whose rollups retention has removed; return how many."""
    return changed(await source.execute(REMOVE, before, ahead, limit))
