"""HTTP routes of the claims."""

from __future__ import annotations

from uuid import UUID

from pillarbox.domains import queries as domain_queries
from pillarbox.domains.claims import queries, wire
from pillarbox.domains.claims.opening import open_claim, prepared
from pillarbox.domains.claims.policy import JOB, OPEN, ClaimRules, Status
from pillarbox.domains.claims.queries import DomainClaim
from pillarbox.domains.context import DomainContext
from pillarbox.domains.senders import Senders
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.request_recording import recorded
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.people.audit import Act, record_call


class ClaimOver(Invalid):
    def __init__(self, status: Status) -> None:
        super().__init__(f"This claim is {status.value}. Start a new one with `POST /domains/claim`.")


@route(
    "POST",
    "/domains/claim",
    needs=Access.FULL,
    status=201,
    body=wire.NewClaim,
    also=(200,),
    transaction=False,
    summary="Claim a domain that another team has verified",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.ShownClaim]:
    wanted = parse(wire.NewClaim, request.json())
    context = request.use(DomainContext)
    ready = await prepared(db, wanted, context)
    async with db.transaction() as inner:
        opened = await open_claim(inner, ready, context, request.use(ClaimRules))
        if opened.new:
            await record_call(request, inner, Act.DOMAIN_CLAIMED, opened.claim.name)
        reply = Reply(wire.shown(opened.claim), 201 if opened.new else 200)
        await recorded(request, inner, reply)
    request.use(Senders).forget(db.team_id)
    return reply


@route(
    "GET",
    "/domains/{domain_id}/claim",
    needs=Access.FULL,
    summary="Retrieve the claim of a domain",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.ShownClaim]:
    return Reply(wire.shown(await claim_of(db, request.uuid("domain_id"))))


@route(
    "POST",
    "/domains/{domain_id}/claim/verify",
    needs=Access.FULL,
    summary="Look for the proof of a claim now",
)
async def verify(request: Request, db: TeamDb) -> Reply[wire.ShownClaim]:
    claim = await claim_of(db, request.uuid("domain_id"))
    ids = request.use(Ids)
    now = ids.now()
    if claim.status is Status.PENDING and claim.expires_at <= now:
        raise ClaimOver(Status.EXPIRED)
    if claim.status in OPEN:
        await queries.start_checks(db, claim.id, now)
        await job_queries.restart(db, ids.new(), JOB, claim.id, now, now)
    elif claim.status is not Status.COMPLETED:
        raise ClaimOver(claim.status)
    return Reply(wire.shown(claim))


async def claim_of(db: TeamDb, domain_id: UUID) -> DomainClaim:
    """Return the latest claim of the domain, or raise the 404 that fits."""
    if not await domain_queries.exists(db, domain_id):
        raise NotFound("Domain")
    claim = await queries.latest(db, domain_id)
    if claim is None:
        raise NotFound("Domain claim")
    return claim
