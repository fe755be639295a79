"""SQL of the metrics over rollups. All statements of one answer run in one snapshot, so what is being folded
meanwhile is counted exactly once.

The counts of rollups come as one row for each period: the octets of the ids of its keys, a line for each of
their names, and one text of all numbers, those of a key in the order of `definitions.COLUMNS`. A few long
values cost a small part of what thousands of small ones cost on both sides of the connection. With them comes
a row of period -1: a line for each day between (in seconds since 1970) with its version, and since when there
are increments that are not folded yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.timeline.levels import NOBODY

# $2 to $4: rollups, each of which is a period of its own; $5: beginnings of the periods, of which
# `width_bucket` finds the one that an increment lies in; $6 and $7: from and to where increments count; $8
# and $9: filters; $11: how many rows a period may have; $12: whether broadcasts are distinguished. They are
# not added up here: without $12 the rollups of several broadcasts are several rows. Increments are cut off
# only where some period of theirs has too many rows.
PLAIN = """
    SELECT p.period, g.domain_ids, g.domain_names, g.broadcast_ids, g.counts
      FROM unnest($2::smallint[], $3::timestamptz[], $4::integer[]) AS p (level, start, period)
     CROSS JOIN LATERAL (
           SELECT string_agg(uuid_send(r.domain_id), '') AS domain_ids,
                  string_agg(r.domain_name, E'\\n') AS domain_names,
                  CASE WHEN $12 THEN string_agg(uuid_send(r.broadcast_id), '') END AS broadcast_ids,
                  string_agg(
                      concat_ws(',', r.received, r.sent, r.delivered, r.delivery_delayed, r.failed,
                                r.suppressed, r.bounced_transient, r.bounced_permanent,
                                r.bounced_undetermined, r.opened, r.clicked, r.unique_opened,
                                r.unique_clicked, r.complained, r.unsubscribed),
                      ',') AS counts
             FROM (SELECT *
                     FROM rollups b
                    WHERE b.team_id = $1 AND b.level = p.level AND b.start = p.start
                      AND ($8::uuid[] IS NULL OR b.domain_id = ANY ($8::uuid[]))
                      AND ($9::uuid[] IS NULL OR b.broadcast_id = ANY ($9::uuid[]))
                    LIMIT $11) AS r) AS g
     WHERE g.counts IS NOT NULL
    UNION ALL
    SELECT i.period, string_agg(uuid_send(i.domain_id), ''), string_agg(i.domain_name, E'\\n'),
           CASE WHEN $12 THEN string_agg(uuid_send(i.broadcast_id), '') END,
           string_agg(
               concat_ws(',', i.received, i.sent, i.delivered, i.delivery_delayed, i.failed, i.suppressed,
                         i.bounced_transient, i.bounced_permanent, i.bounced_undetermined, i.opened,
                         i.clicked, i.unique_opened, i.unique_clicked, i.complained, i.unsubscribed),
               ',')
      FROM (SELECT width_bucket(m.start, $5::timestamptz[]) - 1 AS period,
                   coalesce(m.domain_id, $10) AS domain_id, m.domain_name,
                   coalesce(m.broadcast_id, $10) AS broadcast_id,
                   sum(m.received) AS received, sum(m.sent) AS sent, sum(m.delivered) AS delivered,
                   sum(m.delivery_delayed) AS delivery_delayed, sum(m.failed) AS failed,
                   sum(m.suppressed) AS suppressed, sum(m.bounced_transient) AS bounced_transient,
                   sum(m.bounced_permanent) AS bounced_permanent,
                   sum(m.bounced_undetermined) AS bounced_undetermined, sum(m.opened) AS opened,
                   sum(m.clicked) AS clicked, sum(m.unique_opened) AS unique_opened,
                   sum(m.unique_clicked) AS unique_clicked, sum(m.complained) AS complained,
                   sum(m.unsubscribed) AS unsubscribed
              FROM metric_increments m
             WHERE m.team_id = $1 AND m.start >= $6 AND m.start < $7
               AND ($8::uuid[] IS NULL OR m.domain_id = ANY ($8::uuid[]))
               AND ($9::uuid[] IS NULL OR m.broadcast_id = ANY ($9::uuid[]))
             GROUP BY 1, 2, 3, 4
             LIMIT $11 * cardinality($5::timestamptz[])) AS i
     GROUP BY 1
    UNION ALL
    SELECT -1, NULL, string_agg(concat(extract(epoch FROM v.day)::bigint, ' ', v.version), E'\\n'), NULL,
           (SELECT extract(epoch FROM min(m.start))::bigint::text
              FROM metric_increments m
             WHERE m.team_id = $1 AND m.start >= $6 AND m.start < $7)
      FROM rollup_versions v
     WHERE v.team_id = $1 AND v.day > $6 - interval '1 day' AND v.day < $7
"""

# $2 to $6: the parts that cover the range, each with the period that it is added to and the one that it is
# taken from (or null); $7: beginnings of the periods, as above; $8 and $9: from and to where increments
# count; $10 and $11: filters; $12 and $13: whether rows are distinguished by domain and by broadcast. What
# has two uses is read once and summed up before it goes where it belongs; what is only added goes there as
# it is. Sums are made in `float8`, which is exact up to 2^53 and many times faster than `numeric`, in which
# PostgreSQL would sum `bigint`. A level is compared with an array of one: so the planner cannot hash all
# rollups of a team to join them with the parts. Rows are sorted so that the keys of most periods are the same
# text, which is read once.
SUMMED = """
    WITH parts AS MATERIALIZED (
        SELECT p.level, p.start, p.until, p.added, p.taken
          FROM unnest($2::smallint[], $3::timestamptz[], $4::timestamptz[], $5::integer[], $6::integer[])
               AS p (level, start, until, added, taken)
    ), shared AS MATERIALIZED (
        SELECT u.added, u.taken, s.*
          FROM (SELECT p.added, p.taken, array_agg(p.level) AS levels, array_agg(p.start) AS starts,
                       array_agg(p.until) AS ends
                  FROM parts p
                 WHERE p.taken IS NOT NULL
                 GROUP BY 1, 2) AS u
         CROSS JOIN LATERAL (
               SELECT CASE WHEN $12 THEN r.domain_id END AS domain_id,
                      CASE WHEN $12 THEN r.domain_name END AS domain_name,
                      CASE WHEN $13 THEN r.broadcast_id END AS broadcast_id,
                      sum(r.received::float8) AS received, sum(r.sent::float8) AS sent,
                      sum(r.delivered::float8) AS delivered,
                      sum(r.delivery_delayed::float8) AS delivery_delayed, sum(r.failed::float8) AS failed,
                      sum(r.suppressed::float8) AS suppressed,
                      sum(r.bounced_transient::float8) AS bounced_transient,
                      sum(r.bounced_permanent::float8) AS bounced_permanent,
                      sum(r.bounced_undetermined::float8) AS bounced_undetermined,
                      sum(r.opened::float8) AS opened, sum(r.clicked::float8) AS clicked,
                      sum(r.unique_opened::float8) AS unique_opened,
                      sum(r.unique_clicked::float8) AS unique_clicked,
                      sum(r.complained::float8) AS complained, sum(r.unsubscribed::float8) AS unsubscribed
                 FROM unnest(u.levels, u.starts, u.ends) AS p (level, start, until)
                 JOIN rollups r ON r.team_id = $1 AND r.level = ANY (ARRAY[p.level])
                               AND r.start >= p.start AND r.start < p.until
                WHERE ($10::uuid[] IS NULL OR r.domain_id = ANY ($10::uuid[]))
                  AND ($11::uuid[] IS NULL OR r.broadcast_id = ANY ($11::uuid[]))
                GROUP BY 1, 2, 3) AS s
    ), found AS (
        SELECT p.added AS period, CASE WHEN $12 THEN r.domain_id END AS domain_id,
               CASE WHEN $12 THEN r.domain_name END AS domain_name,
               CASE WHEN $13 THEN r.broadcast_id END AS broadcast_id,
               r.received::float8 AS received, r.sent::float8 AS sent, r.delivered::float8 AS delivered,
               r.delivery_delayed::float8 AS delivery_delayed, r.failed::float8 AS failed,
               r.suppressed::float8 AS suppressed, r.bounced_transient::float8 AS bounced_transient,
               r.bounced_permanent::float8 AS bounced_permanent,
               r.bounced_undetermined::float8 AS bounced_undetermined, r.opened::float8 AS opened,
               r.clicked::float8 AS clicked, r.unique_opened::float8 AS unique_opened,
               r.unique_clicked::float8 AS unique_clicked, r.complained::float8 AS complained,
               r.unsubscribed::float8 AS unsubscribed
          FROM parts p
          JOIN rollups r ON r.team_id = $1 AND r.level = ANY (ARRAY[p.level])
                        AND r.start >= p.start AND r.start < p.until
         WHERE p.taken IS NULL
           AND ($10::uuid[] IS NULL OR r.domain_id = ANY ($10::uuid[]))
           AND ($11::uuid[] IS NULL OR r.broadcast_id = ANY ($11::uuid[]))
        UNION ALL
        SELECT s.added, s.domain_id, s.domain_name, s.broadcast_id,
               s.received, s.sent, s.delivered, s.delivery_delayed, s.failed, s.suppressed,
               s.bounced_transient, s.bounced_permanent, s.bounced_undetermined, s.opened, s.clicked,
               s.unique_opened, s.unique_clicked, s.complained, s.unsubscribed
          FROM shared s
         WHERE s.added IS NOT NULL
        UNION ALL
        SELECT s.taken, s.domain_id, s.domain_name, s.broadcast_id,
               -s.received, -s.sent, -s.delivered, -s.delivery_delayed, -s.failed, -s.suppressed,
               -s.bounced_transient, -s.bounced_permanent, -s.bounced_undetermined, -s.opened, -s.clicked,
               -s.unique_opened, -s.unique_clicked, -s.complained, -s.unsubscribed
          FROM shared s
        UNION ALL
        SELECT width_bucket(i.start, $7::timestamptz[]) - 1,
               CASE WHEN $12 THEN coalesce(i.domain_id, $14) END, CASE WHEN $12 THEN i.domain_name END,
               CASE WHEN $13 THEN coalesce(i.broadcast_id, $14) END,
               i.received, i.sent, i.delivered, i.delivery_delayed, i.failed, i.suppressed,
               i.bounced_transient, i.bounced_permanent, i.bounced_undetermined, i.opened, i.clicked,
               i.unique_opened, i.unique_clicked, i.complained, i.unsubscribed
          FROM metric_increments i
         WHERE i.team_id = $1 AND i.start >= $8 AND i.start < $9
           AND ($10::uuid[] IS NULL OR i.domain_id = ANY ($10::uuid[]))
           AND ($11::uuid[] IS NULL OR i.broadcast_id = ANY ($11::uuid[]))
    )
    SELECT g.period, string_agg(uuid_send(g.domain_id), '') AS domain_ids,
           string_agg(g.domain_name, E'\\n') AS domain_names,
           string_agg(uuid_send(g.broadcast_id), '') AS broadcast_ids,
           string_agg(
               concat_ws(',', g.received, g.sent, g.delivered, g.delivery_delayed, g.failed, g.suppressed,
                         g.bounced_transient, g.bounced_permanent, g.bounced_undetermined, g.opened,
                         g.clicked, g.unique_opened, g.unique_clicked, g.complained, g.unsubscribed),
               ',') AS counts
      FROM (SELECT s.*
              FROM (SELECT f.period, f.domain_id, f.domain_name, f.broadcast_id,
                           sum(f.received)::bigint AS received, sum(f.sent)::bigint AS sent,
                           sum(f.delivered)::bigint AS delivered,
                           sum(f.delivery_delayed)::bigint AS delivery_delayed,
                           sum(f.failed)::bigint AS failed,
                           sum(f.suppressed)::bigint AS suppressed,
                           sum(f.bounced_transient)::bigint AS bounced_transient,
                           sum(f.bounced_permanent)::bigint AS bounced_permanent,
                           sum(f.bounced_undetermined)::bigint AS bounced_undetermined,
                           sum(f.opened)::bigint AS opened, sum(f.clicked)::bigint AS clicked,
                           sum(f.unique_opened)::bigint AS unique_opened,
                           sum(f.unique_clicked)::bigint AS unique_clicked,
                           sum(f.complained)::bigint AS complained,
                           sum(f.unsubscribed)::bigint AS unsubscribed
                      FROM found f
                     GROUP BY 1, 2, 3, 4
                     LIMIT $15) AS s
             ORDER BY s.period, s.domain_id, s.broadcast_id) AS g
     GROUP BY 1
    UNION ALL
    SELECT -1, NULL, string_agg(concat(extract(epoch FROM v.day)::bigint, ' ', v.version), E'\\n'), NULL,
           (SELECT extract(epoch FROM min(i.start))::bigint::text
              FROM metric_increments i
             WHERE i.team_id = $1 AND i.start >= $8 AND i.start < $9)
      FROM rollup_versions v
     WHERE v.team_id = $1 AND v.day > $8 - interval '1 day' AND v.day < $9
"""

# The last row of both, alone.
COUNTS_WITHOUT_ROWS = """
    SELECT -1, NULL, string_agg(concat(extract(epoch FROM v.day)::bigint, ' ', v.version), E'\\n'), NULL,
           (SELECT extract(epoch FROM min(m.start))::bigint::text
              FROM metric_increments m
             WHERE m.team_id = $1 AND m.start >= $2 AND m.start < $3)
      FROM rollup_versions v
     WHERE v.team_id = $1 AND v.day > $2 - interval '1 day' AND v.day < $3
"""

# Whether rollups of one level ($2) that counted something are more than $9 rows of an answer, whatever
# increments take back: one row's counts at most, or those of three. Only twice as many are read.
MORE_THAN = """
    SELECT count(*) > $9 + (SELECT count(*) * 3
                              FROM metric_increments m
                             WHERE m.team_id = $1 AND m.start >= $3 AND m.start < $4)
      FROM (SELECT DISTINCT r.start, r.domain_id, r.domain_name, CASE WHEN $7 THEN r.broadcast_id END
              FROM (SELECT b.start, b.domain_id, b.domain_name, b.broadcast_id
                      FROM rollups b
                     WHERE b.team_id = $1 AND b.level = $2 AND b.start >= $3 AND b.start < $4
                       AND ($5::uuid[] IS NULL OR b.domain_id = ANY ($5::uuid[]))
                       AND ($6::uuid[] IS NULL OR b.broadcast_id = ANY ($6::uuid[]))
                       AND NOT ($7 AND b.broadcast_id = $8)
                       AND (b.received > 0 OR b.sent > 0 OR b.delivered > 0 OR b.delivery_delayed > 0
                            OR b.failed > 0 OR b.suppressed > 0 OR b.bounced_transient > 0
                            OR b.bounced_permanent > 0 OR b.bounced_undetermined > 0 OR b.opened > 0
                            OR b.clicked > 0 OR b.unique_opened > 0 OR b.unique_clicked > 0
                            OR b.complained > 0 OR b.unsubscribed > 0)
                     ORDER BY b.start
                     LIMIT 2 * $9::bigint) AS r) AS combinations
"""

# Which quarter hours (by their start, $2) have their ten-second rollups.
FINE = """
    SELECT q.start
      FROM unnest($2::timestamptz[]) AS q (start)
     WHERE EXISTS (SELECT FROM rollups r
                    WHERE r.team_id = $1 AND r.level = 0
                      AND r.start >= q.start AND r.start < q.start + interval '15 minutes')
"""

PURGED = """
    SELECT before FROM purges WHERE team_id = $1
"""


DAY = 24 * 60 * 60
"""Seconds."""


class MetricsSelection(NamedTuple):
    """The filters of all statements (None: all), and the dimensions by which rows differ."""

    domains: list[UUID] | None
    broadcasts: list[UUID] | None
    emails: list[UUID] | None
    by_domain: bool
    by_broadcast: bool
    by_email: bool
    most: int


class Buckets(NamedTuple):
    """Columns of rollups that are a period each."""

    levels: list[int]
    starts: list[datetime]
    periods: list[int]


class Sums(NamedTuple):
    """The result of a statement over rollups. `versions` has the version of each day (in days since 1970).
    `pending` is since when (in seconds since 1970) there are increments that are not folded yet."""

    rows: list[Record]
    versions: dict[int, str]
    pending: int | None


class RollupColumns(NamedTuple):
    """Columns of the parts that cover a range, and of the periods that they are added to or taken from."""

    levels: list[int]
    starts: list[datetime]
    ends: list[datetime]
    added: list[int | None]
    taken: list[int | None]


async def plain(
    db: TeamDb,
    buckets: Buckets,
    begins: Sequence[datetime],
    start: datetime,
    end: datetime,
    metrics_selection: MetricsSelection,
) -> Sums:
    """Return the rollups as they are, and sums of the increments of [start, end) that are not folded yet;
    distinguished by domain and by broadcast. At most `wanted.most` of a period."""
    return _sums(
        await db.source.fetch(
            PLAIN,
            db.team_id,
            *buckets,
            begins,
            start,
            end,
            metrics_selection.domains,
            metrics_selection.broadcasts,
            NOBODY,
            metrics_selection.most,
            metrics_selection.by_broadcast,
        )
    )


async def summed(
    db: TeamDb,
    parts: RollupColumns,
    begins: Sequence[datetime],
    start: datetime,
    end: datetime,
    metrics_selection: MetricsSelection,
) -> Sums:
    """Return the sums over the parts, and over the increments of [start, end) that are not folded yet."""
    return _sums(
        await db.source.fetch(
            SUMMED,
            db.team_id,
            *parts,
            begins,
            start,
            end,
            metrics_selection.domains,
            metrics_selection.broadcasts,
            metrics_selection.by_domain,
            metrics_selection.by_broadcast,
            NOBODY,
            metrics_selection.most,
        )
    )


async def counts_without_rows(db: TeamDb, start: datetime, end: datetime) -> Sums:
    """Return the versions and waiting increments of [start, end), without any rows."""
    return _sums(await db.source.fetch(COUNTS_WITHOUT_ROWS, db.team_id, start, end))


def _sums(records: Sequence[Record]) -> Sums:
    _, _, days, _, pending = next(record for record in records if record[0] < 0)
    known = {}
    for line in days.split("\n") if days else ():
        day, version = line.split(" ")
        known[int(day) // DAY] = version
    rows = [record for record in records if record[0] >= 0]
    return Sums(rows, known, None if pending is None else int(pending))


async def more_than(
    db: TeamDb, level: int, start: datetime, end: datetime, metrics_selection: MetricsSelection
) -> bool:
    """Return whether more than `wanted.most` combinations of a rollup's time, domain and perhaps broadcast
    have counted something, whatever is not folded yet."""
    found: bool = await db.value(
        MORE_THAN,
        level,
        start,
        end,
        metrics_selection.domains,
        metrics_selection.broadcasts,
        metrics_selection.by_broadcast,
        NOBODY,
        metrics_selection.most,
    )
    return found


async def fine(db: TeamDb, quarters: Sequence[datetime]) -> set[datetime]:
    """Return those quarter hours that have ten-second rollups."""
    return set(await db.values(FINE, quarters))


async def purged_before(db: TeamDb) -> datetime | None:
    """Return the instant up to which retention has removed the history of emails."""
    found: datetime | None = await db.value(PURGED)
    return found
