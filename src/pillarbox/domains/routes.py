"""HTTP door of the domains."""

from __future__ import annotations

from pillarbox.domains import queries, wire
from pillarbox.domains.create import Workshop
from pillarbox.domains.create import create as create_domain
from pillarbox.domains.installation import Installation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.senders import Senders
from pillarbox.kernel.db import TeamDb
from pillarbox.kernel.fields import parse
from pillarbox.kernel.http import Reply, Request
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.paging import Page, envelope
from pillarbox.kernel.problems import NotFound
from pillarbox.kernel.routing import Access, route
from pillarbox.kernel.secrets import KeyRing


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
    here = request.use(Installation)
    domain = await create_domain(db, wanted, Workshop(here, request.use(KeyRing), request.use(Ids)))
    request.use(Senders).forget(db.team_id)
    return Reply(wire.created(domain, here, proof=await proof_needed(db, here)))


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
    return Reply(envelope(await queries.page(db, page), page, lambda found: wire.item(found, proof=proof)))


@route("GET", "/domains/{domain_id}", needs=Access.FULL, reply=wire.FullDomain, summary="Retrieve a domain")
async def show(request: Request, db: TeamDb) -> Reply:
    domain = await queries.get(db, request.uuid("domain_id"))
    if domain is None:
        raise NotFound("Domain")
    here = request.use(Installation)
    return Reply(wire.full(domain, here, proof=await proof_needed(db, here)))
