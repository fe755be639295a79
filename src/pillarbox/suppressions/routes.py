"""HTTP routes of suppressions."""

from __future__ import annotations

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import identifier
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.people.audit import Act, record_call
from pillarbox.suppressions import changes, queries, wire
from pillarbox.webhooks.publish import Publisher


@route(
    "POST",
    "/suppressions",
    needs=Access.FULL,
    status=201,
    body=wire.NewSuppression,
    summary="Suppress an address",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.SuppressionRef]:
    wanted = parse(wire.NewSuppression, request.json())
    [entry_id] = await changes.suppress(
        db, [wanted.email], request.at, request.use(Ids), request.use(Publisher)
    )
    return Reply(wire.ref(entry_id))


@route(
    "GET",
    "/suppressions",
    needs=Access.FULL,
    query={**PAGING, "origin": changes.Origin},
    summary="List suppressions",
)
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.SuppressionItem]]:
    page = Page.read(request.query)
    origin = request.query.choice("origin", *changes.ORIGINS)
    found = await (queries.page(db, page) if origin is None else queries.page_of_origin(db, page, origin))
    return Reply(envelope(found, page, wire.item))


@route(
    "GET",
    "/suppressions/{suppression}",
    needs=Access.FULL,
    path_types=wire.SUPPRESSION,
    summary="Retrieve a suppression",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.Suppression]:
    found = await changes.find(db, identifier(request.param("suppression")))
    if found is None:
        raise NotFound("Suppression")
    return Reply(wire.suppression(found))


@route(
    "DELETE",
    "/suppressions/{suppression}",
    needs=Access.FULL,
    path_types=wire.SUPPRESSION,
    summary="Take an address off the suppression list",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.SuppressionDeleted]:
    named = identifier(request.param("suppression"))
    removed = [] if named is None else await changes.remove(db, [named], request.at, request.use(Publisher))
    if not removed:
        raise NotFound("Suppression")
    await record_call(request, db, Act.SUPPRESSIONS_REMOVED, removed[0].shown, {"count": 1})
    return Reply(wire.deleted(removed[0]))


@route(
    "POST",
    "/suppressions/batch/add",
    needs=Access.FULL,
    status=201,
    body=wire.NewSuppressions,
    summary="Suppress up to 100 addresses",
)
async def add_batch(request: Request, db: TeamDb) -> Reply[wire.SuppressionRefs]:
    wanted = parse(wire.NewSuppressions, request.json())
    ids = await changes.suppress(db, wanted.emails, request.at, request.use(Ids), request.use(Publisher))
    return Reply(wire.SuppressionRefs(data=[wire.ref(entry_id) for entry_id in ids]))


@route(
    "POST",
    "/suppressions/batch/remove",
    needs=Access.FULL,
    body=wire.Removal,
    summary="Take up to 100 addresses off the suppression list",
)
async def remove_batch(request: Request, db: TeamDb) -> Reply[wire.SuppressionsDeleted]:
    named = parse(wire.Removal, request.json()).named()
    removed = await changes.remove(db, named, request.at, request.use(Publisher))
    if removed:
        await record_call(request, db, Act.SUPPRESSIONS_REMOVED, removed[0].shown, {"count": len(removed)})
    return Reply(wire.SuppressionsDeleted(data=[wire.deleted(entry) for entry in removed]))
