"""From a request and its reply to a row of the log."""

from __future__ import annotations

from typing import TypeVar

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.observability.request_log import Answered, Asked, RequestLogWriter
from pillarbox.kernel.postgres.database import TeamDb

T = TypeVar("T")


def asked_of(request: Request, route: Route) -> Asked:
    """What the log needs of a request whose caller is known."""
    return Asked(
        team_id=request.known.team_id,
        id=request.id,
        at=request.at,
        endpoint=request.path,
        method=request.method,
        user_agent=request.raw_header(b"user-agent"),
        status=route.status,
    )


def answered_by(asked: Asked, reply: Reply) -> Answered:
    """The request with this answer, which is encoded."""
    sent = asked.method != "HEAD" and isinstance(reply.body, bytes)
    return Answered(asked, reply.status or asked.status, reply.body if sent else None)


async def recorded(request: Request, db: TeamDb, reply: Reply[T]) -> Reply[T]:
    """The reply, whose log row is committed with the transaction that `db` is in: for handlers that commit
    by themselves. To be called last in it; should the commit fail, the failure gets a row instead."""
    if request.asked is not None:
        reply.encode()
        request_log: RequestLogWriter = request.use(RequestLogWriter)  # type: ignore[type-abstract]
        await request_log.keep(db.connection, [answered_by(request.asked, reply)])
        request.asked.is_kept = True
    return reply
