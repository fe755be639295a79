"""Automations as JSON: a text or a file becomes one, and the graph of one is replaced by it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pillarbox.automations.changes import ChangedMeanwhile, edition_of
from pillarbox.automations.overview import views
from pillarbox.dashboard.automations.automation_list import HERE
from pillarbox.dashboard.automations.automation_page import ONE, here_of
from pillarbox.dashboard.automations.drafts import LARGEST, GraphDraft
from pillarbox.dashboard.automations.editor import save
from pillarbox.dashboard.frame.json_text import parsed
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

IMPORT: Final = f"{HERE}/import"
SOURCE: Final = f"{ONE}/source"
LARGEST_FORM: Final = 6 * 1024 * 1024

EXAMPLE: Final = """{
  "name": "Welcome",
  "steps": [
    {"key": "start", "type": "trigger", "config": {"event_name": "user.signed_up"}},
    {"key": "wait", "type": "delay", "config": {"duration": "1 day"}},
    {"key": "mail", "type": "send_email", "config": {"template": {"id": "welcome"}}}
  ],
  "connections": [
    {"from": "start", "to": "wait"},
    {"from": "wait", "to": "mail"}
  ]
}"""


@screen(IMPORT, title="automation.import", words="automation.import.words", right=Right.USE)
async def show(visit: Visit) -> Reply[Html]:
    """Show the form that makes an automation of JSON."""
    return await _import_page(visit, "")


@act(IMPORT, title="automation.import", back=IMPORT, records=Act.AUTOMATION_CREATED, limit=LARGEST_FORM)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make an automation of the JSON; it is disabled."""
    text = form.get("json")
    document = await _document(text)
    if document is None:
        return await _import_page(visit, text, status=422, problem=t("automation.no_json"))
    document.pop("status", None)
    try:
        answer = await visit.post("/automations", document)
    except Problem as problem:
        return await _import_page(visit, text, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{answer['id']}", done="automation_created")


@screen(SOURCE, title="automation.source", right=Right.USE)
async def source(visit: Visit) -> Reply[Html]:
    """Show the newest graph as JSON in a form."""
    automation_id = visit.request.uuid("automation_id")
    heading = await views.heading_of(visit.db, automation_id)
    stored = await views.graph_json(visit.db, automation_id)
    if len(stored) > LARGEST:
        text = t("automation.too_large_source")
        return await visit.draw(
            "automations/too_large.html", here=here_of(visit), text=text, name=heading.name
        )
    text = msgspec.json.format(stored, indent=2).decode()
    return await _source_page(visit, text, edition_of(heading.name, heading.status, heading.version))


@act(SOURCE, title="automation.source", back=HERE, records=Act.AUTOMATION_CHANGED, limit=LARGEST_FORM)
async def replace(visit: Visit, form: Form) -> Reply[Html]:
    """Replace name and graph by those of the JSON, unless somebody has changed them meanwhile."""
    text, base = form.get("json"), form.get("base")
    heading = await views.heading_of(visit.db, visit.request.uuid("automation_id"))
    document = await _document(text)
    if document is None:
        return await _source_page(visit, text, base, status=422, problem=t("automation.no_json"))
    draft = GraphDraft(document.get("name", heading.name), base=base)
    draft.steps, draft.connections = document.get("steps", []), document.get("connections", [])
    try:
        await save(visit, draft, len(text), is_forced=form.get("do") == "overwrite", was=heading.status)
    except ChangedMeanwhile:
        return await _source_page(visit, text, base, status=409, is_conflict=True)
    except Problem as problem:
        return await _source_page(visit, text, base, status=problem.status, problem=problem.message)
    done = "automation_saved_disabled" if heading.status == "enabled" else "automation_saved"
    return visit.to(here_of(visit), done=done)


async def _document(text: str) -> dict[str, Any] | None:
    """Return the object that a text is; None where it is none."""
    try:
        document = await parsed(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


async def _import_page(
    visit: Visit, text: str, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    return await visit.draw(
        "automations/import.html", status=status, problem=problem, text=text, example=EXAMPLE
    )


async def _source_page(
    visit: Visit,
    text: str,
    base: str,
    *,
    status: int = 200,
    problem: str | None = None,
    is_conflict: bool = False,
) -> Reply[Html]:
    heading = await views.heading_of(visit.db, visit.request.uuid("automation_id"))
    return await visit.draw(
        "automations/source.html",
        status=status,
        problem=problem,
        automation=heading,
        here=here_of(visit),
        text=text,
        base=base,
        is_conflict=is_conflict,
    )
