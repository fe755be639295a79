"""Adding jobs and removing them, in the transaction of what they follow from. Code that adds one wakes `jobs`
when it commits.

There is one job of a kind about a subject. `add` leaves the one that there is, `hasten` makes it due earlier,
and `restart` makes it new. No other module inserts jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Source, TeamDb, literal

# Across teams: in one order, as for everybody who adds several.
ADD: Final = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at, site)
    SELECT k.team_id, k.id, k.kind, k.subject_id, k.due_at, k.due_at, k.site
      FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text[], $4::text::uuid[], $5::text::timestamptz[],
                  $6::text[])
           AS k (team_id, id, kind, subject_id, due_at, site)
     ORDER BY k.team_id, k.kind, k.subject_id
    ON CONFLICT (team_id, kind, subject_id) DO NOTHING
"""


class NewJob(NamedTuple):
    """A job to add. `site` is the host that it waits for, where its kind has one."""

    team_id: UUID
    id: UUID
    kind: str
    subject_id: UUID
    due_at: datetime
    site: str = ""


async def add(db: TeamDb, job_id: UUID, kind: str, subject_id: UUID, now: datetime) -> None:
    """Add a job that is due at once."""
    await add_several(
        db.source, [NewJob(team_id=db.team_id, id=job_id, kind=kind, subject_id=subject_id, due_at=now)]
    )


async def add_several(source: Source, jobs: Sequence[NewJob]) -> int:
    """Add jobs of any teams; returns how many there were not yet."""
    statement = adding(jobs)
    status: str = await source.execute(statement.sql, *statement.args)
    return int(status.rsplit(" ", 1)[-1])


def adding(jobs: Sequence[NewJob]) -> Statement:
    """Return the statement that adds these jobs, for a commit that writes several tables at once."""
    teams, ids, kinds, subjects, times, sites = zip(*jobs, strict=True)
    return Statement(ADD, (literal(teams), literal(ids), kinds, literal(subjects), literal(times), sites))


async def hasten(db: TeamDb, job_id: UUID, kind: str, subject_id: UUID, now: datetime) -> None:
    """See to it that the job is due. One that was given up begins anew."""
    await db.run(
        """
        INSERT INTO jobs AS j (team_id, id, kind, subject_id, due_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $5)
        ON CONFLICT (team_id, kind, subject_id) DO UPDATE
           SET due_at = least(j.due_at, excluded.due_at), tries = j.attempt
        """,
        job_id,
        kind,
        subject_id,
        now,
    )


async def restart(
    db: TeamDb, job_id: UUID, kind: str, subject_id: UUID, due_at: datetime, now: datetime
) -> None:
    """See to it that the job runs at `due_at`. A claim that runs at this moment counts no more: it looked
    before this was asked for."""
    await db.run(
        """
        INSERT INTO jobs AS j (team_id, id, kind, subject_id, due_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (team_id, kind, subject_id) DO UPDATE
           SET due_at = excluded.due_at, owner = NULL, leased_until = NULL, reason = NULL,
               restored_due_at = NULL, attempt = j.attempt + 1, tries = j.attempt + 1
        """,
        job_id,
        kind,
        subject_id,
        due_at,
        now,
    )


async def remove(db: TeamDb, subject_id: UUID) -> None:
    """Remove the jobs about this subject: what runs of them has no outcome."""
    await db.run("DELETE FROM jobs WHERE team_id = $1 AND subject_id = $2", subject_id)


async def remove_kind(db: TeamDb, subject_id: UUID, kind: str) -> None:
    """Remove the jobs of one kind about this subject: what runs of them has no outcome."""
    await db.run("DELETE FROM jobs WHERE team_id = $1 AND subject_id = $2 AND kind = $3", subject_id, kind)


async def go_on(db: TeamDb, job_id: UUID, attempt: int) -> bool:
    """Say that a long job makes progress: a death from here on is its first one. Returns whether the job is
    still this claim's; then it stays so until the transaction ends."""
    return (
        await db.run(
            "UPDATE jobs SET tries = attempt, begun = 0 WHERE team_id = $1 AND id = $2 AND attempt = $3",
            job_id,
            attempt,
        )
        == 1
    )


async def hold(db: TeamDb, job_id: UUID) -> None:
    """Let nobody make the job due until the transaction ends."""
    await db.run("SELECT id FROM jobs WHERE team_id = $1 AND id = $2 FOR UPDATE", job_id)


async def bring_forward(
    db: TeamDb, kinds: Sequence[str], intervals: Sequence[timedelta], now: datetime
) -> int:
    """Make free jobs of these kinds due that wait for longer than their interval; returns how many."""
    return await db.run(
        """
        UPDATE jobs j
           SET due_at = $4::timestamptz
          FROM unnest($2::text[], $3::interval[]) AS k (kind, every)
         WHERE j.team_id = $1 AND j.kind = k.kind AND j.owner IS NULL
           AND j.due_at > $4::timestamptz + k.every
        """,
        kinds,
        intervals,
        now,
    )
