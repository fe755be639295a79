"""Runs of `doctor` and `verify` that are kept: the last of each, begun by a command or from the dashboard.

A run has a limit of time. One whose process ended without a result makes room for the next when it is over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.doctor import examination_queries
from pillarbox.doctor.examination_queries import ExaminationRun
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE, Source
from pillarbox.kernel.postgres.time_limit import unlimited

log = get("examination")

Result = tuple[bool, Mapping[str, object]]
"""Whether nothing is wrong, and the document that the command prints as JSON."""


class ExaminationKind(Enum):
    """The kinds of examinations."""

    DOCTOR = "doctor"
    VERIFY = "verify"


LIMITS: Final = {
    ExaminationKind.DOCTOR: timedelta(minutes=2),
    ExaminationKind.VERIFY: timedelta(minutes=15),
}
"""How long a run from the dashboard may take."""


class LastRuns(NamedTuple):
    """The last run of each kind; None where there was none."""

    doctor: ExaminationRun | None
    verify: ExaminationRun | None


async def last_runs(source: Source) -> LastRuns:
    """Return the last run of each kind."""
    found = {run.kind: run for run in await examination_queries.last_runs(source)}
    return LastRuns(*(found.get(kind.value) for kind in ExaminationKind))


async def begin(source: Source, kind: ExaminationKind, run_id: UUID, now: datetime) -> bool:
    """Say that a run begins; False while another one of its kind runs."""
    return await examination_queries.begin(source, kind.value, run_id, now, now + LIMITS[kind])


async def finish(source: Source, kind: ExaminationKind, run_id: UUID, now: datetime, result: Result) -> None:
    """Keep the result of a run."""
    is_healthy, document = result
    text = json.dumps(document, default=str)
    await examination_queries.finish(source, kind.value, run_id, now, is_healthy=is_healthy, result=text)


async def keep_result(
    source: Source, kind: ExaminationKind, run_id: UUID, now: datetime, result: Result
) -> None:
    """Keep the result of a run that a command has made, unless another one runs."""
    if await begin(source, kind, run_id, now):
        await finish(source, kind, run_id, now, result)


class ExaminationRunner:
    """Runs examinations in the background of this process."""

    def __init__(self, pool: asyncpg.Pool, now: Callable[[], datetime], new_id: Callable[[], UUID]) -> None:
        self._pool = pool
        self._now = now
        self._new_id = new_id
        self._running: set[asyncio.Task[None]] = set()

    async def start(self, kind: ExaminationKind, work: Callable[[], Awaitable[Result]]) -> bool:
        """Begin a run; False while one of its kind runs, in whichever process."""
        run_id = self._new_id()
        if not await begin(self._pool, kind, run_id, self._now()):
            return False
        task = asyncio.create_task(self._run(kind, run_id, work), context=unlimited())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def _run(self, kind: ExaminationKind, run_id: UUID, work: Callable[[], Awaitable[Result]]) -> None:
        try:
            async with asyncio.timeout(LIMITS[kind].total_seconds()):
                result = await work()
        except asyncio.CancelledError:
            await self._failed(kind, run_id, "the server stopped")
            raise
        except Exception as failure:
            # It is shown: the operator asked for it, and nothing else depends on it.
            log.warning("examination.failed", kind=kind.value, error=type(failure).__name__)
            reason = "it took too long" if isinstance(failure, TimeoutError) else str(failure)
            await self._failed(kind, run_id, reason)
            return
        try:
            await finish(self._pool, kind, run_id, self._now(), result)
        except TROUBLE as trouble:
            log.warning("examination.not_kept", kind=kind.value, error=type(trouble).__name__)

    async def _failed(self, kind: ExaminationKind, run_id: UUID, reason: str) -> None:
        """Keep why a run has no result, if the database takes it."""
        text = json.dumps({"error": reason[:500]})
        try:
            await examination_queries.finish(
                self._pool, kind.value, run_id, self._now(), is_healthy=None, result=text
            )
        except TROUBLE as trouble:
            log.warning("examination.not_kept", kind=kind.value, error=type(trouble).__name__)

    async def settled(self) -> None:
        """Wait until no run of this process goes on."""
        await asyncio.gather(*self._running)

    async def close(self, _: float) -> None:
        """End the runs of this process; they have no result."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
