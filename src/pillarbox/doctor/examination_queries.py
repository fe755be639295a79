"""SQL of the last runs of `doctor` and `verify`. They belong to the installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


@dataclass(frozen=True, slots=True)
class ExaminationRun:
    """The last run of one kind. Without `finished_at` it runs until `ends_by`, or its process ended."""

    kind: str
    started_at: datetime
    ends_by: datetime
    finished_at: datetime | None
    is_healthy: bool | None
    result: str | None


async def begin(source: Source, kind: str, run_id: UUID, now: datetime, ends_by: datetime) -> bool:
    """Store that a run begins; False while another one runs."""
    begun = await source.fetchval(
        """
        INSERT INTO examinations AS e (kind, run_id, started_at, ends_by)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (kind) DO UPDATE
           SET run_id = excluded.run_id, started_at = excluded.started_at, ends_by = excluded.ends_by,
               finished_at = NULL, is_healthy = NULL, result = NULL
         WHERE e.finished_at IS NOT NULL OR e.ends_by < excluded.started_at
        RETURNING run_id
        """,
        kind,
        run_id,
        now,
        ends_by,
    )
    return begun is not None


async def finish(
    source: Source, kind: str, run_id: UUID, now: datetime, *, is_healthy: bool | None, result: str
) -> None:
    """Store the result of a run, unless a later one has begun."""
    await source.execute(
        """
        UPDATE examinations
           SET finished_at = $3, is_healthy = $4, result = $5::json
         WHERE kind = $1 AND run_id = $2
        """,
        kind,
        run_id,
        now,
        is_healthy,
        result,
    )


async def last_runs(source: Source) -> list[ExaminationRun]:
    """Return the last run of each kind."""
    rows = await source.fetch(
        """
        SELECT kind, started_at, ends_by, finished_at, is_healthy, result FROM examinations ORDER BY kind
        """
    )
    return [ExaminationRun(**row) for row in rows]
