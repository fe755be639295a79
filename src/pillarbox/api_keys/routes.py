"""HTTP door of the API keys."""

from __future__ import annotations

from uuid import UUID

from pillarbox.api_keys import keys, wire
from pillarbox.api_keys.credentials import KeyCredentials, LastUsed
from pillarbox.kernel.auth import Permission
from pillarbox.kernel.db import TeamDb
from pillarbox.kernel.fields import parse, reference
from pillarbox.kernel.http import Reply, Request
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.paging import Page, envelope
from pillarbox.kernel.recording import recorded
from pillarbox.kernel.routing import Access, route
from pillarbox.teams.allowances import Allowances


@route(
    "POST",
    "/api-keys",
    needs=Access.FULL,
    status=201,
    body=wire.NewApiKey,
    reply=wire.CreatedApiKey,
    summary="Create an API key",
)
async def create(request: Request, db: TeamDb) -> Reply:
    wanted = parse(wire.NewApiKey, request.json())
    permission = Permission(wanted.permission)
    domain_id: UUID | None = None
    if permission is Permission.SENDING:
        domain_id = reference(request.json(), "domain_id")
    await request.use(Allowances).admit_api_key(db)
    made = await keys.create(
        db, request.use(Ids), name=wanted.name, permission=permission, domain_id=domain_id
    )
    return Reply(wire.CreatedApiKey(made.id, made.token))


@route(
    "GET",
    "/api-keys",
    needs=Access.FULL,
    reply=wire.ApiKeyList,
    query=("limit", "after", "before"),
    summary="List API keys",
)
async def index(request: Request, db: TeamDb) -> Reply:
    page = Page.read(request.query, default=None)
    # The request that lists keys shows its own use (api-keys.md section 3).
    await request.use(LastUsed).flush()
    return Reply(envelope(await keys.listed(db, page), page, wire.item))


@route(
    "PATCH",
    "/api-keys/{api_key_id}",
    needs=Access.FULL,
    body=wire.RenamedApiKey,
    reply=wire.ApiKeyChanged,
    summary="Rename an API key",
)
async def rename(request: Request, db: TeamDb) -> Reply:
    wanted = parse(wire.RenamedApiKey, request.json())
    key_id = request.uuid("api_key_id")
    await keys.rename(db, key_id, wanted.name)
    return Reply(wire.ApiKeyChanged("api_key", key_id))


@route(
    "DELETE",
    "/api-keys/{api_key_id}",
    needs=Access.FULL,
    reply=wire.ApiKeyDeleted,
    transaction=False,
    summary="Delete an API key",
)
async def delete(request: Request, db: TeamDb) -> Reply:
    key_id = request.uuid("api_key_id")
    async with db.transaction() as inner:
        await keys.delete(inner, key_id)
        reply = await recorded(request, inner, Reply(wire.ApiKeyDeleted("api_key", key_id, True)))
    # Only after the commit: an earlier look-up could have remembered the key once more.
    request.use(KeyCredentials).forget(db.team_id)
    return reply
