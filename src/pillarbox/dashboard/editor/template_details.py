"""Settings of a template with its variables, and its versions with their differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from math import isfinite
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard.editor.template_editor import ONE, thing_of
from pillarbox.dashboard.editor.template_list import HERE
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.documents.source import builtins_of, of_stored
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.document_changes import TemplateDocuments, used_variables
from pillarbox.templates.queries import TemplateReference

MOST_LINES: Final = 2000
"""Lines of a version that are compared."""
NEAR: Final = 3
"""Lines around a change that are shown."""
BLOCK_TEXTS: Final = ("text", "src", "alt", "href", "html", "by", "address", "unsubscribe")


class DifferenceLine(NamedTuple):
    """A line of a difference: `kind` is `same`, `added`, `removed` or `left_out`."""

    kind: str
    text: str


@screen(f"{ONE}/settings", title="template.settings", query={"done": str})
async def settings(visit: Visit) -> Reply[Html]:
    """Show name, alias and variables."""
    return await details_page(visit)


@act(f"{ONE}/settings", title="template.settings", back=HERE, records=Act.TEMPLATE_CHANGED)
async def change_settings(visit: Visit, form: Form) -> Reply[Html]:
    """Store name, alias, types and fallbacks."""
    thing = thing_of(visit)
    shown = await visit.get(thing.api, shown=False)
    variables = []
    for entry in shown["variables"]:
        key = entry["key"]
        if form.get(f"remove.{key}"):
            continue
        kind = form.get(f"type.{key}")
        if not kind:
            # Declared since the form was opened: it says nothing of this one.
            variables.append({name: entry[name] for name in ("key", "type", "fallback_value")})
            continue
        fallback = _fallback(kind, form.get(f"fallback.{key}"))
        variables.append({"key": key, "type": kind, "fallback_value": fallback})
    body = {
        "name": form.get("name").strip(),
        "alias": form.get("alias").strip() or None,
        "variables": variables,
    }
    try:
        await visit.patch(thing.api, body)
    except Problem as problem:
        return await details_page(
            visit, status=problem.status, problem=problem.message, typed=dict(form.fields)
        )
    return visit.to(f"{thing.path}/settings", done="editor_saved")


async def details_page(
    visit: Visit,
    *,
    status: int = 200,
    problem: str | None = None,
    typed: Mapping[str, str] | None = None,
) -> Reply[Html]:
    """Return the form of the settings."""
    thing = thing_of(visit)
    shown = await visit.get(thing.api)
    return await visit.draw(
        "editor/template_settings.html",
        status=status,
        problem=problem,
        thing=thing,
        shown=shown,
        typed=typed or {},
        used=used_variables(shown["subject"], shown["html"], shown["text"]),
    )


@screen(f"{ONE}/versions", title="template.versions", query={"version": str, "done": str})
async def versions(visit: Visit) -> Reply[Html]:
    """Show the versions, and what one of them has otherwise than the newest."""
    thing = thing_of(visit)
    listed = (await visit.get(f"{thing.api}/versions"))["data"]
    shown = await visit.get(thing.api, shown=False)
    chosen = visit.request.query.text("version")
    lines = None
    if chosen and well_formed(chosen):
        lines = await _differences(visit, next((entry for entry in listed if entry["id"] == chosen), None))
    return await visit.draw(
        "editor/template_versions.html",
        thing=thing,
        shown=shown,
        versions=listed,
        chosen=chosen,
        lines=lines,
    )


@act(f"{ONE}/restore", title="template.restore", back=HERE, records=Act.TEMPLATE_CHANGED)
async def restore(visit: Visit, form: Form) -> Reply[Html]:
    """Make a version the content of the draft."""
    thing = thing_of(visit)
    version = form.get("version")
    if not well_formed(version):
        raise NotFound("Version")
    await visit.post(f"{thing.api}/versions/{version}/restore")
    return visit.to(thing.path, done="template_restored")


async def _differences(visit: Visit, entry: Mapping[str, Any] | None) -> list[DifferenceLine]:
    if entry is None:
        raise NotFound("Version")
    documents = visit.request.use(TemplateDocuments)
    template_id = visit.request.uuid("template_id")
    versions = await documents.versions(visit.db, TemplateReference(template_id, None))
    newest = await documents.version(visit.db, template_id, versions[0].id)
    older = await documents.version(visit.db, template_id, UUID(entry["id"]))
    work = visit.request.use(PageWork)
    return await work.do(visit.team_id, lambda: list(differences(_lines(older), _lines(newest))))


def differences(before: list[str], after: list[str]) -> Iterator[DifferenceLine]:
    """Yield the lines that differ, with some around them; long equal parts are left out."""
    matcher = SequenceMatcher(None, before[:MOST_LINES], after[:MOST_LINES], autojunk=True)
    for group in matcher.get_grouped_opcodes(NEAR):
        if group[0][1] or group[0][3]:
            yield DifferenceLine("left_out", "")
        for tag, start, end, other_start, other_end in group:
            if tag == "equal":
                yield from (DifferenceLine("same", line) for line in before[start:end])
                continue
            yield from (DifferenceLine("removed", line) for line in before[start:end])
            yield from (DifferenceLine("added", line) for line in after[other_start:other_end])


def _lines(content: TemplateContent) -> list[str]:
    """Return a version as lines to compare: its fields, and its document or HTML."""
    document = builtins_of(of_stored(content.source, content.html, content.text))
    named = {
        "Subject": content.subject,
        "From": content.sender,
        "Reply-To": ", ".join(content.reply_to or ()),
    }
    lines = [f"{name}: {value}" for name, value in named.items() if value]
    if preheader := document.get("preheader"):
        lines.append(f"Preheader: {preheader}")
    for one in content.variables:
        fallback = "" if one.fallback_value is None else f" = {one.fallback_value}"
        lines.append(f"{{{{{{{one.key}}}}}}}{fallback}")
    if document["kind"] == "blocks":
        lines += [line for block in document["blocks"] for line in _block_lines(block, "")]
    else:
        lines += str(document.get("text") or document.get("source") or document.get("html") or "").split("\n")
    return [line[:500] for line in lines]


def _block_lines(block: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield f"{indent}[{block['type']}]"
    for name in BLOCK_TEXTS:
        if value := block.get(name):
            yield from (f"{indent}  {line}" for line in str(value).split("\n"))
    for link in block.get("links", ()):
        yield f"{indent}  {link['name']} {link['href']}"
    for column in block.get("columns", ()):
        for inner in column:
            yield from _block_lines(inner, f"{indent}    ")


def _fallback(kind: str, text: str) -> str | float | int | None:
    if not text:
        return None
    if kind != "number":
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    if not isfinite(value):
        return text
    return int(value) if value.is_integer() and "e" not in text.lower() else value
