"""Work that comes round: retention, collectors and the like.

Each round is one row of `jobs`, under the nil team, that is never finished but put off until it is due
again. So one process of the whole installation does it at a time, a restart does not begin it anew, and a
process that dies in the middle leaves it to another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.jobs import Handler, Job, Postponed

log = get("jobs")

NO_TEAM = UUID(int=0)

ENSURE = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)
    SELECT $1, k.id, k.kind, $1, $4, $4
      FROM unnest($2::uuid[], $3::text[]) AS k (id, kind)
    ON CONFLICT (team_id, kind, subject_id) DO NOTHING
"""

BRING_FORWARD = """
    UPDATE jobs j
       SET due_at = $4::timestamptz
      FROM unnest($2::text[], $3::interval[]) AS k (kind, every)
     WHERE j.team_id = $1 AND j.kind = k.kind AND j.owner IS NULL AND j.due_at > $4::timestamptz + k.every
"""


@dataclass(frozen=True, slots=True)
class Periodic:
    """`work` is done once `every` so often; what it returns stands in the job's row and is logged, unless the
    round is `quiet` because it comes too often for that. It works in small transactions of its own: being
    interrupted must cost nothing."""

    kind: str
    every: timedelta
    work: Callable[[], Awaitable[str]]
    quiet: bool = False


def handlers(rounds: Sequence[Periodic], clock: Clock) -> dict[str, Handler]:
    """The handlers of the rounds, by kind of job."""
    return {found.kind: _handler(found, clock) for found in rounds}


async def ensure(source: Source, rounds: Sequence[Periodic], ids: Ids, clock: Clock) -> None:
    """See to it that each round has its row, and that none waits longer than it may (`bring_forward`); those
    that are new are due at once."""
    if rounds:
        kinds = [found.kind for found in rounds]
        await source.execute(ENSURE, NO_TEAM, [ids.new() for _ in kinds], kinds, clock.now())
        await bring_forward(source, rounds, clock.now())


async def bring_forward(source: Source, rounds: Sequence[Periodic], now: datetime) -> int:
    """Make rounds due that are further ahead than one turn; returns how many. A clock that was wrong has put
    them off, by a year if it was a year ahead."""
    kinds = [found.kind for found in rounds]
    turns = [found.every for found in rounds]
    done: str = await source.execute(BRING_FORWARD, NO_TEAM, kinds, turns, now)
    return int(done.rsplit(" ", 1)[-1])


def _handler(found: Periodic, clock: Clock) -> Handler:
    async def run(_: Job) -> Postponed:
        done = await found.work()
        if not found.quiet:
            log.info("jobs.round", kind=found.kind, done=done)
        return Postponed(clock.now() + found.every, done)

    return run
