"""SQL of broadcasts in lists and in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastSummary:
    """A broadcast with how far it is."""

    id: UUID
    subject: str
    status: str
    recipients: int | None
    queued_at: datetime | None
    paused_at: datetime | None
    stage: str | None

    @property
    def condition(self) -> str:
        """The status, or `paused`."""
        return "paused" if self.status == "queued" and self.paused_at is not None else self.status


async def summaries(db: TeamDb, ids: Sequence[UUID]) -> list[BroadcastSummary]:
    return await db.all(
        BroadcastSummary,
        """
        SELECT b.id, b.subject, b.status, b.recipients, b.queued_at, b.paused_at, p.stage
          FROM broadcasts b
          LEFT JOIN broadcast_plans p ON p.team_id = b.team_id AND p.broadcast_id = b.id
         WHERE b.team_id = $1 AND b.id = ANY ($2::uuid[])
        """,
        ids,
    )


# Increments and rollups stand for what happened: each event of a copy makes or changes one.
DIGEST: Final = """
    SELECT md5(coalesce(string_agg(concat_ws(' ', b.id, b.status, b.recipients, b.paused_at, b.name, p.stage,
                                             p.winner, i.made, i.newest), ',' ORDER BY b.id), ''))
      FROM (SELECT k.team_id, k.id, k.status, k.recipients, k.paused_at, k.name
              FROM broadcasts k
             WHERE k.team_id = $1 AND ($2::uuid IS NULL OR k.id = $2)
             ORDER BY k.id DESC
             LIMIT 100) AS b
      LEFT JOIN broadcast_plans p ON p.team_id = b.team_id AND p.broadcast_id = b.id
      LEFT JOIN LATERAL (
           SELECT count(*) AS made, max(r.start) AS newest
             FROM metric_increments r
            WHERE r.team_id = $1 AND r.broadcast_id = b.id AND $2::uuid IS NOT NULL) AS i ON true
"""


async def digest(db: TeamDb, broadcast_id: UUID | None) -> str:
    """Return a text that changes with a broadcast and the events of its copies, or with the newest ones."""
    found: str = await db.value(DIGEST, broadcast_id)
    return found


class RecipientDomainCounts(NamedTuple):
    """The copies to one domain, by their fate; `host` is the server that took one of them. The domain is None
    for the smaller ones together."""

    domain: str | None
    host: str | None
    copies: int
    delivered: int
    bounced: int
    complained: int
    opened: int
    clicked: int


# $3 and $4: the least and the greatest id that a copy can have; $5: how many domains are named.
BY_DOMAIN: Final = r"""
    WITH copies AS (
        SELECT split_part(r.address, '@', 2) AS domain, r.email_id, r.sent_at, r.opened_at, r.clicked_at,
               r.complained_at, r.bounce_type, r.state
          FROM recipients r
         CROSS JOIN LATERAL (
               SELECT FROM emails k
                WHERE k.team_id = $1 AND k.id = r.email_id AND k.broadcast_id = $2
               OFFSET 0) AS e
         WHERE r.team_id = $1 AND r.email_id >= $3 AND r.email_id <= $4
    ), domains AS (
        SELECT domain, count(*) AS copies, max(email_id::text) FILTER (WHERE sent_at IS NOT NULL) AS sample,
               count(*) FILTER (WHERE state IN ('delivered', 'opened', 'clicked', 'complained')) AS delivered,
               count(bounce_type) AS bounced, count(complained_at) AS complained, count(opened_at) AS opened,
               count(clicked_at) AS clicked,
               row_number() OVER (ORDER BY count(*) DESC, domain) AS place
          FROM copies
         GROUP BY domain
    )
    SELECT d.domain,
           (SELECT left(split_part(t.detail::text, '"', 4), 255)
              FROM timeline t
             WHERE t.team_id = $1 AND t.email_id = d.sample::uuid AND t.kind IN ('sent', 'delivered')
               AND t.detail::text LIKE '{"host":"%'
             ORDER BY t.id
             LIMIT 1) AS host,
           d.copies, d.delivered, d.bounced, d.complained, d.opened, d.clicked
      FROM domains d
     WHERE d.place <= $5
     UNION ALL
    SELECT NULL, NULL, sum(d.copies)::bigint, sum(d.delivered)::bigint, sum(d.bounced)::bigint,
           sum(d.complained)::bigint, sum(d.opened)::bigint, sum(d.clicked)::bigint
      FROM domains d
     WHERE d.place > $5
    HAVING count(*) > 0
"""


async def by_domain(
    db: TeamDb, broadcast_id: UUID, ids: tuple[UUID, UUID], limit: int
) -> list[RecipientDomainCounts]:
    """Return the largest domains of the recipients with what became of their copies, then all others."""
    rows = await db.source.fetch(BY_DOMAIN, db.team_id, broadcast_id, *ids, limit, timeout=60)
    return [RecipientDomainCounts(*row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleAndPrograms:
    """Copies that people opened, and those that programs alone opened; the same of links."""

    opened: int
    opened_by_machine: int
    clicked: int
    clicked_by_machine: int


# The detail is compared as text: it may hold what cannot be read as JSON, and quotes in it are escaped.
PEOPLE: Final = """
    SELECT count(*) FILTER (WHERE c.kind = 'opened' AND c.by_person) AS opened,
           count(*) FILTER (WHERE c.kind = 'opened' AND NOT c.by_person) AS opened_by_machine,
           count(*) FILTER (WHERE c.kind = 'clicked' AND c.by_person) AS clicked,
           count(*) FILTER (WHERE c.kind = 'clicked' AND NOT c.by_person) AS clicked_by_machine
      FROM (SELECT t.kind, t.email_id,
                   bool_or(coalesce(t.detail::text, '') NOT LIKE '%"machine":"%') AS by_person
              FROM timeline t
             CROSS JOIN LATERAL (
                   SELECT FROM emails k
                    WHERE k.team_id = $1 AND k.id = t.email_id AND k.broadcast_id = $2
                   OFFSET 0) AS e
             WHERE t.team_id = $1 AND t.kind IN ('opened', 'clicked')
               AND t.kind NOT IN ('queued', 'sent', 'delivered')
               AND t.email_id >= $3 AND t.email_id <= $4
             GROUP BY 1, 2) AS c
"""


async def people_and_programs(db: TeamDb, broadcast_id: UUID, ids: tuple[UUID, UUID]) -> PeopleAndPrograms:
    """Count the copies that were opened and whose links were followed, by whom."""
    [row] = await db.source.fetch(PEOPLE, db.team_id, broadcast_id, *ids, timeout=60)
    return PeopleAndPrograms(**row)
