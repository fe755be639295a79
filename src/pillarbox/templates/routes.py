"""The HTTP routes of templates (templates.md 4, 10 and 11). `template` is the id or the alias."""

from __future__ import annotations

from functools import partial

from pillarbox.documents.source import document_of
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, listed
from pillarbox.templates import document_wire, queries, wire
from pillarbox.templates.changes import TemplateChanges, named, template_of
from pillarbox.templates.document_changes import TemplateDocuments

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


# Documents and versions, extensions of ours (templates.md 10 and 11) ------------------------------


@route(
    "GET", "/templates/{template}/document", needs=Access.FULL, summary="Retrieve the document of a template"
)
async def show_document(request: Request, db: TeamDb) -> Reply[document_wire.ShownDocument]:
    documents = request.use(TemplateDocuments)
    return Reply(document_wire.shown(await documents.read(db, named(request.param("template")))))


@route(
    "PUT",
    "/templates/{template}/document",
    needs=Access.FULL,
    transaction=False,
    limit=LARGEST,
    body=document_wire.PutDocument,
    problems=(409,),
    summary="Store the document of a template",
)
async def put_document(request: Request, db: TeamDb) -> Reply[document_wire.ShownDocument]:
    body = parse(document_wire.PutDocument, request.json())
    stored = await request.use(TemplateDocuments).save(
        db, named(request.param("template")), document_of(body.document), body.fields(), body.revision
    )
    return Reply(document_wire.shown(stored))


@route("GET", "/templates/{template}/versions", needs=Access.FULL, summary="List the versions of a template")
async def versions(request: Request, db: TeamDb) -> Reply[document_wire.VersionList]:
    rows = await request.use(TemplateDocuments).versions(db, named(request.param("template")))
    return Reply(document_wire.VersionList(object="list", data=[document_wire.version(row) for row in rows]))


@route(
    "POST",
    "/templates/{template}/versions/{template_version_id}/restore",
    needs=Access.FULL,
    summary="Make a version of a template its draft again",
)
async def restore(request: Request, db: TeamDb) -> Reply[wire.TemplateRef]:
    version_id = request.uuid("template_version_id")
    documents = request.use(TemplateDocuments)
    return Reply(wire.ref(await documents.restore(db, named(request.param("template")), version_id)))
