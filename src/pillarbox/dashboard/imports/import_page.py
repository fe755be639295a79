"""One import: how far it is, what failed, where its people come from, and undoing it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from pillarbox.contacts.imports.uploads import record_of
from pillarbox.dashboard.frame.csv_file import MEDIA, lines
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.imports.import_list import HERE
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import has_text, t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act

ONE: Final = f"{HERE}/{{import_id}}"
SHOWN_ERRORS: Final = 20
PAGE: Final = 100
HEADER: Final = ("row", "email", "reason", "meaning")


@screen(ONE, title="import.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await _import_page(visit)


@download(f"{ONE}/errors", title="import.errors")
async def save_errors(visit: Visit) -> Reply[Html]:
    """Save the rows that failed as a file."""
    import_id = visit.request.uuid("import_id")
    await record_of(visit.db, import_id)
    return visit.save(f"errors-{import_id}.csv", _error_lines(visit, str(import_id)), MEDIA)


@act(f"{ONE}/undo", title="import.undo", back=HERE, records=Act.IMPORT_UNDONE)
async def undo(visit: Visit, form: Form) -> Reply[Html]:
    """Remove the contacts that this import made and nobody changed since, in the background."""
    import_id = visit.request.uuid("import_id")
    record = await record_of(visit.db, import_id)
    name = record.file_name or str(import_id)
    if form.get("typed_name").strip() != name:
        return await _import_page(visit, status=422, problem=t("import.undo.other_name"))
    visit.acts_on(str(import_id), file=record.file_name)
    try:
        await visit.post(f"/contacts/imports/{import_id}/undo")
    except NotFound:
        raise
    except Problem as problem:
        return await _import_page(visit, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{import_id}")


async def _error_lines(visit: Visit, import_id: str) -> AsyncIterator[bytes]:
    yield lines([HEADER])
    after: str | None = None
    while True:
        page = await visit.get(f"/contacts/imports/{import_id}/errors", limit=PAGE, after=after, shown=False)
        rows = page["data"]
        if rows:
            yield lines(
                [(row["row"], row["email"] or "", row["reason"], meaning(row["reason"])) for row in rows]
            )
        if not page["has_more"] or not rows:
            return
        after = rows[-1]["id"]


def meaning(reason: str) -> str:
    """Return what the reason of a row error says to people."""
    key = f"import.reason.{reason}"
    return t(key) if has_text(key) else reason


async def _import_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    import_id = visit.request.uuid("import_id")
    found = await visit.get(f"/contacts/imports/{import_id}")
    record = await record_of(visit.db, import_id)
    errors: dict[str, Any] = {"data": [], "has_more": False}
    if found["counts"]["failed"] or found["status"] == "failed":
        errors = await visit.get(f"/contacts/imports/{import_id}/errors", limit=SHOWN_ERRORS)
    is_running = found["status"] in ("queued", "in_progress")
    is_undoing = record.undo_requested_at is not None and record.undone_at is None
    return await visit.draw(
        "imports/one.html",
        status=status,
        problem=problem,
        here=f"{HERE}/{import_id}",
        found=found,
        counts=found["counts"],
        record=record,
        name=record.file_name or str(import_id),
        errors=[{**row, "meaning": meaning(row["reason"])} for row in errors["data"]],
        has_more_errors=errors["has_more"],
        is_running=is_running,
        is_undoing=is_undoing,
        share=min(100, (record.position or 0) * 100 // max(1, record.size)),
    )
