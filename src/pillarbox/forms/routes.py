"""HTTP routes of forms."""

from __future__ import annotations

from functools import partial

from pillarbox.forms import changes, queries, sign_up_queries, wire
from pillarbox.forms.changes import FormChanges
from pillarbox.forms.sign_up_pages import SignUpPages
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed


@route(
    "POST",
    "/forms",
    needs=Access.FULL,
    status=201,
    body=wire.NewForm,
    problems=(404,),
    summary="Create a sign-up form",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.FormRef]:
    new = parse(wire.NewForm, request.json())
    return Reply(wire.FormRef(object="form", id=await request.use(FormChanges).create(db, new)))


@route("GET", "/forms", needs=Access.FULL, query=PAGING, summary="List sign-up forms")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.FormItem]]:
    page, pages = Page.read(request.query), request.use(SignUpPages)

    def shown(row: queries.FormRow) -> wire.FormItem:
        return wire.item(row, pages.url_of(db.team_id, row.id))

    return Reply(await listed(partial(queries.page, db), page, shown))


@route("GET", "/forms/{form_id}", needs=Access.FULL, summary="Retrieve a sign-up form")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullForm]:
    row = await changes.find(db, request.uuid("form_id"))
    pages = request.use(SignUpPages)
    return Reply(wire.full(row, pages.url_of(db.team_id, row.id), await pages.snippet_of(db, row)))


@route(
    "PATCH",
    "/forms/{form_id}",
    needs=Access.FULL,
    body=wire.ChangedForm,
    problems=(409,),
    summary="Change a sign-up form",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.FormRef]:
    change = parse(wire.ChangedForm, request.json())
    form_id = request.uuid("form_id")
    await request.use(FormChanges).change(db, form_id, change)
    return Reply(wire.FormRef(object="form", id=form_id))


@route("DELETE", "/forms/{form_id}", needs=Access.FULL, summary="Delete a sign-up form")
async def remove(request: Request, db: TeamDb) -> Reply[wire.FormDeleted]:
    form_id = request.uuid("form_id")
    await request.use(FormChanges).delete(db, form_id)
    return Reply(wire.FormDeleted(object="form", id=form_id, deleted=True))


@route(
    "GET",
    "/forms/{form_id}/sign-ups",
    needs=Access.FULL,
    query=PAGING,
    summary="List the sign-ups of a form",
)
async def sign_ups(request: Request, db: TeamDb) -> Reply[ListOf[wire.FormSignUp]]:
    page = Page.read(request.query)
    form_id = request.uuid("form_id")
    await changes.find(db, form_id)

    def shown(row: sign_up_queries.SignUpRow) -> wire.FormSignUp:
        return wire.sign_up(row, request.at)

    return Reply(await listed(partial(sign_up_queries.page, db, form_id), page, shown))
