"""SQL of the accounts of emails and recipients, over all teams, for the operator's check."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.invariant import Invariant

TIMEOUT = 24 * 3600.0
WORK_MEM = "64MB"
PREFETCH = 500

# Emails whose address lists are longer or shorter than their recipients. Mostly an address was given
# twice; `reconcile` compares the addresses themselves. Copies of broadcasts have no lists.
LISTS = """
    SELECT e.team_id, e.id AS email_id, e.to_list, e.cc_list, e.bcc_list,
           ARRAY(SELECT r.address FROM recipients r WHERE r.team_id = e.team_id AND r.email_id = e.id)
               AS addresses
      FROM emails e
      JOIN (SELECT team_id, email_id, count(*) AS stored
              FROM recipients
             GROUP BY team_id, email_id) AS found
        ON found.team_id = e.team_id AND found.email_id = e.id
     WHERE e.broadcast_id IS NULL
       AND found.stored <> json_array_length(e.to_list) + coalesce(json_array_length(e.cc_list), 0)
                           + coalesce(json_array_length(e.bcc_list), 0)
"""

# What retention has removed is out of the account: of the time before, only what is left is counted.
ACCOUNTS = """
    SELECT t.id AS team_id, t.name AS team,
           (SELECT count(*) FROM emails e WHERE e.team_id = t.id) AS emails,
           (coalesce(written.accepted, 0) + coalesce(found.older, 0))::bigint AS accepted,
           coalesce(found.delivered, 0) AS delivered, coalesce(found.bounced, 0) AS bounced,
           coalesce(found.failed, 0) AS failed, coalesce(found.suppressed, 0) AS suppressed,
           coalesce(found.canceled, 0) AS canceled, coalesce(found.pending, 0) AS pending
      FROM teams t
      LEFT JOIN (SELECT i.team_id, sum(i.received) AS accepted
                   FROM (SELECT team_id, start, received FROM metric_increments
                          UNION ALL
                         SELECT team_id, start, received FROM rollups WHERE level = 1) AS i
                   LEFT JOIN purges p ON p.team_id = i.team_id
                   LEFT JOIN rollup_purges rp ON rp.team_id = i.team_id
                  WHERE (p.before IS NULL OR i.start >= p.before)
                    AND (rp.before IS NULL OR i.start >= rp.before)
                  GROUP BY i.team_id) AS written
             ON written.team_id = t.id
      LEFT JOIN (SELECT r.team_id,
                        count(*) FILTER (WHERE r.email_id < greatest(p.first_id, rp.first_id)) AS older,
                        count(*) FILTER (WHERE state IN ('delivered', 'opened', 'clicked', 'complained'))
                            AS delivered,
                        count(*) FILTER (WHERE state = 'bounced') AS bounced,
                        count(*) FILTER (WHERE state = 'failed') AS failed,
                        count(*) FILTER (WHERE state = 'suppressed') AS suppressed,
                        count(*) FILTER (WHERE state = 'canceled') AS canceled,
                        count(*) FILTER (WHERE state = ANY ($1::text[])) AS pending
                   FROM recipients r
                   LEFT JOIN purges p ON p.team_id = r.team_id
                   LEFT JOIN rollup_purges rp ON rp.team_id = r.team_id
                  GROUP BY r.team_id) AS found
             ON found.team_id = t.id
     ORDER BY t.id
"""


class EmailAddresses(NamedTuple):
    """The lists of an email as JSON text, and the addresses of its recipients."""

    team_id: UUID
    email_id: UUID
    to_list: str
    cc_list: str | None
    bcc_list: str | None
    addresses: list[str]


class RecipientCounts(NamedTuple):
    """A team's recipients: how many were accepted and what became of them."""

    team_id: UUID
    team: str
    emails: int
    accepted: int
    delivered: int
    bounced: int
    failed: int
    suppressed: int
    canceled: int
    pending: int

    @property
    def known(self) -> int:
        """Recipients whose state is one that there is."""
        return self.delivered + self.bounced + self.failed + self.suppressed + self.canceled + self.pending


async def broken(conn: Connection, invariant: Invariant, limit: int) -> list[dict[str, Any]]:
    """Return the columns of rows that break the invariant."""
    rows = await conn.fetch(invariant.sql, limit, *invariant.args, timeout=TIMEOUT)
    return [dict(row) for row in rows]


async def allow_memory(conn: Connection) -> None:
    """Let the statements of this transaction sort more in memory."""
    await conn.execute("SELECT set_config('work_mem', $1, true)", WORK_MEM)


async def emails_with_other_addresses(conn: Connection) -> AsyncGenerator[EmailAddresses, None]:
    """Return emails whose lists are longer or shorter than their recipients are many."""
    async for row in conn.cursor(LISTS, prefetch=PREFETCH, timeout=TIMEOUT):
        yield EmailAddresses(**row)


async def accounts(conn: Connection, pending: Sequence[str]) -> AsyncGenerator[RecipientCounts, None]:
    """Return the recipients of each team; those in a state of `pending` are still open."""
    async for row in conn.cursor(ACCOUNTS, pending, prefetch=PREFETCH, timeout=TIMEOUT):
        yield RecipientCounts(**row)
