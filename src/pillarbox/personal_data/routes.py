"""HTTP routes of personal data."""

from __future__ import annotations

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.people.audit import Act, caller_of, record, record_call
from pillarbox.personal_data import queries, wire
from pillarbox.personal_data.person import FILE_HEADERS, People, address_of


@route("GET", "/personal-data/{contact}", needs=Access.FULL, summary="Retrieve what is held about a person")
async def export(request: Request, db: TeamDb) -> Reply[wire.PersonalDataFile]:
    people, address = request.use(People), await address_of(db, request.param("contact"))
    await record(
        db.source,
        request.at,
        Act.PERSON_EXPORTED,
        team_id=db.team_id,
        actor=caller_of(request),
        target=await people.mark_of(db, address),
    )
    return Reply(await people.file(db, address, request.at), headers=dict(FILE_HEADERS))


@route("POST", "/personal-data/{contact}/erase", needs=Access.FULL, status=202, summary="Erase a person")
async def erase(request: Request, db: TeamDb) -> Reply[wire.ErasureRef]:
    people, address = request.use(People), await address_of(db, request.param("contact"))
    erasure_id = await people.erase(db, address)
    await record_call(request, db, Act.PERSON_ERASED, str(erasure_id))
    return Reply(wire.ErasureRef(object="erasure", id=erasure_id))


@route("GET", "/personal-data/erasures", needs=Access.FULL, query=PAGING, summary="List erasures")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.ErasureItem]]:
    page = Page.read(request.query)
    return Reply(envelope(await queries.page(db, page), page, wire.item))


@route("GET", "/personal-data/erasures/{erasure}", needs=Access.FULL, summary="Retrieve an erasure")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullErasure]:
    return Reply(wire.full(await request.use(People).erasure(db, request.param("erasure"))))


@route(
    "DELETE",
    "/personal-data/erasures/{erasure}",
    needs=Access.FULL,
    problems=(409,),
    summary="Allow mail to an erased address again",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.DeletedErasure]:
    row = await request.use(People).erasure(db, request.param("erasure"))
    if row.completed_at is None:
        raise wire.ErasureInProgress
    if not await queries.remove(db, row.id):
        raise NotFound("Erasure")
    await record_call(request, db, Act.ERASURE_REMOVED, str(row.id))
    return Reply(wire.DeletedErasure(object="erasure", id=row.id, deleted=True))
