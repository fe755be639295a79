"""SQL of the queue. Locks are taken on work items first, then on emails, then on recipients."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.delivery.items import COPIES, UNTIL_FETCHED, ClaimedItem, Key
from pillarbox.delivery.lease_expiry import LEASE, RENEW_EVERY, Lease
from pillarbox.kernel.postgres.combined_statement import ExpectedRowCount, rows_json
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb, literal
from pillarbox.kernel.work.collectors import changed
from pillarbox.kernel.work.lease_table import LeaseTable

# The window of an item that was never begun does not run yet. How items are freed whose holder is gone stands
# below: they may have been sent.
ITEMS = LeaseTable(
    "deliveries",
    {"team_id": "uuid", "email_id": "uuid", "grp": "smallint"},
    LEASE,
    RENEW_EVERY,
    on_return="""
                   due_at = least(w.due_at, $at),
                   first_attempt_at = CASE WHEN w.tries > 0 OR w.reached OR w.uncertain > 0
                                           THEN w.first_attempt_at END""",
    state="""CASE WHEN d.owner IS NOT NULL THEN 'leased'
                        WHEN d.due_at = $2 THEN 'held'
                        WHEN d.due_at = $3 THEN 'quarantined'
                        WHEN d.due_at > $1 THEN 'waiting'
                        WHEN EXISTS (SELECT FROM paused p
                                      WHERE p.team_id IN (d.team_id, '00000000-0000-0000-0000-000000000000')
                                        AND p.destination IN ('', d.destination,
                                                              replace(d.destination, 'copies:', '')))
                        THEN 'paused'
                        ELSE 'due' END""",
)

# What the poll of queues asks for the engine (`kernel.work.queue_poll`), beside whether it is busy.
# Across teams: whether there is any mail in the queue.
HAS_MAIL = "SELECT EXISTS (SELECT FROM deliveries)"

# Across teams: whether the operator holds something back.
IS_PAUSED = "SELECT EXISTS (SELECT FROM paused)"

# Of no team: whether a site has complained a moment ago. Longer than `site_sharing.OVERLAP`, so that what is
# read by then is forgotten.
HAS_COMPLAINTS = "SELECT EXISTS (SELECT FROM sites WHERE changed_at > $1::timestamptz - interval '1 minute')"

# Across teams: the installation's queue. $1 percent of the table's pages are read.
SAMPLE_SIZE = """
    SELECT count(*) FROM deliveries TABLESAMPLE SYSTEM ($1)
"""

# Across teams: which teams and destinations have due work. One index descent per pair, so a team with
# a million items for one destination costs as much as a team with one. What is paused is not due.
DUE_PAIRS = """
    WITH RECURSIVE pairs AS (
        (SELECT team_id, destination, due_at
           FROM deliveries
          WHERE owner IS NULL AND (team_id, destination) > ($2, $3)
          ORDER BY team_id, destination, due_at
          LIMIT 1)
        UNION ALL
        SELECT next.team_id, next.destination, next.due_at
          FROM pairs
         CROSS JOIN LATERAL (
               SELECT team_id, destination, due_at
                 FROM deliveries
                WHERE owner IS NULL AND (team_id, destination) > (pairs.team_id, pairs.destination)
                ORDER BY team_id, destination, due_at
                LIMIT 1) AS next
    )
    SELECT team_id, destination,
           due_at <= $1
           AND NOT EXISTS (SELECT FROM paused p
                            WHERE p.team_id IN (pairs.team_id, '00000000-0000-0000-0000-000000000000')
                              AND p.destination IN ('', pairs.destination,
                                                    replace(pairs.destination, 'copies:', ''))) AS due
      FROM pairs
     LIMIT $4
"""

# For several teams and destinations at once, each with its own limit. `due` is a CTE because a subquery may
# be read again for every row that it is joined to, and would then find and lock other rows each time.
CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT d.team_id, d.email_id, d.grp, d.released
          FROM unnest($1::uuid[], $2::text[], $3::integer[]) AS k (team_id, destination, most)
         CROSS JOIN LATERAL (
               SELECT d.team_id, d.email_id, d.grp, d.released
                 FROM deliveries d
                WHERE d.team_id = k.team_id AND d.destination = k.destination
                  AND d.owner IS NULL AND d.due_at <= $6
                ORDER BY d.due_at
                LIMIT k.most
                  FOR UPDATE SKIP LOCKED) AS d
         WHERE NOT EXISTS (SELECT FROM paused p
                            WHERE p.team_id IN (k.team_id, '00000000-0000-0000-0000-000000000000')
                              AND p.destination IN ('', k.destination,
                                                    replace(k.destination, 'copies:', '')))
    )
    UPDATE deliveries d
       SET owner = $4, leased_until = $5, attempt = d.attempt + 1,
           first_attempt_at = coalesce(d.first_attempt_at, $6), released = true
      FROM due
     WHERE d.team_id = due.team_id AND d.email_id = due.email_id AND d.grp = due.grp
    RETURNING d.team_id, d.email_id, d.grp, d.destination, d.attempt, d.tries, d.reached, d.uncertain,
              due.released, d.first_attempt_at, d.begun, d.lost
"""

DROP = """
    DELETE FROM deliveries WHERE team_id = $1 AND email_id = $2
"""

PARK = """
    UPDATE deliveries d
       SET due_at = $3, reason = $4
      FROM unnest($1::uuid[], $2::text[]) AS k (team_id, destination)
     WHERE d.team_id = k.team_id AND d.destination = k.destination AND d.owner IS NULL AND d.due_at < $3
       AND d.released
"""

# Across teams: leases that should have been renewed by now, and those that are too long.
SUSPECTS = """
    (SELECT team_id, email_id, grp, leased_until FROM deliveries
      WHERE owner IS NOT NULL AND leased_until < $1 ORDER BY leased_until LIMIT $2)
     UNION ALL
    (SELECT team_id, email_id, grp, leased_until FROM deliveries
      WHERE owner IS NOT NULL AND leased_until > $3 ORDER BY leased_until DESC LIMIT $2)
"""

# Items whose process went silent. They go out once more and count as uncertain; those that were begun too
# often without an outcome are quarantined.
FREE_EXPIRED = """
    WITH lost AS MATERIALIZED (
        SELECT d.team_id, d.email_id, d.grp
          FROM unnest($2::text::uuid[], $8::text::uuid[], $9::text::int[], $10::timestamptz[])
               AS k (team_id, email_id, grp, leased_until)
          JOIN deliveries d
            ON d.team_id = k.team_id AND d.email_id = k.email_id AND d.grp = k.grp
         WHERE d.owner IS NOT NULL AND d.leased_until = k.leased_until
           FOR UPDATE OF d SKIP LOCKED
    )
    UPDATE deliveries d
       SET owner = NULL, leased_until = NULL, uncertain = d.uncertain + 1, lost = d.lost + 1,
           due_at = CASE WHEN d.begun >= $3 THEN $4::timestamptz
                         ELSE $1::timestamptz + ($7::interval[])[d.begun + 1] END,
           reason = CASE WHEN d.begun >= $3 THEN $5::text ELSE $6::text END
      FROM lost
     WHERE d.team_id = lost.team_id AND d.email_id = lost.email_id AND d.grp = lost.grp
    RETURNING d.team_id, d.email_id, d.grp, d.begun >= $3 AS quarantined
"""

# Across teams: items of a process that is known to be dead; of them those are uncertain that it had offered,
# or all where that is not known. What somebody has locked is left for the next time.
FREE_OWNED = """
    WITH lost AS MATERIALIZED (
        SELECT team_id, email_id, grp
          FROM deliveries
         WHERE owner IS NOT NULL AND owner = $1
           FOR UPDATE SKIP LOCKED
    )
    UPDATE deliveries d
       SET owner = NULL, leased_until = NULL, lost = d.lost + 1,
           uncertain = d.uncertain
               + (NOT $8::boolean
                  OR (d.team_id, d.email_id, d.grp) IN (
                      SELECT k.team_id, k.email_id, k.grp
                        FROM unnest($9::uuid[], $10::uuid[], $11::smallint[]) AS k (team_id, email_id, grp))
                 )::integer,
           due_at = CASE WHEN d.begun >= $3 THEN $4::timestamptz
                         ELSE $2::timestamptz + ($7::interval[])[d.begun + 1] END,
           reason = CASE WHEN d.begun >= $3 THEN $5::text ELSE $6::text END
      FROM lost
     WHERE d.team_id = lost.team_id AND d.email_id = lost.email_id AND d.grp = lost.grp
    RETURNING d.team_id, d.email_id, d.grp, d.begun >= $3 AS quarantined
"""

OWNS = "SELECT EXISTS (SELECT FROM deliveries WHERE owner IS NOT NULL AND owner = $1)"

# Says that an attempt begins, of an item that has already lost a holder.
BEGIN = """
    UPDATE deliveries SET begun = begun + 1
     WHERE team_id = $1 AND email_id = $2 AND grp = $3 AND owner = $4 AND attempt = $5
"""

# An item that nobody holds is claimed no more.
QUARANTINE_ROW = """
    UPDATE deliveries SET due_at = $4, reason = $5
     WHERE team_id = $1 AND email_id = $2 AND grp = $3 AND owner IS NULL
"""

# Locks are taken in key order before anything changes: canceling takes those of one email in that order.
FINISH = """
    WITH held AS MATERIALIZED (
        SELECT d.team_id, d.email_id, d.grp, k.attempt
          FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text::smallint[], $4::text::integer[])
               AS k (team_id, email_id, grp, attempt)
          JOIN deliveries d ON d.team_id = k.team_id AND d.email_id = k.email_id AND d.grp = k.grp
         ORDER BY d.team_id, d.email_id, d.grp
           FOR UPDATE OF d
    )
    DELETE FROM deliveries d
     USING held
     WHERE d.team_id = held.team_id AND d.email_id = held.email_id AND d.grp = held.grp
    RETURNING d.team_id, d.email_id, d.grp,
              d.owner IS NOT NULL AND (d.owner <> $5 OR d.attempt <> held.attempt) AS contested
"""

# The same while it is certain that nobody else has them. Each row is looked up on its own, by its key: a join
# that was planned while the table was small would go on to read all of it.
FINISH_OURS = """
    DELETE FROM deliveries d
     USING json_to_recordset($1::text::json) AS k (team_id uuid, email_id uuid, grp smallint, attempt integer)
     CROSS JOIN LATERAL (
           SELECT x.ctid AS place
             FROM deliveries x
            WHERE x.team_id = k.team_id AND x.email_id = k.email_id AND x.grp = k.grp
           OFFSET 0) AS found
     WHERE d.ctid = found.place AND d.owner IS NOT DISTINCT FROM $2 AND d.attempt = k.attempt
    RETURNING d.email_id
"""

# The same for ends and retries together.
SETTLE = """
    WITH held AS MATERIALIZED (
        SELECT d.team_id, d.email_id, d.grp
          FROM unnest($1::uuid[] || $4::uuid[], $2::uuid[] || $5::uuid[], $3::smallint[] || $6::smallint[])
               AS k (team_id, email_id, grp)
          JOIN deliveries d ON d.team_id = k.team_id AND d.email_id = k.email_id AND d.grp = k.grp
         ORDER BY d.team_id, d.email_id, d.grp
           FOR UPDATE OF d
    ), done AS (
        DELETE FROM deliveries d
         USING held, unnest($1::uuid[], $2::uuid[], $3::smallint[], $14::integer[])
               AS k (team_id, email_id, grp, attempt)
         WHERE held.team_id = k.team_id AND held.email_id = k.email_id AND held.grp = k.grp
           AND d.team_id = k.team_id AND d.email_id = k.email_id AND d.grp = k.grp
        RETURNING d.team_id, d.email_id, d.grp,
                  d.owner IS NOT NULL AND (d.owner <> $13 OR d.attempt <> k.attempt) AS contested
    ), retry AS (
        UPDATE deliveries d
           SET owner = NULL, leased_until = NULL, due_at = k.due_at, tries = d.tries + 1, begun = 0,
               reached = d.reached OR k.reached, last_host = k.last_host, last_reply = k.last_reply,
               reason = k.reason
          FROM held,
               unnest($4::uuid[], $5::uuid[], $6::smallint[], $7::integer[], $8::timestamptz[],
                      $9::boolean[], $10::text[], $11::text[], $12::text[])
               AS k (team_id, email_id, grp, attempt, due_at, reached, last_host, last_reply, reason)
         WHERE held.team_id = k.team_id AND held.email_id = k.email_id AND held.grp = k.grp
           AND d.team_id = k.team_id AND d.email_id = k.email_id AND d.grp = k.grp
           AND d.attempt = k.attempt AND d.owner = $13
        RETURNING d.team_id, d.email_id, d.grp, false AS contested
    )
    SELECT team_id, email_id, grp, contested FROM done
    UNION ALL
    SELECT team_id, email_id, grp, contested FROM retry
"""

LOCK_EMAIL = """
    SELECT grp, released
      FROM deliveries
     WHERE team_id = $1 AND email_id = $2
     ORDER BY grp
       FOR UPDATE
"""

RESCHEDULE = """
    UPDATE deliveries SET due_at = CASE WHEN due_at = $4 THEN due_at ELSE $3 END, restored_due_at = NULL
     WHERE team_id = $1 AND email_id = $2
"""

RELEASE_FETCHED = """
    UPDATE deliveries SET due_at = $3
     WHERE team_id = $1 AND email_id = $2 AND due_at = $4
"""


class Pair(NamedTuple):
    """A team and a destination that have free work; `due` where the first of it is due."""

    team_id: UUID
    destination: str
    due: bool

    @property
    def is_of_copies(self) -> bool:
        """Whether the work is copies of broadcasts."""
        return self.destination.startswith(COPIES)

    @property
    def domain(self) -> str:
        """Where the mail goes."""
        return self.destination.removeprefix(COPIES)


class ClaimShare(NamedTuple):
    """How many items of a pair a claim may take."""

    pair: Pair
    most: int


class FreedItem(NamedTuple):
    """An item whose holder is gone."""

    team_id: UUID
    email_id: UUID
    grp: int
    quarantined: bool


class Quarantine(NamedTuple):
    """An item that was begun `after` times since its last outcome is quarantined with a reason; what is free
    again gets the other one, and waits as long as `pauses` says for the times that it was begun."""

    after: int
    until: datetime
    reason: str
    lost: str
    pauses: Sequence[timedelta]


class FinishedItem(NamedTuple):
    """An end; it counts whoever has the item. `attempt` is the one that brought it."""

    team_id: UUID
    email_id: UUID
    grp: int
    attempt: int


class Retry(NamedTuple):
    """A retry decision; it counts only while the item is at this `attempt` and ours."""

    team_id: UUID
    email_id: UUID
    grp: int
    attempt: int
    due_at: datetime
    reached: bool
    last_host: str | None
    last_reply: str | None
    reason: str


async def pairs(conn: Source, now: datetime, after: tuple[UUID, str], limit: int) -> list[Pair]:
    """Return up to `limit` pairs behind `after`, in key order, due or not."""
    return [Pair(**row) for row in await conn.fetch(DUE_PAIRS, now, *after, limit)]


async def claim(
    conn: Connection, claim_shares: Sequence[ClaimShare], owner: UUID, until: datetime, now: datetime
) -> list[ClaimedItem]:
    """Lease due items, of each team and destination up to its share."""
    teams, destinations, most = zip(*((*share.pair[:2], share.most) for share in claim_shares), strict=True)
    rows = await conn.fetch(CLAIM, teams, destinations, most, owner, until, now)
    return [ClaimedItem(*row) for row in rows]


async def drop(db: TeamDb, email_id: UUID) -> None:
    """Remove the work of an email that is not to be sent any more."""
    await db.run(DROP, email_id)


async def park(conn: Source, pairs: Sequence[tuple[UUID, str]], until: datetime, reason: str) -> None:
    """Postpone the free work of these teams and destinations; scheduled mail keeps its time."""
    await conn.execute(PARK, *zip(*pairs, strict=True), until, reason)


async def suspects(conn: Source, before: datetime, beyond: datetime, limit: int = 4000) -> list[Lease]:
    """Return the leases that end before `before`, the longest overdue first, and those that end
    after `beyond`."""
    return [Lease(**row) for row in await conn.fetch(SUSPECTS, before, limit, beyond)]


async def free_expired(
    conn: Source, lost: Sequence[Lease], now: datetime, rule: Quarantine
) -> list[FreedItem]:
    """Free the items of these leases, unless they were renewed or given to somebody else meanwhile."""
    teams, emails, groups, untils = zip(*lost, strict=True)
    rows = await conn.fetch(
        FREE_EXPIRED, now, literal(teams), *rule, literal(emails), literal(groups), untils
    )
    return [FreedItem(**row) for row in rows]


async def owns_items(conn: Source, owner: UUID) -> bool:
    """Return whether a process still has items."""
    found: bool = await conn.fetchval(OWNS, owner)
    return found


async def free_owned(
    conn: Source, owner: UUID, now: datetime, rule: Quarantine, offered: Collection[Key] | None
) -> list[FreedItem]:
    """Free the items of a dead process, which may have sent those that it had `offered`; None: any."""
    keys = list(zip(*sorted(offered or ()), strict=True)) or [()] * 3
    return [
        FreedItem(**row)
        for row in await conn.fetch(FREE_OWNED, owner, now, *rule, offered is not None, *keys)
    ]


async def begin(conn: Source, key: Key, owner: UUID, attempt: int) -> bool:
    """Note that an attempt begins; False when the item is not ours any more."""
    status: str = await conn.execute(BEGIN, *key, owner, attempt)
    return status.endswith(" 1")


async def quarantine_row(conn: Source, key: Key, until: datetime, reason: str) -> bool:
    """Let an item that nobody holds wait until then; False where it is held or gone."""
    status: str = await conn.execute(QUARANTINE_ROW, *key, until, reason)
    return status.endswith(" 1")


async def settle(
    conn: Connection, done: Sequence[FinishedItem], retries: Sequence[Retry], owner: UUID
) -> dict[Key, bool]:
    """Finish and reschedule items; return those whose row was still there and whose outcome counts.

    The value says whether another process has the item by now: then it may be going out once more.
    """
    rows: list[Any]
    if retries:
        *finished, attempts = list(zip(*sorted(done), strict=True)) or [()] * 4
        again = list(zip(*sorted(retries), strict=True))
        rows = await conn.fetch(SETTLE, *finished, *again, owner, attempts)
    else:
        rows = await conn.fetch(FINISH, *map(literal, zip(*sorted(done), strict=True)), owner)
    return {(row["team_id"], row["email_id"], row["grp"]): row["contested"] for row in rows}


def finish_ours(done: Sequence[FinishedItem], owner: UUID) -> ExpectedRowCount:
    """Return the statement that finishes items that no other process has seen."""
    return ExpectedRowCount(FINISH_OURS, (rows_json([d._asdict() for d in sorted(done)]), owner), len(done))


async def lock_email(db: TeamDb, email_id: UUID) -> list[tuple[int, bool]]:
    """Lock the email's live items, before the email itself is locked, and return them."""
    rows = await db.source.fetch(LOCK_EMAIL, db.team_id, email_id)
    return [(row["grp"], row["released"]) for row in rows]


async def reschedule(db: TeamDb, email_id: UUID, due_at: datetime) -> None:
    """Move the work of an email that is still scheduled; items that wait for a file keep waiting."""
    await db.run(RESCHEDULE, email_id, due_at, UNTIL_FETCHED)


async def release_fetched(db: TeamDb, email_id: UUID, due_at: datetime) -> None:
    """Release the work of the email: the files that it waited for are here."""
    await db.run(RELEASE_FETCHED, email_id, due_at, UNTIL_FETCHED)


async def misdated_items(source: Source, now: datetime) -> int:
    """Make due the mail that was accepted by a clock ahead of time, dated after `now`; return how many items.

    Mail that was to be sent at once and has not been begun is made due. Scheduled mail stays: the API has
    answered its instant, and whether that was given or computed from a wrong `now` is not known any more. A
    retry is late by as much as the clock was ahead, at most.
    """
    # Across teams: the clock was the same for all of them. What waits for its files is due in another time.
    return changed(
        await source.execute(
            """
            UPDATE deliveries
               SET due_at = $1
             WHERE owner IS NULL AND due_at > $1 AND created_at > $1 AND released AND attempt = 0
               AND due_at < created_at + interval '1 minute'
            """,
            now,
        )
    )


async def sampled_items(source: Source, percent: float, timeout: float) -> int:
    """Count the items on so many percent of the pages of the queue."""
    found: int = await source.fetchval(SAMPLE_SIZE, percent, timeout=timeout)
    return found
