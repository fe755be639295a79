"""HTTP door of the domains."""

from __future__ import annotations

from functools import partial

from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.domains import checks, queries, wire
from pillarbox.domains.changes import change
from pillarbox.domains.create import add, prepared
from pillarbox.domains.installation import Installation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.removal import delete
from pillarbox.domains.senders import Senders
from pillarbox.domains.workshop import Workshop
from pillarbox.kernel.db import TeamDb
from pillarbox.kernel.fields import parse
from pillarbox.kernel.http import Reply, Request
from pillarbox.kernel.paging import Page, listed
from pillarbox.kernel.problems import NotFound
from pillarbox.kernel.recording import recorded
from pillarbox.kernel.routing import Access, route


@route(
    "POST",
    "/domains",
    needs=Access.FULL,
    status=201,
    body=wire.NewDomain,
    reply=wire.CreatedDomain,
    transaction=False,
    summary="Add a domain",
)
async def create(request: Request, db: TeamDb) -> Reply:
    wanted = parse(wire.NewDomain, request.json())
    shop = request.use(Workshop)
    domain, key = await prepared(db, wanted, shop)
    async with db.transaction() as inner:
        await add(inner, domain, key, shop)
        shape = wire.created(domain, shop.here, proof=await proof_needed(inner, shop.here))
        reply = await recorded(request, inner, Reply(shape))
    request.use(Senders).forget(db.team_id)
    return reply


@route(
    "GET",
    "/domains",
    needs=Access.FULL,
    reply=wire.DomainList,
    query=("limit", "after", "before"),
    summary="List domains",
)
async def index(request: Request, db: TeamDb) -> Reply:
    page = Page.read(request.query, default=None)
    proof = await proof_needed(db, request.use(Installation))
    return Reply(await listed(partial(queries.page, db), page, lambda found: wire.item(found, proof=proof)))


@route("GET", "/domains/{domain_id}", needs=Access.FULL, reply=wire.FullDomain, summary="Retrieve a domain")
async def show(request: Request, db: TeamDb) -> Reply:
    domain = await queries.get(db, request.uuid("domain_id"))
    if domain is None:
        raise NotFound("Domain")
    here = request.use(Installation)
    return Reply(wire.full(domain, here, proof=await proof_needed(db, here)))


@route(
    "PATCH",
    "/domains/{domain_id}",
    needs=Access.FULL,
    body=wire.ChangedDomain,
    reply=wire.DomainChanged,
    transaction=False,
    summary="Change a domain's settings",
)
async def update(request: Request, db: TeamDb) -> Reply:
    wanted = parse(wire.ChangedDomain, request.json())
    domain_id = request.uuid("domain_id")
    async with db.transaction() as inner:
        await change(inner, domain_id, wanted, request.use(Workshop))
        reply = await recorded(request, inner, Reply(wire.DomainChanged("domain", domain_id)))
    request.use(Senders).forget(db.team_id)
    return reply


@route(
    "DELETE",
    "/domains/{domain_id}",
    needs=Access.FULL,
    reply=wire.DomainDeleted,
    transaction=False,
    summary="Delete a domain",
)
async def remove(request: Request, db: TeamDb) -> Reply:
    domain_id = request.uuid("domain_id")
    async with db.transaction() as inner:
        await delete(inner, domain_id, request.use(Workshop))
        reply = await recorded(request, inner, Reply(wire.DomainDeleted("domain", domain_id, True)))
    # Only after the commit: an earlier look-up could have remembered the domain once more.
    request.use(Senders).forget(db.team_id)
    request.use(KeyCredentials).forget(db.team_id)
    return reply


@route(
    "POST",
    "/domains/{domain_id}/verify",
    needs=Access.FULL,
    reply=wire.DomainChanged,
    summary="Look for a domain's records now",
)
async def verify(request: Request, db: TeamDb) -> Reply:
    domain_id = request.uuid("domain_id")
    await checks.begin(db, domain_id, request.use(Workshop))
    return Reply(wire.DomainChanged("domain", domain_id))
