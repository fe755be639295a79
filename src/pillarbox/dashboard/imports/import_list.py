"""The list of imports, and the form that brings a file."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.contacts.imports.intake import BODY_LIMIT
from pillarbox.contacts.imports.uploads import ImportUploads, records_of
from pillarbox.dashboard.frame.file_form import file_form
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.body import CLOSE
from pillarbox.kernel.http.multipart import FormPart, MultipartForm
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/contacts/imports"
NEW: Final = f"{HERE}/new"


@screen(
    HERE,
    title="imports.title",
    words="imports.words",
    navigation=NavigationEntry(group="audience", order=46, icon="received", keys="I"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    page = await list_page(visit, "/contacts/imports", HERE)
    records = await records_of(visit.db, [UUID(row["id"]) for row in page.rows])
    return await visit.draw(
        "imports/list.html",
        imports=page.rows,
        records={str(import_id): record for import_id, record in records.items()},
        paging=page.paging,
        is_running=any(row["status"] in ("queued", "in_progress") for row in page.rows),
    )


@screen(NEW, title="imports.new", words="imports.words", right=Right.USE, query={"done": str})
async def new(visit: Visit) -> Reply[Html]:
    return await visit.draw("imports/new.html")


@file_form(NEW, title="imports.new", back=NEW, field="file", limit=BODY_LIMIT)
async def upload(visit: Visit, form: MultipartForm, part: FormPart) -> Reply[Html]:
    """Store the file, and go on to the mapping of its columns."""
    uploads = visit.request.use(ImportUploads)
    if not part.file_name:
        return await _refused(visit, 422, t("imports.no_file"))
    try:
        upload_id = await uploads.take(visit.db, form.pieces(), part.file_name, visit.visitor.email)
    except Problem as problem:
        return await _refused(visit, problem.status, problem.message)
    return visit.to(f"{NEW}/{upload_id}")


async def _refused(visit: Visit, status: int, problem: str) -> Reply[Html]:
    """Show the form again; what was not read of the file is dropped with the connection."""
    reply = await visit.draw("imports/new.html", status=status, problem=problem)
    reply.headers.update(CLOSE)
    return reply
