"""HTTP routes of the grants (oauth.md 8)."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.request_recording import own_transaction, recorded
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.oauth import grants
from pillarbox.oauth.bearer import queries, wire
from pillarbox.oauth.bearer.queries import GrantRevocation
from pillarbox.oauth.bearer.tokens import BearerTokens
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.oauth.grants import Reason
from pillarbox.people.audit import Act, record_call
from pillarbox.people.membership.callers import RoleMayNot, acting_caller
from pillarbox.people.roles import TeamAct


@route("GET", "/oauth/grants", needs=Access.FULL, query=PAGING, summary="List what programs may do")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.GrantItem]]:
    page, by = Page.read(request.query), acting_caller(request)
    everybody = await by.may(db, TeamAct.SEE_PROGRAMS)
    whose = None if everybody else by.actor.person_id
    return Reply(await listed(partial(queries.page, db, whose), page, wire.item))


@route(
    "DELETE",
    "/oauth/grants/{oauth_grant_id}",
    needs=Access.FULL,
    transaction=False,
    summary="Revoke what a program may do",
)
async def revoke(request: Request, db: TeamDb) -> Reply[wire.GrantRevoked]:
    grant_id = request.uuid("oauth_grant_id")
    async with own_transaction(db) as inner:
        found = await _revoked(request, inner, grant_id)
        reply = await recorded(request, inner, Reply(wire.revoked(grant_id, found)))
    # Only after the commit: an earlier look-up could have remembered the grant once more.
    request.use(BearerTokens).forget(db.team_id)
    return reply


async def _revoked(request: Request, db: TeamDb, grant_id: UUID) -> GrantRevocation:
    """Revoke the grant; of one that was revoked before, return what was written then."""
    grant = await grants.get(db.connection, GrantRef(db.team_id, grant_id))
    if grant is None:
        raise NotFound("OAuth grant")
    if not await acting_caller(request).may(db, TeamAct.REVOKE_PROGRAM, grant.person_id):
        raise RoleMayNot
    now = request.use(Clock).now()  # type: ignore[type-abstract]
    if await grants.revoke(db.connection, now, GrantRef(db.team_id, grant_id), Reason.FROM_API):
        await record_call(request, db, Act.GRANT_REVOKED, str(grant_id), {"reason": Reason.FROM_API.value})
    found = await queries.revocation(db, grant_id)
    if found is None:
        raise NotFound("OAuth grant")
    return found
