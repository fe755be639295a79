"""From a request and its reply to a row of the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeVar

from pillarbox.kernel.http.idempotency import keep_answer
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.observability.request_log import RequestLogWriter, RequestRecord, ResponseRecord
from pillarbox.kernel.postgres.database import GONE, TeamDb
from pillarbox.kernel.wire.problems import OutcomeUnknown

T = TypeVar("T")


def asked_of(request: Request, route: Route) -> RequestRecord:
    """Return the record of a request for the log; its caller must be known."""
    return RequestRecord(
        team_id=request.known.team_id,
        id=request.id,
        instant=request.at,
        endpoint=request.path,
        method=request.method,
        user_agent=request.raw_header(b"user-agent"),
        status=route.status,
    )


def answered_by(asked: RequestRecord, reply: Reply) -> ResponseRecord:
    """Return the request with this answer, which is encoded."""
    sent = asked.method != "HEAD" and isinstance(reply.body, bytes)
    return ResponseRecord(asked, reply.status or asked.status, reply.body if sent else None)


async def recorded(request: Request, db: TeamDb, reply: Reply[T]) -> Reply[T]:
    """Return the reply, whose log row is committed with the transaction that `db` is in: for handlers that
    commit by themselves. To be called last in it; should the commit fail, the failure gets a row instead."""
    if request.asked is not None:
        await reply.encode()
        request_log: RequestLogWriter = request.use(RequestLogWriter)  # type: ignore[type-abstract]
        await request_log.keep(db.connection, [answered_by(request.asked, reply)])
        request.asked.is_kept = True
    return reply


@asynccontextmanager
async def own_transaction(db: TeamDb) -> AsyncIterator[TeamDb]:
    """Open one transaction, for handlers that commit by themselves. Where the database goes away during the
    commit it is OutcomeUnknown."""
    is_committing = False
    try:
        async with db.transaction() as held:
            yield held
            is_committing = True
    except GONE as gone:
        if is_committing:
            raise OutcomeUnknown from gone
        raise


async def kept(request: Request, db: TeamDb, reply: Reply[T], now: datetime) -> Reply[T]:
    """Return the reply as `recorded` does, and keep the answer for the idempotency key of the
    request. `reply` has its status. Raise where the key has an answer, or is in use; that must undo
    the transaction."""
    await reply.encode()
    if request.idempotency is not None and reply.status is not None:
        team = request.known.team_id
        await keep_answer(db.connection, team, request.idempotency, reply.status, reply.body, now)
    return await recorded(request, db, reply)
