"""The queue as the operator sees it: what waits, for whom, and why; and "try it now".

An item is in exactly one of these conditions:

    working    a process holds it
    fetching   an attachment is still to be fetched; nothing claims the item until then
    scheduled  the sender asked for a later time
    due        its time has come; the next free process takes it
    retry      an attempt failed, the next one is at `due_at`
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.items import HELD
from pillarbox.kernel.db import Connection, Source

RETRY_BATCH = 5000
PREFETCH = 500
ALIVE_SECONDS = 30

# Across teams: the operator's view of the whole queue; a team, a destination or an email narrows it.
TOTALS = """
    SELECT count(*) AS items,
           count(*) FILTER (WHERE owner IS NOT NULL) AS working,
           count(*) FILTER (WHERE owner IS NULL AND due_at = $5) AS fetching,
           count(*) FILTER (WHERE owner IS NULL AND due_at > $4 AND due_at < $5 AND NOT released)
               AS scheduled,
           count(*) FILTER (WHERE owner IS NULL AND due_at <= $4) AS due,
           count(*) FILTER (WHERE owner IS NULL AND due_at > $4 AND due_at < $5 AND released) AS retry,
           count(DISTINCT (team_id, destination)) AS destinations,
           min(created_at) AS oldest
      FROM deliveries
     WHERE ($1::uuid IS NULL OR team_id = $1)
       AND ($2::text IS NULL OR destination = $2)
       AND ($3::uuid IS NULL OR email_id = $3)
"""

# Across teams, as above: the largest heaps first.
GROUPS = """
    SELECT d.team_id, d.destination, count(*) AS items,
           count(*) FILTER (WHERE owner IS NOT NULL) AS working,
           count(*) FILTER (WHERE owner IS NULL AND due_at = $5) AS fetching,
           count(*) FILTER (WHERE owner IS NULL AND due_at > $4 AND due_at < $5 AND NOT released)
               AS scheduled,
           count(*) FILTER (WHERE owner IS NULL AND due_at <= $4) AS due,
           count(*) FILTER (WHERE owner IS NULL AND due_at > $4 AND due_at < $5 AND released) AS retry,
           max(tries) AS tries,
           min(due_at) FILTER (WHERE owner IS NULL AND due_at < $5) AS next_attempt_at,
           min(d.created_at) AS oldest,
           mode() WITHIN GROUP (ORDER BY reason) FILTER (WHERE reason IS NOT NULL) AS reason
      FROM deliveries d
     WHERE ($1::uuid IS NULL OR team_id = $1)
       AND ($2::text IS NULL OR destination = $2)
       AND ($3::uuid IS NULL OR email_id = $3)
     GROUP BY d.team_id, d.destination
     ORDER BY items DESC, d.team_id, d.destination
     LIMIT $6
"""

# Across teams, as above: item by item.
ITEMS = """
    SELECT team_id, email_id, grp, destination, due_at, owner, leased_until, attempt, tries, uncertain,
           released, first_attempt_at, last_host, last_reply, reason, created_at
      FROM deliveries
     WHERE ($1::uuid IS NULL OR team_id = $1)
       AND ($2::text IS NULL OR destination = $2)
       AND ($3::uuid IS NULL OR email_id = $3)
     ORDER BY team_id, destination, due_at, email_id, grp
"""

# Across teams, as above. Only items that wait for another attempt: what a process holds is skipped, and
# neither a scheduled email nor one whose attachment is missing is released.
RETRY = """
    UPDATE deliveries d
       SET due_at = $4
      FROM (SELECT team_id, email_id, grp
              FROM deliveries
             WHERE owner IS NULL AND released AND due_at > $4 AND due_at < $5
               AND ($1::uuid IS NULL OR team_id = $1)
               AND ($2::text IS NULL OR destination = $2)
               AND ($3::uuid IS NULL OR email_id = $3)
             ORDER BY team_id, email_id, grp
             LIMIT $6
               FOR UPDATE SKIP LOCKED) AS waiting
     WHERE d.team_id = waiting.team_id AND d.email_id = waiting.email_id AND d.grp = waiting.grp
"""

# Across teams: processes belong to the installation.
ALIVE = """
    SELECT count(*) FROM processes
     WHERE seen_at > $1::timestamptz - make_interval(secs => $2)
       AND 'delivery' = ANY (string_to_array(roles, ','))
"""

NOTIFY = "SELECT pg_notify($1, '')"


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of the queue is meant; what is None does not narrow it."""

    team_id: UUID | None = None
    destination: str | None = None
    email_id: UUID | None = None

    @property
    def args(self) -> tuple[UUID | None, str | None, UUID | None]:
        return self.team_id, self.destination, self.email_id


class Totals(NamedTuple):
    """How many items there are in each condition."""

    items: int
    working: int
    fetching: int
    scheduled: int
    due: int
    retry: int
    destinations: int
    oldest: datetime | None


class Heap(NamedTuple):
    """The items of one team for one destination. `reason` is the most frequent one."""

    team_id: UUID
    destination: str
    items: int
    working: int
    fetching: int
    scheduled: int
    due: int
    retry: int
    tries: int
    next_attempt_at: datetime | None
    oldest: datetime
    reason: str | None


class WaitingItem(NamedTuple):
    """One item. `tries` counts attempts that failed, `attempt` all that were begun."""

    team_id: UUID
    email_id: UUID
    grp: int
    destination: str
    due_at: datetime
    owner: UUID | None
    leased_until: datetime | None
    attempt: int
    tries: int
    uncertain: int
    released: bool
    first_attempt_at: datetime | None
    last_host: str | None
    last_reply: str | None
    reason: str | None
    created_at: datetime

    def condition(self, now: datetime) -> str:
        """One of the words above."""
        if self.owner is not None:
            return "working"
        if self.due_at == HELD:
            return "fetching"
        if self.due_at <= now:
            return "due"
        return "retry" if self.released else "scheduled"

    def next_attempt_at(self) -> datetime | None:
        """When it can be claimed; None while a process holds it or a file is missing."""
        return None if self.owner is not None or self.due_at == HELD else self.due_at


async def totals(source: Source, part: Part, now: datetime) -> Totals:
    (row,) = await source.fetch(TOTALS, *part.args, now, HELD)
    return Totals(**row)


async def heaps(source: Source, part: Part, now: datetime, most: int) -> list[Heap]:
    """The `most` largest heaps."""
    return [Heap(**row) for row in await source.fetch(GROUPS, *part.args, now, HELD, most)]


async def items(conn: Connection, part: Part) -> AsyncIterator[WaitingItem]:
    """Every item by team, destination and time, a few at a time; `conn` must be in a transaction."""
    async for row in conn.cursor(ITEMS, *part.args, prefetch=PREFETCH):
        yield WaitingItem(**row)


async def items_of(source: Source, team_id: UUID, email_id: UUID) -> list[WaitingItem]:
    """The live work of one email."""
    rows = await source.fetch(ITEMS, team_id, None, email_id)
    return [WaitingItem(**row) for row in rows]


async def retry_now(source: Source, part: Part, now: datetime) -> int:
    """Make due what waits for another attempt; returns how many items that were."""
    moved = 0
    while True:
        status = await source.execute(RETRY, *part.args, now, HELD, RETRY_BATCH)
        changed = int(status.rsplit(" ", 1)[-1])
        moved += changed
        if changed < RETRY_BATCH:
            return moved


async def wake(source: Source, channel: str) -> None:
    """Tell every engine to look now."""
    await source.execute(NOTIFY, channel)


async def alive(source: Source, now: datetime) -> int:
    """How many processes with the role delivery said within the last half minute that they live."""
    found: int = await source.fetchval(ALIVE, now, ALIVE_SECONDS)
    return found
