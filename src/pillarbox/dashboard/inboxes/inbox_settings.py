"""Settings of an inbox: its names, its labels, and deleting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.inboxes.inbox_frame import HERE, ONE, inbox_path
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act

SETTINGS: Final = f"{ONE}/settings"


@screen(SETTINGS, title="inbox.settings", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show names, addresses and labels."""
    return await inbox_settings_page(visit)


@act(SETTINGS, title="inbox.save", back=HERE, records=Act.INBOX_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Change the names."""
    given = {"name": form.get("name").strip(), "from_name": form.get("from_name").strip()}
    try:
        await visit.patch(inbox_path(visit), given)
    except Problem as problem:
        return await inbox_settings_page(visit, given, status=problem.status, problem=problem.message)
    return _back(visit, "inbox_changed")


@act(f"{ONE}/labels", title="inbox.label_add", back=HERE, records=Act.INBOX_LABELS_CHANGED)
async def add_label(visit: Visit, form: Form) -> Reply[Html]:
    """Make a label."""
    given = {"label": form.get("label").strip(), "color": form.get("color")}
    try:
        body = {"name": given["label"], "color": given["color"] or None}
        await visit.post(f"{inbox_path(visit)}/labels", body)
    except Problem as problem:
        return await inbox_settings_page(visit, given, status=problem.status, problem=problem.message)
    return _back(visit, "label_added")


@act(f"{ONE}/labels/{{label_id}}", title="inbox.label_save", back=HERE, records=Act.INBOX_LABELS_CHANGED)
async def change_label(visit: Visit, form: Form) -> Reply[Html]:
    """Give a label another name or colour."""
    try:
        await visit.patch(_label_path(visit), {"name": form.get("name").strip(), "color": form.get("color")})
    except Problem as problem:
        return await inbox_settings_page(visit, status=problem.status, problem=problem.message)
    return _back(visit, "label_changed")


@act(
    f"{ONE}/labels/{{label_id}}/delete",
    title="inbox.label_delete",
    back=HERE,
    records=Act.INBOX_LABELS_CHANGED,
)
async def delete_label(visit: Visit, form: Form) -> Reply[Html]:
    """Delete a label; it is taken off every thread."""
    await visit.delete(_label_path(visit))
    return _back(visit, "label_deleted")


@act(f"{ONE}/delete", title="inbox.delete", back=HERE, records=Act.INBOX_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the inbox with all that is in it, if its address was typed."""
    inbox = await visit.get(inbox_path(visit))
    if form.get("typed_name").strip().lower() != inbox["email_address"].strip().lower():
        return await inbox_settings_page(visit, status=422, problem=t("inbox.typed_wrong"))
    await visit.delete(inbox_path(visit))
    return visit.to(HERE, done="inbox_deleted")


async def inbox_settings_page(
    visit: Visit, typed: Mapping[str, Any] | None = None, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Show the settings. `typed` is what a refused form had."""
    inbox = await visit.get(inbox_path(visit))
    labels = (await visit.get(f"{inbox_path(visit)}/labels", shown=False))["data"]
    return await visit.draw(
        "inboxes/settings.html",
        status=status,
        problem=problem,
        inbox=inbox,
        labels=labels,
        given={**inbox, "label": "", "color": "", **(typed or {})},
        here=f"{HERE}/{inbox['id']}",
    )


def _label_path(visit: Visit) -> str:
    return f"{inbox_path(visit)}/labels/{visit.request.param('label_id')}"


def _back(visit: Visit, done: str) -> Reply[Html]:
    return visit.to(f"{HERE}/{visit.request.param('inbox_id')}/settings", done=done)
