"""SQL of the reports. The statements of one answer run in one snapshot, so a page fits to the counts that it
was found by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.broadcasts.reports.positions import PageWindow, RowSpan
from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedBroadcast:
    """A broadcast as far as its reports go; `queued_at` is null before it has begun. `copies` is None where
    they were not counted yet."""

    queued_at: datetime | None
    sent_at: datetime | None
    copies: int | None


async def started(db: TeamDb, broadcast_id: UUID) -> ReportedBroadcast | None:
    return await db.one(
        ReportedBroadcast,
        """
        SELECT CASE WHEN status NOT IN ('draft', 'scheduled') THEN queued_at END AS queued_at, sent_at,
               recipients AS copies
          FROM broadcasts
         WHERE team_id = $1 AND id = $2
        """,
        broadcast_id,
    )


class NamedReference(NamedTuple):
    id: UUID
    name: str


async def named(db: TeamDb, ids: Sequence[UUID]) -> list[NamedReference]:
    """Return the broadcasts that have a name, of these or of all."""
    return await db.all(
        NamedReference,
        """
        SELECT id, name
          FROM broadcasts
         WHERE team_id = $1 AND name IS NOT NULL AND (cardinality($2::uuid[]) = 0 OR id = ANY ($2::uuid[]))
        """,
        ids,
    )


# What the metrics count of a broadcast ($2) in spans of a length ($4) and level ($3) between $5 and $6; $7
# names the list. Increments that are not folded yet are counted with them.
COUNTED: Final = """
    SELECT s.start, sum(s.amount)::bigint AS amount
      FROM (SELECT c.start,
                   CASE $7 WHEN 'sent' THEN c.sent
                           WHEN 'delivered' THEN c.delivered
                           WHEN 'opened' THEN c.unique_opened
                           WHEN 'clicked' THEN c.unique_clicked
                           WHEN 'complained' THEN c.complained
                           WHEN 'unsubscribed' THEN c.unsubscribed
                           WHEN 'suppressed' THEN c.suppressed
                           WHEN 'bounced'
                           THEN c.bounced_permanent + c.bounced_transient + c.bounced_undetermined
                           WHEN 'bounced_permanent' THEN c.bounced_permanent
                           WHEN 'bounced_transient' THEN c.bounced_transient
                           WHEN 'bounced_undetermined' THEN c.bounced_undetermined
                   END AS amount
              FROM (SELECT r.start, r.sent, r.delivered, r.unique_opened, r.unique_clicked, r.complained,
                           r.unsubscribed, r.suppressed, r.bounced_permanent, r.bounced_transient,
                           r.bounced_undetermined
                      FROM rollups r
                     WHERE r.team_id = $1 AND r.level = $3 AND r.start >= $5 AND r.start < $6
                       AND r.broadcast_id = $2
                     UNION ALL
                    SELECT date_bin($4::interval, i.start, 'epoch'::timestamptz), i.sent, i.delivered,
                           i.unique_opened, i.unique_clicked, i.complained, i.unsubscribed, i.suppressed,
                           i.bounced_permanent, i.bounced_transient, i.bounced_undetermined
                      FROM metric_increments i
                     WHERE i.team_id = $1 AND i.start >= $5 AND i.start < $6 AND i.broadcast_id = $2) AS c
           ) AS s
     GROUP BY 1
    HAVING sum(s.amount) > 0
     ORDER BY 1
"""


async def counted(
    db: TeamDb,
    broadcast_id: UUID,
    level: int,
    length: timedelta,
    bounds: tuple[datetime, datetime],
    name: str,
) -> list[tuple[datetime, int]]:
    """Return how many rows each span of a list has; spans without rows are absent."""
    rows = await db.source.fetch(COUNTED, db.team_id, broadcast_id, level, length, *bounds, name)
    return [(row["start"], row["amount"]) for row in rows]


class RecipientReportRow(NamedTuple):
    """A row of a report. `contact_id` is None where the contact is gone."""

    place: int
    email_id: UUID
    email: str
    contact_id: UUID | None
    bounce_type: str | None


# $4 to $7: spans with the position of their first row and how many rows they have; $8 to $9: the positions
# that are wanted. Lines are found by time alone: the other index of the history has all that ever happened.
# Copies are looked up one by one: how many lines a span has cannot be foreseen, and a guess that is too high
# would read the tables whole.
BY_TIME: Final = """
    WITH spans AS (
        SELECT s.start, s.until, s.base, s.amount
          FROM unnest($4::timestamptz[], $5::timestamptz[], $6::bigint[], $7::bigint[])
               AS s (start, until, base, amount)
    ), found AS (
        SELECT DISTINCT ON (t.email_id) s.base, s.amount, t.email_id, t.at, r.address, r.bounce_type
          FROM spans s
         CROSS JOIN LATERAL (
               SELECT k.email_id, k.position, k.at, k.kind, k.detail
                 FROM timeline k
                WHERE k.team_id = $1 AND k.at >= s.start AND k.at < s.until
               OFFSET 0) AS t
         CROSS JOIN LATERAL (
               SELECT FROM emails k
                WHERE k.team_id = $1 AND k.id = t.email_id AND k.broadcast_id = $2
               OFFSET 0) AS e
         CROSS JOIN LATERAL (
               SELECT k.address, k.bounce_type, k.opened_at, k.clicked_at
                 FROM recipients k
                WHERE k.team_id = $1 AND k.email_id = t.email_id AND k.position = t.position
               OFFSET 0) AS r
         WHERE t.kind = $3 AND (t.detail->>'repeated' = 'true') IS NOT TRUE
           AND ($3 <> 'opened' OR t.at = r.opened_at)
           AND ($3 <> 'clicked' OR t.at = r.clicked_at)
           AND ($10::text IS NULL OR r.bounce_type = $10)
         ORDER BY t.email_id, t.at
    ), placed AS (
        SELECT f.base, f.amount, f.email_id, f.address, f.bounce_type,
               f.base - 1 + row_number() OVER (PARTITION BY f.base
                                                   ORDER BY f.at, f.address COLLATE "C", f.email_id) AS place
          FROM found f
    )
    SELECT p.place, p.email_id, coalesce(c.email, p.address) AS email, b.contact_id, p.bounce_type
      FROM placed p
      LEFT JOIN contacts c ON c.team_id = $1 AND c.address = p.address
      LEFT JOIN broadcast_recipients b
        ON b.team_id = $1 AND b.broadcast_id = $2 AND b.contact_id = c.id AND b.email_id = p.email_id
     WHERE p.place >= $8 AND p.place < $9 AND p.place < p.base + p.amount
     ORDER BY p.place
"""


async def by_time(
    db: TeamDb,
    broadcast_id: UUID,
    kind: str,
    spans: Sequence[RowSpan],
    window: PageWindow,
    bounce: str | None,
) -> list[RecipientReportRow]:
    """Return the rows of a window, from the history of the spans that it lies in."""
    rows = await db.source.fetch(
        BY_TIME,
        db.team_id,
        broadcast_id,
        kind,
        [span.start for span in spans],
        [span.end for span in spans],
        [span.base for span in spans],
        [span.rows for span in spans],
        *window,
        bounce,
    )
    return [RecipientReportRow(*row) for row in rows]


class ListPart(NamedTuple):
    """Rows of a list, and how many it has in all; of a part without rows that is not known."""

    rows: list[RecipientReportRow]
    total: int


# $4 and $5: the least and the greatest id that a copy can have; $6: what its address must have in it; $8 and
# $9: the positions that are wanted.
BY_COPIES: Final = """
    WITH candidates AS (
        SELECT r.email_id, r.position, r.address, r.bounce_type,
               CASE $3 WHEN 'sent' THEN r.sent_at
                       WHEN 'opened' THEN r.opened_at
                       WHEN 'clicked' THEN r.clicked_at
                       WHEN 'complained' THEN r.complained_at
                       WHEN 'unsubscribed' THEN r.unsubscribed_at
               END AS at
          FROM recipients r
         WHERE r.team_id = $1 AND r.email_id >= $4 AND r.email_id <= $5
           AND CASE $3 WHEN 'sent' THEN r.sent_at IS NOT NULL
                       WHEN 'opened' THEN r.opened_at IS NOT NULL
                       WHEN 'clicked' THEN r.clicked_at IS NOT NULL
                       WHEN 'complained' THEN r.complained_at IS NOT NULL
                       WHEN 'unsubscribed' THEN r.unsubscribed_at IS NOT NULL
                       WHEN 'suppressed' THEN r.state = 'suppressed'
                       WHEN 'bounced' THEN r.bounce_type = coalesce($7::text, r.bounce_type)
                       ELSE true
               END
           AND ($6::text IS NULL
                OR strpos(r.address, $6) > 0
                OR (strpos(r.address, 'xn--') > 0
                    AND EXISTS (SELECT FROM contacts c
                                 WHERE c.team_id = $1 AND c.address = r.address
                                   AND strpos(lower(c.email), $6) > 0)))
    ), matching AS MATERIALIZED (
        SELECT c.email_id, c.position, c.address, c.bounce_type, c.at
          FROM candidates c
         WHERE c.at IS NULL OR (c.at >= $10 AND c.at < $11)
    ), timed AS (
        SELECT m.email_id, m.address, m.bounce_type, coalesce(m.at, t.at) AS at
          FROM matching m
         CROSS JOIN LATERAL (
               SELECT FROM emails k
                WHERE k.team_id = $1 AND k.id = m.email_id AND k.broadcast_id = $2
               OFFSET 0) AS e
         CROSS JOIN LATERAL (
               SELECT min(k.at) AS at
                 FROM timeline k
                WHERE m.at IS NULL AND k.team_id = $1 AND k.email_id = m.email_id AND k.kind = $3
                  AND k.position = m.position AND (k.detail->>'repeated' = 'true') IS NOT TRUE
               OFFSET 0) AS t
         WHERE coalesce(m.at, t.at) >= $10 AND coalesce(m.at, t.at) < $11
    ), placed AS (
        SELECT d.email_id, d.address, d.bounce_type,
               row_number() OVER (ORDER BY d.at, d.address COLLATE "C", d.email_id) - 1 AS place,
               count(*) OVER () AS total
          FROM timed d
    )
    SELECT p.place, p.email_id, coalesce(c.email, p.address) AS email, b.contact_id, p.bounce_type, p.total
      FROM placed p
      LEFT JOIN contacts c ON c.team_id = $1 AND c.address = p.address
      LEFT JOIN broadcast_recipients b
        ON b.team_id = $1 AND b.broadcast_id = $2 AND b.contact_id = c.id AND b.email_id = p.email_id
     WHERE p.place >= $8 AND p.place < $9
     ORDER BY p.place
"""


async def by_copies(
    db: TeamDb,
    broadcast_id: UUID,
    kind: str,
    ids: tuple[UUID, UUID],
    email: str | None,
    window: PageWindow,
    bounce: str | None,
    within: RowSpan,
) -> ListPart:
    """Return the rows of a window, by looking at all copies; only what is within the span is a part of the
    list."""
    first, last = window
    rows = await db.source.fetch(
        BY_COPIES,
        *(db.team_id, broadcast_id, kind, *ids, email, bounce),
        *(first - within.base, last - within.base, within.start, within.end),
        timeout=60,
    )
    found = [RecipientReportRow(row["place"] + within.base, *row[1:5]) for row in rows]
    return ListPart(found, rows[0]["total"] if rows else 0)


async def opens(db: TeamDb, email_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return how often each of these copies was opened; those never opened are absent."""
    rows = await db.source.fetch(
        """
        SELECT email_id, count(*) AS opens
          FROM timeline
         WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) AND kind = 'opened'
         GROUP BY 1
        """,
        db.team_id,
        email_ids,
    )
    return {row["email_id"]: row["opens"] for row in rows}


class Clicks(NamedTuple):
    email_id: UUID
    url: str
    clicks: int


async def clicks(db: TeamDb, email_ids: Sequence[UUID]) -> list[Clicks]:
    """Return the links that were followed in each of these copies, those that were followed most first."""
    rows = await db.source.fetch(
        """
        SELECT email_id, coalesce(detail->'click'->>'link', '') COLLATE "C" AS url, count(*) AS clicks
          FROM timeline
         WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) AND kind = 'clicked'
         GROUP BY 1, 2
         ORDER BY 3 DESC, 2
        """,
        db.team_id,
        email_ids,
    )
    return [Clicks(*row) for row in rows]


class ClickedUrl(NamedTuple):
    """A link, how often it was followed and by how many recipients."""

    place: int
    url: str
    clicks: int
    unique_clicks: int


class LinkPart(NamedTuple):
    rows: list[ClickedUrl]
    total: int


async def links(db: TeamDb, broadcast_id: UUID, ids: tuple[UUID, UUID], window: PageWindow) -> LinkPart:
    """Return the links of a window in the order of the list, and how many there are in all where it has any;
    `ids` are the least and the greatest that a copy can have."""
    rows = await db.source.fetch(
        """
        SELECT p.place, p.url, p.clicks, p.unique_clicks, p.total
          FROM (SELECT row_number() OVER (ORDER BY g.clicks DESC, g.url) - 1 AS place, g.url, g.clicks,
                       g.unique_clicks, count(*) OVER () AS total
                  FROM (SELECT l.url, sum(l.clicks)::bigint AS clicks, count(*) AS unique_clicks
                          FROM (SELECT coalesce(t.detail->'click'->>'link', '') COLLATE "C" AS url,
                                       t.email_id, count(*) AS clicks
                                  FROM timeline t
                                 CROSS JOIN LATERAL (
                                       SELECT FROM emails k
                                        WHERE k.team_id = $1 AND k.id = t.email_id AND k.broadcast_id = $2
                                       OFFSET 0) AS e
                                 WHERE t.team_id = $1 AND t.kind = 'clicked'
                                   AND t.kind NOT IN ('queued', 'sent', 'delivered')
                                   AND t.email_id >= $3 AND t.email_id <= $4
                                 GROUP BY 1, 2) AS l
                         GROUP BY 1) AS g) AS p
         WHERE p.place >= $5 AND p.place < $6
         ORDER BY p.place
        """,
        db.team_id,
        broadcast_id,
        *ids,
        *window,
        timeout=60,
    )
    return LinkPart([ClickedUrl(*row[:4]) for row in rows], rows[0]["total"] if rows else 0)
