"""The editor of a sign-up form, with a preview of what was typed."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.dashboard.forms.form_list import HERE
from pillarbox.dashboard.forms.form_page import ONE
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.signing_up import preview_of
from pillarbox.dashboard.texts import t
from pillarbox.forms import wire
from pillarbox.forms.sign_up_pages import SignUpPages
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import Conflict, NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

NEW: Final = f"{HERE}/new"
EDIT: Final = f"{ONE}/edit"
TRY: Final = f"{HERE}/try"
FIELDS: Final = 8
MOST_CHOICES: Final = 100
TEXTS: Final = ("title", "text", "button", "consent", "sent", "confirmed")
COLORS: Final = ("page_color", "text_color", "button_color")
EMPTY: Final[dict[str, Any]] = {
    "name": "",
    "from": "",
    "subject": None,
    "template_id": None,
    "fields": [],
    "topic_ids": [],
    "lets_choose_topics": False,
    "segment_id": None,
    "texts": {},
    "theme": {},
    "redirect_url": None,
    "confirmed_url": None,
    "updated_at": "",
}


@screen(NEW, title="forms.new", words="forms.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    return await _editor(visit, NEW, EMPTY, f"{TRY}")


@act(NEW, title="forms.new", back=NEW, records=Act.FORM_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make a form of what was typed, or say what is wrong."""
    body = _body(form)
    visit.acts_on(body["name"])
    try:
        made = await visit.post("/forms", body)
    except Problem as problem:
        return await _editor(visit, NEW, body, TRY, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{made['id']}", done="form_created")


@screen(EDIT, title="form.edit", right=Right.USE)
async def edit(visit: Visit) -> Reply[Html]:
    form_id = visit.request.uuid("form_id")
    found = await visit.get(f"/forms/{form_id}")
    return await _editor(visit, f"{HERE}/{form_id}/edit", found, TRY, form_id=form_id)


@act(EDIT, title="form.edit", back=HERE, records=Act.FORM_CHANGED)
async def save(visit: Visit, form: Form) -> Reply[Html]:
    """Store what was typed, unless somebody else has changed the form meanwhile."""
    form_id = visit.request.uuid("form_id")
    here = f"{HERE}/{form_id}/edit"
    body = _body(form)
    if version := form.get("updated_at"):
        body["updated_at"] = version
    visit.acts_on(body["name"])
    try:
        await visit.patch(f"/forms/{form_id}", body)
    except NotFound as problem:
        if problem.message.startswith("Form"):
            raise
        return await _editor(visit, here, body, TRY, form_id=form_id, status=404, problem=problem.message)
    except Conflict:
        conflict = t("form.edit.conflict")
        return await _editor(visit, here, body, TRY, form_id=form_id, status=409, problem=conflict)
    except Problem as problem:
        return await _editor(
            visit, here, body, TRY, form_id=form_id, status=problem.status, problem=problem.message
        )
    return visit.to(f"{HERE}/{form_id}", done="form_saved")


@download(TRY, title="form.preview", right=Right.USE)
async def preview_empty(visit: Visit) -> Reply[Html]:
    """Show the page of a form in which nothing was typed yet."""
    settings = wire.settings_of(parse(wire.NewForm, {"name": "–", "from": "x@example.org"}))
    pages = visit.request.use(SignUpPages)
    team = visit.visitor.team_name or ""
    return preview_of(await pages.of_settings(visit.db, UUID(int=0), "", team, settings))


@act(TRY, title="form.preview", back=HERE)
async def preview_unsaved(visit: Visit, form: Form) -> Reply[Html]:
    """Show the page with what was typed; parts with a fault are left out."""
    body = _body(form)
    settings = None
    for parts in ((), ("theme",), ("theme", "redirect_url", "confirmed_url", "subject", "fields")):
        try:
            kept = {name: value for name, value in body.items() if name not in parts}
            kept |= {"name": body["name"] or "–", "from": body["from"] or "x@example.org"}
            settings = wire.settings_of(parse(wire.NewForm, kept))
            break
        except Problem:
            continue
    if settings is None:
        settings = wire.settings_of(parse(wire.NewForm, {"name": "–", "from": "x@example.org"}))
    pages = visit.request.use(SignUpPages)
    team = visit.visitor.team_name or ""
    settings = msgspec.structs.replace(settings, template_id=None)
    return preview_of(await pages.of_settings(visit.db, UUID(int=0), body["name"], team, settings))


def _body(form: Form) -> dict[str, Any]:
    """Return the body of a request that the fields of the editor make."""
    fields = [
        {
            "key": form.get(f"key_{at}"),
            "label": form.get(f"label_{at}").strip() or form.get(f"key_{at}"),
            "required": form.get(f"required_{at}") == "yes",
        }
        for at in range(FIELDS)
        if form.get(f"key_{at}")
    ]
    return {
        "name": form.get("name").strip(),
        "from": form.get("from").strip(),
        "subject": form.get("subject").strip() or None,
        "template_id": _id(form.get("template_id")),
        "fields": fields,
        "topic_ids": [value for value in form.every("topic_id") if well_formed(value)],
        "lets_choose_topics": form.get("lets_choose_topics") == "yes",
        "segment_id": _id(form.get("segment_id")),
        "texts": {name: form.get(f"text_{name}").strip() or None for name in TEXTS},
        "theme": {name: form.get(name).strip() or None for name in ("logo_url", *COLORS)},
        "redirect_url": form.get("redirect_url").strip() or None,
        "confirmed_url": form.get("confirmed_url").strip() or None,
    }


def _id(text: str) -> str | None:
    return text if well_formed(text) else None


async def _editor(
    visit: Visit,
    here: str,
    form: dict[str, Any],
    attempt: str,
    *,
    form_id: UUID | None = None,
    status: int = 200,
    problem: str | None = None,
) -> Reply[Html]:
    properties = await visit.get("/contact-properties", limit=MOST_CHOICES, shown=False)
    topics = await visit.get("/topics", limit=MOST_CHOICES, shown=False)
    segments = await visit.get("/segments", limit=MOST_CHOICES, shown=False)
    templates = await visit.get("/templates", limit=MOST_CHOICES, shown=False)
    fields = [*form["fields"], *[{"key": "", "label": "", "required": False}] * FIELDS][:FIELDS]
    return await visit.draw(
        "forms/edit.html",
        status=status,
        problem=problem,
        here=here,
        back=HERE if form_id is None else f"{HERE}/{form_id}",
        attempt=attempt,
        preview=TRY if form_id is None else f"{HERE}/{form_id}/html",
        form={**EMPTY, **form},
        fields=fields,
        keys=["first_name", "last_name", *[one["key"] for one in properties["data"]]],
        topics=topics["data"],
        segments=[one for one in segments["data"] if "conditions" not in one],
        templates=[one for one in templates["data"] if one["status"] == "published"],
        texts=TEXTS,
        colors=COLORS,
    )
