"""The editor: blocks as forms, or one text; beside it the real mail and its checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pillarbox.dashboard.editor import block_fields
from pillarbox.dashboard.editor.block_fields import (
    FIELDS,
    IN_COLUMNS,
    TEXT_FIELDS,
    TYPES,
    State,
    block_of,
    changed_states,
)
from pillarbox.dashboard.editor.edited_thing import (
    KINDS,
    SOURCES,
    EditedContent,
    EditedThing,
    checked_document,
    content_of,
    heads_of,
    heads_of_document,
    other_kind,
    store,
    written_document,
)
from pillarbox.dashboard.editor.image_list import shown_images
from pillarbox.dashboard.editor.link_report import begin, parts_of, report_of
from pillarbox.dashboard.editor.mail_checks import CheckedMail, MailCheck, checks_of
from pillarbox.dashboard.editor.preview import look_of, preview_frame, problem_frame
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.pages import render as render_template
from pillarbox.dashboard.people.page_visits import HEADERS, Form
from pillarbox.dashboard.texts import t
from pillarbox.documents.rendering import DocumentRendering, RenderedDocument
from pillarbox.documents.team_theme import theme_of
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Conflict, Invalid, NotFound, Problem

CONTACTS: Final = 50
"""So many contacts are offered to be previewed for."""
STANDARD: Final = ("FIRST_NAME|", "LAST_NAME|", "EMAIL", "UNSUBSCRIBE_URL")
"""Placeholders of every mail, as they are inserted."""


async def show(
    visit: Visit,
    thing: EditedThing,
    template: str,
    *,
    status: int = 200,
    problem: str | None = None,
    typed: Mapping[str, str] | None = None,
    states: list[State] | None = None,
    opened: str = "",
    kept_texts: Sequence[str] | None = None,
    **values: Any,
) -> Reply[Html]:
    """Return the screen of the editor. Of a refused form, `typed` is what its fields had, `states` are the
    blocks as it has them, with the one of the place `opened`. `kept_texts` are texts that have no place."""
    content = await content_of(visit, thing)
    query = visit.request.query
    asked = {name: query.text(name) or "" for name in ("contact", "mode", "view", "width")}
    return await visit.draw(
        template,
        status=status,
        problem=problem,
        thing=thing,
        content=content,
        typed=typed or {},
        asked=asked,
        frame=with_query(f"{thing.path}/html", **asked),
        states=content.states if states is None else states,
        opened=opened or query.text("open") or "",
        kept_texts=kept_texts or (),
        checks=await stored_checks(visit, content),
        links=await report_of(visit, parts_of(content)),
        links_act=f"{thing.path}/links",
        links_here=thing.path,
        contacts=await _contacts(visit),
        placeholders=await _placeholders(visit, content),
        pictures=await shown_images(visit),
        fields=FIELDS,
        types=TYPES,
        in_columns=IN_COLUMNS,
        new_states={kind: block_fields.new_state(kind) for kind in TYPES},
        kinds=KINDS,
        **values,
    )


async def frame(visit: Visit, thing: EditedThing) -> Reply[Html]:
    """Return the mail as it is stored, for a sandboxed frame."""
    content = await content_of(visit, thing)
    names = ("contact", "mode", "view")
    look = look_of({name: visit.request.query.last(name) or "" for name in names})
    mail = RenderedDocument(content.html, content.text)
    return await preview_frame(visit, mail, content.shown["subject"], content.variables, look)


async def unsaved_frame(visit: Visit, thing: EditedThing, form: Form) -> Reply[Html]:
    """Return the mail of what is being written, for a sandboxed frame."""
    shown = await visit.get(thing.api, shown=False)
    try:
        mail = await rendered(visit, form)
    except Problem as problem:
        return problem_frame(problem)
    return await preview_frame(
        visit, mail, form.get("subject"), shown.get("variables") or (), look_of(dict(form.fields))
    )


async def rendered(visit: Visit, form: Form) -> RenderedDocument:
    """Return the mail of the document that the script sends."""
    document = checked_document(await written_document(form))
    rendering = visit.request.use(DocumentRendering)
    return await rendering.render(
        visit.team_id, document, await theme_of(visit.db), visit.request.is_client_gone
    )


async def save(visit: Visit, thing: EditedThing, form: Form) -> Reply[Html]:
    """Store what the script sends; the answer is JSON with the new revision and the checks."""
    try:
        document = await written_document(form)
        fields = heads_of(form, is_template=thing.is_template)
        revision = form.get("revision")
        await store(visit, thing, document, revision, **fields)
    except Problem as problem:
        return _json({"message": problem.message, "conflict": isinstance(problem, Conflict)}, problem.status)
    content = await content_of(visit, thing)
    checks = render_template("editor/checks.html", checks=await stored_checks(visit, content))
    return _json({"revision": content.revision, "checks": checks}, 200)


async def change_block(visit: Visit, thing: EditedThing, template: str, form: Form) -> Reply[Html]:
    """Do what the form of one block asks for, and come back to that block."""
    content = await content_of(visit, thing)
    fields = {name: value.replace("\r\n", "\n") for name, value in form.fields}
    operation, place = form.get("operation"), form.get("place")
    is_newest = form.get("revision") in ("", content.revision)
    states: list[State] = []
    try:
        if not is_newest:
            raise Invalid(t("editor.conflict"))
        try:
            states = changed_states(content.states, operation, place, fields)
        except (LookupError, ValueError):
            raise Invalid(t("editor.gone")) from None
        document = {**content.document, "blocks": [block_of(state) for state in states]}
        await store(visit, thing, document, content.revision)
    except Problem as problem:
        kept = None if states else [fields[name] for name in TEXT_FIELDS if fields.get(name)]
        return await show(
            visit,
            thing,
            template,
            status=problem.status,
            problem=problem.message,
            states=states or None,
            opened=place,
            kept_texts=kept,
        )
    opened = place if operation in ("save", "add", "duplicate") else ""
    return visit.to(f"{with_query(thing.path, open=opened)}#{'b-' + opened if opened else 'blocks'}")


async def change_content(visit: Visit, thing: EditedThing, template: str, form: Form) -> Reply[Html]:
    """Store subject, sender and the large text field, or write in another way from now on."""
    content = await content_of(visit, thing)
    document = dict(content.document)
    kind = form.get("kind")
    try:
        if form.get("revision") not in ("", content.revision):
            raise Invalid(t("editor.conflict"))
        if kind in KINDS and kind != content.kind:
            document = dict(await _other_kind(visit, content, kind))
        else:
            if content.kind in SOURCES:
                document[SOURCES[content.kind]] = form.get("source").replace("\r\n", "\n")
            document |= heads_of_document(content.kind, dict(form.fields))
        await store(visit, thing, document, content.revision, **heads_of(form, is_template=thing.is_template))
    except Problem as problem:
        typed = dict(form.fields)
        return await show(visit, thing, template, status=problem.status, problem=problem.message, typed=typed)
    return visit.to(thing.path, done="editor_saved")


async def check_links(visit: Visit, thing: EditedThing, template: str) -> Reply[Html]:
    """Let a job check the links of what is stored, and come back to them."""
    try:
        await begin(visit, parts_of(await content_of(visit, thing)))
    except NotFound:
        raise
    except Problem as problem:
        return await show(visit, thing, template, status=problem.status, problem=problem.message)
    return visit.to(f"{with_query(thing.path, done='links_asked')}#links")


async def stored_checks(visit: Visit, content: EditedContent) -> list[MailCheck]:
    """Return what the checks say of what is stored."""
    sender = content.shown.get("from") or ""
    checked = CheckedMail(
        mail=RenderedDocument(content.html, content.text),
        subject=content.shown.get("subject") or "",
        sender=sender,
        variables=content.variables,
        theme=await theme_of(visit.db),
        kind=content.kind,
        is_bulk=not content.thing.is_template,
    )
    work = visit.request.use(PageWork)
    return await work.do(visit.team_id, lambda: checks_of(checked), visit.request.is_client_gone)


async def _other_kind(visit: Visit, content: EditedContent, kind: str) -> Mapping[str, Any]:
    theme, work = await theme_of(visit.db), visit.request.use(PageWork)
    return await work.do(
        visit.team_id, lambda: other_kind(content, kind, theme), visit.request.is_client_gone
    )


async def _contacts(visit: Visit) -> list[str]:
    listed = await visit.get("/contacts", shown=False, limit=CONTACTS)
    return [str(contact["email"]) for contact in listed["data"]]


async def _placeholders(visit: Visit, content: EditedContent) -> list[str]:
    """Return what can be inserted: placeholders of every mail, properties, and declared variables."""
    properties = await visit.get("/contact-properties", shown=False, limit=100)
    return [
        *STANDARD,
        *(f"contact.{entry['key']}|" for entry in properties["data"]),
        *(str(entry["key"]) for entry in content.variables),
    ]


def _json(value: object, status: int) -> Reply[Html]:
    return Reply(json.dumps(value).encode(), status, dict(HEADERS), "application/json")
