"""One sign-up form: its figures, its address and snippet, its latest sign-ups, and deleting it."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.forms.form_list import HERE
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.signing_up import preview_of
from pillarbox.dashboard.texts import t
from pillarbox.forms import changes, form_settings
from pillarbox.forms.sign_up_pages import SignUpPages
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act

ONE: Final = f"{HERE}/{{form_id}}"


@screen(ONE, title="form.title", query={"after": str, "before": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await _form_page(visit)


@download(f"{ONE}/html", title="form.preview")
async def preview(visit: Visit) -> Reply[Html]:
    """Show the page of the form, for a frame in which nothing can be sent."""
    row = await changes.find(visit.db, visit.request.uuid("form_id"))
    pages = visit.request.use(SignUpPages)
    team = visit.visitor.team_name or ""
    shown = await pages.of_settings(visit.db, row.id, row.name, team, form_settings.read(row.settings))
    return preview_of(shown)


@act(f"{ONE}/open", title="form.open", back=HERE, records=Act.FORM_CHANGED)
async def set_open(visit: Visit, form: Form) -> Reply[Html]:
    """Open the form, or close it."""
    form_id = visit.request.uuid("form_id")
    is_open = form.get("open") == "yes"
    visit.acts_on(str(form_id), open=is_open)
    await visit.patch(f"/forms/{form_id}", {"open": is_open})
    return visit.to(f"{HERE}/{form_id}", done="form_opened" if is_open else "form_closed")


@act(f"{ONE}/delete", title="form.delete", back=HERE, records=Act.FORM_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the form; what people consented to is kept."""
    form_id = visit.request.uuid("form_id")
    found = await visit.get(f"/forms/{form_id}", shown=False)
    if form.get("typed_name").strip() != found["name"]:
        return await _form_page(visit, status=422, problem=t("form.delete.other_name"))
    visit.acts_on(found["name"])
    try:
        await visit.delete(f"/forms/{form_id}")
    except NotFound:
        raise
    except Problem as problem:
        return await _form_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="form_deleted")


async def _form_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    form_id = visit.request.uuid("form_id")
    found = await visit.get(f"/forms/{form_id}")
    here = f"{HERE}/{form_id}"
    page = await list_page(visit, f"/forms/{form_id}/sign-ups", here)
    return await visit.draw(
        "forms/one.html",
        status=status,
        problem=problem,
        here=here,
        form=found,
        sign_ups=page.rows,
        paging=page.paging,
    )
