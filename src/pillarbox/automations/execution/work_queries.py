"""SQL of the work of runs: who has work that is due, and who holds it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb, transaction
from pillarbox.kernel.work.lease_table import LeaseTable
from pillarbox.kernel.work.lone_attempts import DUE_AFTER_LOSS

LEASE: Final = timedelta(seconds=60)
SILENT: Final = 10.0
"""Seconds after which leases that have run out and do not move are nobody's."""

# It counts as a death: `tries` stays behind.
STEPS: Final = LeaseTable(
    "automation_work",
    {"team_id": "uuid", "run_id": "uuid", "position": "smallint"},
    LEASE,
    SILENT,
    on_loss=f"due_at = {DUE_AFTER_LOSS}",
)

# Across teams: who has free work, and whether the first of it is due. One index descent for each team, which
# may have a million waits.
TEAMS: Final = """
    WITH RECURSIVE places AS (
        (SELECT team_id, due_at
           FROM automation_work
          WHERE owner IS NULL AND team_id > $2
          ORDER BY team_id, due_at
          LIMIT 1)
        UNION ALL
        SELECT next.team_id, next.due_at
          FROM places
         CROSS JOIN LATERAL (
               SELECT team_id, due_at
                 FROM automation_work
                WHERE owner IS NULL AND team_id > places.team_id
                ORDER BY team_id, due_at
                LIMIT 1) AS next
    )
    SELECT team_id, due_at <= $1 AS due FROM places LIMIT $3
"""

# Across teams: a delay or wait that is over gets its place, by when it was due. `due` is a CTE because a
# subquery may be read again for every row that it is joined to, and would then lock other rows each time.
ORDER: Final = """
    WITH due AS MATERIALIZED (
        SELECT d.team_id, d.run_id, d.position
          FROM unnest($1::uuid[]) AS k (team_id)
         CROSS JOIN LATERAL (
               SELECT d.team_id, d.run_id, d.position
                 FROM automation_work d
                WHERE d.team_id = k.team_id AND d.order_at IS NULL AND d.owner IS NULL AND d.due_at <= $2
                ORDER BY d.due_at
                LIMIT $3
                  FOR UPDATE SKIP LOCKED) AS d
    )
    UPDATE automation_work w
       SET order_at = w.due_at
      FROM due
     WHERE w.team_id = due.team_id AND w.run_id = due.run_id AND w.position = due.position
"""

# Across teams: the first step of each contact behind `after`, one index descent for each contact, as far as
# $4 contacts; of them those that are free and due, as many as the range may have, and the last one of $4.
FIRST: Final = """
    SELECT k.team_id, f.contact_id, f.run_id, f.position, f.is_due
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $6::integer[]) AS k (team_id, after, until, share)
     CROSS JOIN LATERAL (
           WITH RECURSIVE first AS (
               (SELECT w.contact_id, w.run_id, w.position, w.owner IS NULL AND w.due_at <= $5 AS is_due,
                       1 AS nth
                  FROM automation_work w
                 WHERE w.team_id = k.team_id AND w.order_at IS NOT NULL AND w.contact_id > k.after
                 ORDER BY w.contact_id, w.order_at, w.run_id, w.position
                 LIMIT 1)
               UNION ALL
               SELECT next.contact_id, next.run_id, next.position, next.is_due, first.nth + 1
                 FROM first
                CROSS JOIN LATERAL (
                      SELECT w.contact_id, w.run_id, w.position,
                             w.owner IS NULL AND w.due_at <= $5 AS is_due
                        FROM automation_work w
                       WHERE w.team_id = k.team_id AND w.order_at IS NOT NULL
                         AND w.contact_id > first.contact_id
                       ORDER BY w.contact_id, w.order_at, w.run_id, w.position
                       LIMIT 1) AS next
                WHERE first.nth < $4 AND first.contact_id < k.until
           )
           SELECT contact_id, run_id, position, is_due
             FROM first
            WHERE contact_id <= k.until AND (is_due OR nth = $4)
            LIMIT k.share) AS f
"""

# Across teams: takes these contacts for one claim, until its transaction ends; those that another claim
# has are left out.
TAKE: Final = """
    SELECT k.team_id, k.contact_id
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, contact_id)
     WHERE pg_try_advisory_xact_lock(hashtextextended('step of ' || k.team_id || k.contact_id, 0))
"""

# Across teams: these steps, as far as they are free, and still the first of their contacts. While a step of a
# contact is carried out, or has yet to get its place, no other one is claimed. There are few of both.
CLAIM: Final = """
    WITH held AS MATERIALIZED (
        SELECT team_id, contact_id FROM automation_work WHERE owner IS NOT NULL
         UNION
        SELECT w.team_id, w.contact_id
          FROM (SELECT DISTINCT k.team_id FROM unnest($1::uuid[]) AS k (team_id)) AS k
          JOIN automation_work w ON w.team_id = k.team_id
         WHERE w.order_at IS NULL AND w.owner IS NULL AND w.due_at <= $5
    ), due AS MATERIALIZED (
        SELECT w.team_id, w.run_id, w.position
          FROM unnest($1::uuid[], $2::uuid[], $6::smallint[]) AS k (team_id, run_id, position)
          JOIN automation_work w
            ON w.team_id = k.team_id AND w.run_id = k.run_id AND w.position = k.position
         WHERE w.owner IS NULL AND w.due_at <= $5
           AND (w.team_id, w.contact_id) NOT IN (SELECT h.team_id, h.contact_id FROM held h)
           AND NOT EXISTS (SELECT FROM automation_work o
                            WHERE o.team_id = w.team_id AND o.contact_id = w.contact_id
                              AND o.order_at IS NOT NULL
                              AND (o.order_at, o.run_id, o.position) < (w.order_at, w.run_id, w.position))
           FOR UPDATE OF w SKIP LOCKED
    )
    UPDATE automation_work w
       SET owner = $3, leased_until = $4, attempt = w.attempt + 1
      FROM due
      JOIN automation_runs r ON r.team_id = due.team_id AND r.id = due.run_id
     WHERE w.team_id = due.team_id AND w.run_id = due.run_id AND w.position = due.position
    RETURNING w.team_id, w.run_id, w.position, w.attempt, w.tries, w.due_at, w.waiting, w.failing_since,
              r.automation_id, r.version, w.contact_id, r.event_name, w.order_at, w.begun
"""

# Only what is still this claim's. What went wrong counts as an outcome of the claim and has $6 to $8: when
# it is due, why, and since when it fails; what was not begun, or whose process is being stopped, is due as it
# was. What somebody has locked is left, and returned, so that nothing waits for one long transaction.
FREE_CLAIMED: Final = """
    WITH ours AS MATERIALIZED (
        SELECT w.run_id, w.position, w.attempt
          FROM unnest($2::uuid[], $3::smallint[], $4::integer[]) AS k (run_id, position, attempt)
          JOIN automation_work w
            ON w.team_id = $1 AND w.run_id = k.run_id AND w.position = k.position AND w.attempt = k.attempt
         WHERE w.owner = $5
    ), free AS MATERIALIZED (
        SELECT w.run_id, w.position
          FROM ours
          JOIN automation_work w
            ON w.team_id = $1 AND w.run_id = ours.run_id AND w.position = ours.position
               AND w.attempt = ours.attempt
         WHERE w.owner = $5
           FOR UPDATE OF w SKIP LOCKED
    ), freed AS (
        UPDATE automation_work w
           SET owner = NULL, leased_until = NULL, tries = w.attempt, begun = 0,
               due_at = coalesce($6::timestamptz, w.due_at), reason = coalesce($7::text, w.reason),
               failing_since = coalesce(w.failing_since, $8::timestamptz)
          FROM free
         WHERE w.team_id = $1 AND w.run_id = free.run_id AND w.position = free.position
    )
    SELECT run_id, position FROM ours EXCEPT SELECT run_id, position FROM free
"""

# Only what is still this claim's: an attempt begins, of a step that has lost a process before.
BEGIN: Final = """
    UPDATE automation_work SET begun = begun + 1
     WHERE team_id = $1 AND run_id = $2 AND position = $3 AND attempt = $4 AND owner = $5
"""

# Only what is still this claim's, and is to be alone while something else is. Nothing was begun.
LEAVE: Final = """
    UPDATE automation_work SET owner = NULL, leased_until = NULL, tries = tries + 1, due_at = $6
     WHERE team_id = $1 AND run_id = $2 AND position = $3 AND attempt = $4 AND owner = $5
"""

START: Final = UUID(int=0)
"""Before all teams and contacts."""

END: Final = UUID(int=2**128 - 1)
"""Behind all contacts."""

ORDERED_AT_ONCE: Final = 1000
"""Delays and waits that are over and get their places by one statement, of all its teams together."""

CONTACTS_AT_ONCE: Final = 1000
"""Contacts whose first step is looked at by one statement."""


class DueTeam(NamedTuple):
    """A team with free work; `due` where the first of it is due."""

    team_id: UUID
    due: bool


class ContactRange(NamedTuple):
    """The contacts of a team behind one and up to another, and how many of their steps may be claimed."""

    team_id: UUID
    after: UUID
    until: UUID
    limit: int


class FirstStep(NamedTuple):
    """The first step that is ready for a contact."""

    team_id: UUID
    contact_id: UUID
    run_id: UUID
    position: int
    is_due: bool


class RunStepPlace(NamedTuple):
    """A step of a run that has work."""

    run_id: UUID
    position: int


class ClaimedStep(NamedTuple):
    """A step that this process may carry out: it is to begin, or its delay or wait is over (`waiting`)."""

    team_id: UUID
    run_id: UUID
    position: int
    attempt: int
    tries: int
    due_at: datetime
    waiting: bool
    failing_since: datetime | None
    automation_id: UUID
    version: int
    contact_id: UUID
    event_name: str
    order_at: datetime
    begun: int

    @property
    def deaths(self) -> int:
        """How many claims before this one ended with their process."""
        return self.attempt - self.tries - 1


async def teams(source: Source, now: datetime, after: UUID, limit: int) -> list[DueTeam]:
    """Return up to `limit` teams with free work behind `after`, in order, due or not."""
    return [DueTeam(*row) for row in await source.fetch(TEAMS, now, after, limit)]


async def order(source: Source, team_ids: Sequence[UUID], now: datetime) -> None:
    """Give what became due in these teams a place among the steps of its contact."""
    share = max(1, ORDERED_AT_ONCE // len(team_ids))
    while True:
        status: str = await source.execute(ORDER, team_ids, now, share)
        if int(status.rsplit(" ", 1)[-1]) < share:
            return


async def first_steps(source: Source, ranges: Sequence[ContactRange], now: datetime) -> list[FirstStep]:
    """Return the first steps of contacts, of each range up to its limit of those that are due. Where as many
    contacts were read as one statement may read, the last of these is the last of its range."""
    team_ids, after, until, limits = zip(*ranges, strict=True)
    rows = await source.fetch(FIRST, team_ids, after, until, CONTACTS_AT_ONCE, now, limits)
    return [FirstStep(*row) for row in rows]


async def claim(
    source: Source, steps: Sequence[FirstStep], owner: UUID, until: datetime, now: datetime
) -> list[ClaimedStep]:
    """Lease those of these steps that are still the first of their contacts and free, the oldest of each team
    first."""
    places = [step.team_id for step in steps], [step.contact_id for step in steps]
    async with transaction(source) as conn:
        taken = {(row[0], row[1]) for row in await conn.fetch(TAKE, *places)}
        ours = [step for step in steps if (step.team_id, step.contact_id) in taken]
        keys = [step.team_id for step in ours], [step.run_id for step in ours]
        positions = [step.position for step in ours]
        rows = await conn.fetch(CLAIM, *keys, owner, until, now, positions)
    claimed = [ClaimedStep(*row) for row in rows]
    return sorted(claimed, key=lambda step: (step.team_id, step.due_at, step.run_id, step.position))


async def postpone(
    db: TeamDb, items: Sequence[ClaimedStep], owner: UUID, due_at: datetime, reason: str, now: datetime | None
) -> list[ClaimedStep]:
    """Free work that could not be done now, and fails since `now` where that is given; returns what somebody
    else has locked at this moment."""
    return _among(items, await db.all(RunStepPlace, FREE_CLAIMED, *_keys(items), owner, due_at, reason, now))


async def give_back(db: TeamDb, items: Sequence[ClaimedStep], owner: UUID) -> list[ClaimedStep]:
    """Free work; returns what somebody else has locked at this moment."""
    return _among(items, await db.all(RunStepPlace, FREE_CLAIMED, *_keys(items), owner, None, None, None))


def _among(items: Sequence[ClaimedStep], places: Sequence[RunStepPlace]) -> list[ClaimedStep]:
    found = set(places)
    return [item for item in items if RunStepPlace(item.run_id, item.position) in found]


def _keys(items: Sequence[ClaimedStep]) -> tuple[list[UUID], list[int], list[int]]:
    ordered = sorted(items, key=lambda one: (one.run_id, one.position))
    return (
        [one.run_id for one in ordered],
        [one.position for one in ordered],
        [one.attempt for one in ordered],
    )


async def begin(db: TeamDb, item: ClaimedStep, owner: UUID) -> bool:
    """Write down that an attempt begins; False where the step is no longer this claim's."""
    return await db.run(BEGIN, item.run_id, item.position, item.attempt, owner) == 1


async def leave(db: TeamDb, item: ClaimedStep, owner: UUID, due_at: datetime) -> None:
    """Free a step that was not begun, for later."""
    await db.run(LEAVE, item.run_id, item.position, item.attempt, owner, due_at)
