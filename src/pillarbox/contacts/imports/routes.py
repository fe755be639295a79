"""HTTP routes of imports of contacts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pillarbox.contacts.imports import queries, wire
from pillarbox.contacts.imports.intake import BODY_LIMIT, ImportIntake
from pillarbox.contacts.imports.undo import request_undo
from pillarbox.contacts.imports.uploads import record_of
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope
from pillarbox.kernel.wire.problems import NotFound

LISTED: dict[str, Any] = {**PAGING, "status": wire.Status}


@route(
    "POST",
    "/contacts/imports",
    needs=Access.FULL,
    status=201,
    body=wire.NewImport,
    limit=BODY_LIMIT,
    streamed=True,
    problems=(404,),
    summary="Import contacts from a CSV file",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.ImportRef]:
    return Reply(
        wire.ImportRef(object="contact_import", id=await request.use(ImportIntake).take(request, db))
    )


@route("GET", "/contacts/imports", needs=Access.FULL, query=LISTED, summary="List imports of contacts")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.Import]]:
    page = Page.read(request.query)
    status = request.query.choice("status", *wire.STATUSES)
    return Reply(envelope(await queries.page(db, page, status), page, wire.shown))


@route("GET", "/contacts/imports/{import_id}", needs=Access.FULL, summary="Retrieve an import of contacts")
async def show(request: Request, db: TeamDb) -> Reply[wire.Import]:
    found = await queries.one(db, request.uuid("import_id"))
    if found is None:
        raise NotFound("Contact import")
    return Reply(wire.shown(found))


@route(
    "GET",
    "/contacts/imports/{import_id}/errors",
    needs=Access.FULL,
    query=PAGING,
    summary="List the row errors of an import of contacts",
)
async def errors(request: Request, db: TeamDb) -> Reply[ListOf[wire.RowError]]:
    page = Page.read(request.query)
    import_id: UUID = request.uuid("import_id")
    if await queries.one(db, import_id) is None:
        raise NotFound("Contact import")
    return Reply(envelope(await queries.errors(db, page, import_id), page, wire.shown_error))


@route(
    "POST",
    "/contacts/imports/{import_id}/undo",
    needs=Access.FULL,
    status=202,
    problems=(409,),
    summary="Undo an import of contacts",
)
async def undo(request: Request, db: TeamDb) -> Reply[wire.ImportUndoRef]:
    import_id = request.uuid("import_id")
    await request_undo(db, request.use(Ids), import_id)
    return Reply(wire.ImportUndoRef(object="contact_import", id=import_id), 202)


@route(
    "GET",
    "/contacts/imports/{import_id}/undo",
    needs=Access.FULL,
    summary="Retrieve how far an import of contacts is undone",
)
async def undo_state(request: Request, db: TeamDb) -> Reply[wire.ImportUndoState]:
    return Reply(wire.shown_undo(await record_of(db, request.uuid("import_id"))))
