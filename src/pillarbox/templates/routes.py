"""The HTTP routes of templates (templates.md 4). `template` is the id or the alias."""

from __future__ import annotations

from functools import partial

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.templates import queries, wire
from pillarbox.templates.changes import TemplateChanges, named, template_of

MIB = 1024 * 1024
LARGEST = 10 * MIB


@route(
    "POST",
    "/templates",
    needs=Access.FULL,
    status=201,
    limit=LARGEST,
    body=wire.NewTemplate,
    problems=(403,),
    summary="Create a template",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.TemplateRef]:
    wanted = parse(wire.NewTemplate, request.json())
    return Reply(wire.ref(await request.use(TemplateChanges).create(db, wanted)))


@route("GET", "/templates", needs=Access.FULL, query=PAGING, summary="List templates")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.TemplateItem]]:
    page = Page.read(request.query)
    return Reply(await listed(partial(queries.page, db), page, wire.item))


@route("GET", "/templates/{template}", needs=Access.FULL, summary="Retrieve a template")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullTemplate]:
    return Reply(wire.full(await template_of(db, named(request.param("template")))))


@route(
    "PATCH",
    "/templates/{template}",
    needs=Access.FULL,
    limit=LARGEST,
    body=wire.ChangedTemplate,
    summary="Change a template",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.TemplateRef]:
    wanted = parse(wire.ChangedTemplate, request.json())
    name = named(request.param("template"))
    return Reply(wire.ref(await request.use(TemplateChanges).change(db, name, wanted)))


@route("DELETE", "/templates/{template}", needs=Access.FULL, summary="Delete a template")
async def remove(request: Request, db: TeamDb) -> Reply[wire.TemplateDeleted]:
    template_id = await request.use(TemplateChanges).delete(db, named(request.param("template")))
    return Reply(wire.TemplateDeleted(object="template", id=template_id, deleted=True))


@route("POST", "/templates/{template}/publish", needs=Access.FULL, summary="Publish a template")
async def publish(request: Request, db: TeamDb) -> Reply[wire.TemplateRef]:
    return Reply(wire.ref(await request.use(TemplateChanges).publish(db, named(request.param("template")))))


@route(
    "POST",
    "/templates/{template}/duplicate",
    needs=Access.FULL,
    problems=(403,),
    summary="Duplicate a template",
)
async def duplicate(request: Request, db: TeamDb) -> Reply[wire.TemplateRef]:
    name = named(request.param("template"))
    return Reply(wire.ref(await request.use(TemplateChanges).duplicate(db, name)))
