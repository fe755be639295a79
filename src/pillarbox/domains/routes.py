"""HTTP routes of the domains."""

from __future__ import annotations

from functools import partial

from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.domains import queries, wire
from pillarbox.domains.changes import change
from pillarbox.domains.checks import start
from pillarbox.domains.context import DomainContext
from pillarbox.domains.create import add, prepared
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.removal import delete
from pillarbox.domains.senders import Senders
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.request_recording import recorded
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.people.audit import Act, record_call


@route(
    "POST",
    "/domains",
    needs=Access.FULL,
    status=201,
    body=wire.NewDomain,
    transaction=False,
    summary="Add a domain",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.CreatedDomain]:
    wanted = parse(wire.NewDomain, request.json())
    context = request.use(DomainContext)
    domain, key = await prepared(db, wanted, context)
    async with db.transaction() as inner:
        await add(inner, domain, key, context)
        await record_call(request, inner, Act.DOMAIN_CREATED, domain.name, {"id": domain.id})
        shape = wire.created(domain, context.here, proof=await proof_needed(inner, context.here))
        reply = await recorded(request, inner, Reply(shape))
    request.use(Senders).forget(db.team_id)
    return reply


@route(
    "GET",
    "/domains",
    needs=Access.FULL,
    query=PAGING,
    summary="List domains",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.DomainItem]]:
    page = Page.read(request.query, default=None)
    proof = await proof_needed(db, request.use(MailInstallation))
    return Reply(await listed(partial(queries.page, db), page, lambda found: wire.item(found, proof=proof)))


@route("GET", "/domains/{domain_id}", needs=Access.FULL, summary="Retrieve a domain")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullDomain]:
    domain = await queries.get(db, request.uuid("domain_id"))
    if domain is None:
        raise NotFound("Domain")
    here = request.use(MailInstallation)
    return Reply(wire.full(domain, here, proof=await proof_needed(db, here)))


@route(
    "PATCH",
    "/domains/{domain_id}",
    needs=Access.FULL,
    body=wire.ChangedDomain,
    transaction=False,
    summary="Change a domain's settings",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.DomainChanged]:
    wanted = parse(wire.ChangedDomain, request.json())
    domain_id = request.uuid("domain_id")
    async with db.transaction() as inner:
        changed = await change(inner, domain_id, wanted, request.use(DomainContext))
        if changed is not None:
            await record_call(request, inner, Act.DOMAIN_CHANGED, changed.name, {"id": domain_id})
        reply = await recorded(request, inner, Reply(wire.DomainChanged(object="domain", id=domain_id)))
    request.use(Senders).forget(db.team_id)
    return reply


@route(
    "DELETE",
    "/domains/{domain_id}",
    needs=Access.FULL,
    transaction=False,
    summary="Delete a domain",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.DomainDeleted]:
    domain_id = request.uuid("domain_id")
    async with db.transaction() as inner:
        name = await delete(inner, domain_id, request.use(DomainContext))
        await record_call(request, inner, Act.DOMAIN_DELETED, name, {"id": domain_id})
        reply = await recorded(
            request, inner, Reply(wire.DomainDeleted(object="domain", id=domain_id, deleted=True))
        )
    # Only after the commit: an earlier look-up could have remembered the domain once more.
    request.use(Senders).forget(db.team_id)
    request.use(KeyCredentials).forget(db.team_id)
    return reply


@route(
    "POST",
    "/domains/{domain_id}/verify",
    needs=Access.FULL,
    summary="Look for a domain's records now",
)
async def verify(request: Request, db: TeamDb) -> Reply[wire.DomainChanged]:
    domain_id = request.uuid("domain_id")
    await start.begin(db, domain_id, request.use(DomainContext))
    return Reply(wire.DomainChanged(object="domain", id=domain_id))
