"""Acts of the operator on the queue: hold back, let go, retry now, give up. Each act is recorded.

The commands of `pillarbox queue` and the screen of the queue call the same functions. Engines are woken at
once; without that they see a change within a second.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.delivery.items import EVERY_TEAM
from pillarbox.delivery.queue import dropping, overview_queries, pausing_queries
from pillarbox.delivery.queue.operator_view import part_in, scope_of
from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.delivery.queue.pausing_queries import PauseScope
from pillarbox.kernel.postgres.database import Source, transaction
from pillarbox.kernel.postgres.notify import notify_processes
from pillarbox.people import audit
from pillarbox.people.audit import Act, Actor
from pillarbox.timeline.record import Timeline


async def pause(
    pool: asyncpg.Pool, scope: PauseScope, reason: str | None, actor: Actor, now: datetime
) -> bool:
    """Hold back what is in the scope; False where it was so already (a new reason replaces the old)."""
    async with transaction(pool) as conn:
        is_new = await pausing_queries.pause(conn, scope, reason, now)
        if is_new:
            await _record(conn, now, Act.QUEUE_PAUSED, part_in(scope), actor, reason=reason)
    await wake_engines(pool)
    return is_new


async def resume(pool: asyncpg.Pool, scope: PauseScope, actor: Actor, now: datetime) -> bool:
    """Lift the pause of exactly this scope; False where there is none."""
    async with transaction(pool) as conn:
        is_lifted = await pausing_queries.resume(conn, scope)
        if is_lifted:
            await _record(conn, now, Act.QUEUE_RESUMED, part_in(scope), actor)
    await wake_engines(pool)
    return is_lifted


async def resume_all(pool: asyncpg.Pool, actor: Actor, now: datetime) -> int:
    """Lift every pause; return how many there were."""
    async with transaction(pool) as conn:
        lifted = await pausing_queries.resume_all(conn)
        if lifted:
            await _record(conn, now, Act.QUEUE_RESUMED, QueueFilter(), actor, pauses=lifted)
    await wake_engines(pool)
    return lifted


async def retry(pool: asyncpg.Pool, part: QueueFilter, actor: Actor, now: datetime) -> int:
    """Make due what waits for another attempt or was put aside; return how many items that were."""
    async with transaction(pool) as conn:
        moved = await overview_queries.retry_now(conn, part, now)
        if moved:
            await _record(conn, now, Act.QUEUE_RETRIED, part, actor, items=moved)
    await wake_engines(pool)
    return moved


async def drop(
    pool: asyncpg.Pool,
    timeline: Timeline,
    part: QueueFilter,
    actor: Actor,
    now: Callable[[], datetime],
) -> int:
    """End all mail of the part that no process holds; return how many items that were."""
    dropped = await dropping.drop(pool, timeline, part, now)
    if dropped:
        await _record(pool, now(), Act.QUEUE_DROPPED, part, actor, items=dropped)
    return dropped


async def wake_engines(source: Source) -> None:
    """Tell every engine at once."""
    # The engine is loaded where it runs; a command needs the name of its channel alone.
    from pillarbox.delivery.plugin import CHANNEL

    await notify_processes(source, CHANNEL)


async def _record(
    source: Source, now: datetime, what: Act, part: QueueFilter, actor: Actor, **details: object
) -> None:
    team_id: UUID | None = None if scope_of(part).team_id == EVERY_TEAM else part.team_id
    if part.email_id is not None:
        details["email_id"] = part.email_id
    given = {name: value for name, value in details.items() if value is not None}
    await audit.record(
        source,
        now,
        what,
        team_id=team_id,
        actor=actor,
        target=part.destination or "all mail",
        details=given or None,
    )
