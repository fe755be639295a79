"""HTTP routes of the API keys."""

from __future__ import annotations

from functools import partial

from pillarbox.api_keys import keys, wire
from pillarbox.api_keys.credentials import KeyCredentials, LastUsed
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.request_recording import recorded
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Permission
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.people.membership import team_keys
from pillarbox.people.membership.callers import RoleMayNot, acting_caller, refuse_unless_done
from pillarbox.people.membership.team_keys import WantedKey
from pillarbox.teams.allowances import Allowances


@route(
    "POST",
    "/api-keys",
    needs=Access.FULL,
    status=201,
    body=wire.NewApiKey,
    problems=(404,),
    summary="Create an API key",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.CreatedApiKey]:
    wanted = parse(wire.NewApiKey, request.json())
    permission = Permission(wanted.permission)
    made = await team_keys.make(
        db,
        acting_caller(request),
        request.use(Ids),
        request.use(Allowances),
        WantedKey(wanted.name, permission, wanted.domain_id, wanted.inbox()),
    )
    if made is None:
        raise RoleMayNot
    return Reply(wire.CreatedApiKey(id=made.id, token=made.token))


@route(
    "GET",
    "/api-keys",
    needs=Access.FULL,
    query=PAGING,
    summary="List API keys",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.ApiKeyItem]]:
    page = Page.read(request.query, default=None)
    # The request that lists keys shows its own use (api-keys.md section 3).
    await request.use(LastUsed).flush()
    return Reply(await listed(partial(keys.page, db), page, wire.item))


@route(
    "PATCH",
    "/api-keys/{api_key_id}",
    needs=Access.FULL,
    body=wire.RenamedApiKey,
    summary="Rename an API key",
)
async def rename(request: Request, db: TeamDb) -> Reply[wire.ApiKeyChanged]:
    wanted = parse(wire.RenamedApiKey, request.json())
    key_id = request.uuid("api_key_id")
    change = await team_keys.rename(db, acting_caller(request), key_id, wanted.name)
    refuse_unless_done(change, "API key")
    return Reply(wire.ApiKeyChanged(object="api_key", id=key_id))


@route(
    "DELETE",
    "/api-keys/{api_key_id}",
    needs=Access.FULL,
    transaction=False,
    summary="Delete an API key",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.ApiKeyDeleted]:
    key_id = request.uuid("api_key_id")
    async with db.transaction() as inner:
        change = await team_keys.remove(inner, acting_caller(request), key_id)
        refuse_unless_done(change, "API key")
        reply = await recorded(
            request, inner, Reply(wire.ApiKeyDeleted(object="api_key", id=key_id, deleted=True))
        )
    # Only after the commit: an earlier look-up could have remembered the key once more.
    request.use(KeyCredentials).forget(db.team_id)
    return reply
