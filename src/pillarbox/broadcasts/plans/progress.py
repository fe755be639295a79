"""The progress of a broadcast, and its audience before it is sent."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.broadcasts import copy_counts_queries, overview_queries
from pillarbox.broadcasts.copy_counts_queries import NO_COPIES
from pillarbox.broadcasts.plans import audience_queries, queries
from pillarbox.broadcasts.plans.audience_queries import AudienceCounts
from pillarbox.broadcasts.plans.plan import decode
from pillarbox.broadcasts.plans.wire import BroadcastAudience, BroadcastProgress, ShownVariantCounts
from pillarbox.broadcasts.store import found
from pillarbox.contacts.conditions.membership import filter_of
from pillarbox.kernel.postgres.database import StatementLimitError, TeamDb
from pillarbox.kernel.wire.instants import database_style
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.wire.shapes import from_row

SOON: Final = 0.06
"""Seconds that a screen waits for a count."""

LONG: Final = 6.0
"""Seconds that somebody waits who asked for the count of a large audience."""


async def progress_of(db: TeamDb, broadcast_id: UUID) -> BroadcastProgress:
    """Return how far the broadcast is, or raise a 404."""
    overview = await overview_queries.one(db, broadcast_id)
    if overview is None:
        raise NotFound("Broadcast")
    counts = NO_COPIES
    if overview.queued_at is not None and overview.status not in ("draft", "scheduled"):
        counts = await copy_counts_queries.since_start(db, broadcast_id, overview.queued_at)
    reached = await queries.progress(db, broadcast_id)
    stage = None if reached is None else reached.stage
    has_test = reached is not None and stage is not None and decode(reached.plan).test is not None
    figures = await queries.figures(db, broadcast_id) if has_test else []
    is_running = overview.status == "queued" and reached is not None
    until, due = (reached.stage_until, reached.next_at) if is_running and reached else (None, None)
    return from_row(
        BroadcastProgress,
        counts,
        object="broadcast_progress",
        broadcast_id=broadcast_id,
        status=overview.status,
        stage=stage,
        stage_until=None if until is None else database_style(until),
        next_at=None if due is None else database_style(due),
        paused_at=None if overview.paused_at is None else database_style(overview.paused_at),
        reason=overview.paused_for or overview.failed_for,
        recipients=overview.recipients,
        copies=counts.received,
        winner=None if reached is None else reached.winner,
        variants=[from_row(ShownVariantCounts, one, variant=one.number) for one in figures],
    )


async def audience_within(
    db: TeamDb, broadcast_id: UUID, now: datetime, seconds: float = SOON
) -> BroadcastAudience | None:
    """Count the audience of a broadcast; None where that takes longer than so many seconds. Raises a 404."""
    try:
        async with db.statement_limit(seconds) as limited:
            return await audience_of(limited, broadcast_id, now)
    except StatementLimitError:
        return None


async def audience_of(db: TeamDb, broadcast_id: UUID, now: datetime) -> BroadcastAudience:
    """Count the audience of a broadcast as it is now, or raise a 404."""
    content = (await found(db, broadcast_id)).content
    counts = AudienceCounts(members=0, unsubscribed=0, topic_opt_out=0, suppressed=0)
    if content.segment_id is not None:
        fitting = await filter_of(db, content.segment_id, now)
        if fitting is None:
            counts = await audience_queries.count(db, content.segment_id, content.topic_id)
        else:
            counts = await audience_queries.count_fitting(db, fitting, content.topic_id)
    left_out = counts.unsubscribed + counts.topic_opt_out + counts.suppressed
    return from_row(
        BroadcastAudience,
        counts,
        object="broadcast_audience",
        broadcast_id=broadcast_id,
        recipients=counts.members - left_out,
    )
