"""Segments: the list, making one by hand or by conditions, one segment with its contacts, changing,
deleting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from pillarbox.dashboard.contacts.contact_filters import (
    LONG,
    QUERY,
    SOON,
    contact_filter,
    counted,
    given_filter,
)
from pillarbox.dashboard.contacts.fact_choices import FactChoices, fact_choices
from pillarbox.dashboard.contacts.filter_rows import FilterRow, kind_of, rows_of_condition
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid, InvalidField, Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right
from pillarbox.segments.member_counts import member_counts

HERE: Final = "/dashboard/segments"
NEW: Final = f"{HERE}/new"
ONE: Final = f"{HERE}/{{segment_id}}"
LONGEST_JSON: Final = 16_000


@screen(
    HERE,
    title="segments.title",
    words="segments.words",
    navigation=NavigationEntry(group="audience", order=20, icon="segments"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the segments, with the members of those that have their own."""
    page = await list_page(visit, "/segments", HERE)
    counts = await member_counts(visit.db, [row["id"] for row in page.rows if "conditions" not in row])
    return await visit.draw("segments/list.html", segments=page.rows, paging=page.paging, counts=counts)


@screen(NEW, title="segments.new", words="segments.new.words", right=Right.USE, query={**QUERY, "by": str})
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new segment: a name, and rows of conditions where they are wanted."""
    return await _new_page(visit)


@act(NEW, title="segments.new", back=NEW, records=Act.SEGMENT_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make a segment."""
    name, text = form.get("name"), form.get("conditions").strip()
    try:
        body = {"name": name, "conditions": _json(text) if text else None}
        segment = await visit.post("/segments", {key: value for key, value in body.items() if value})
    except Problem as problem:
        return await _new_page(visit, name, text, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{segment['id']}", done="segment_created")


@screen(ONE, title="segments.one", query={"after": str, "before": str, "count": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show a segment with its contacts."""
    return await segment_page(visit)


@act(ONE, title="segments.save", back=HERE, records=Act.SEGMENT_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Change the name of a segment."""
    try:
        await visit.patch(_api(visit), {"name": form.get("name")})
    except Problem as problem:
        return await segment_page(visit, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="segment_changed")


@screen(f"{ONE}/conditions", title="segments.conditions", right=Right.USE, query=QUERY)
async def conditions(visit: Visit) -> Reply[Html]:
    """Show the conditions of a segment as rows, or as JSON where they do not fit into rows."""
    return await _conditions_page(visit)


@act(f"{ONE}/conditions", title="segments.conditions", back=HERE, records=Act.SEGMENT_CHANGED)
async def change_conditions(visit: Visit, form: Form) -> Reply[Html]:
    """Store other conditions. What somebody else has stored since the form was drawn is not written over."""
    text = form.get("conditions").strip()
    try:
        segment = await visit.get(_api(visit), shown=False)
        if _encoded(segment["conditions"]) != form.get("before"):
            raise Invalid(t("segments.changed_meanwhile"))
        await visit.patch(_api(visit), {"conditions": _json(text)})
    except Problem as problem:
        return await _conditions_page(visit, text, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="segment_changed")


@act(f"{ONE}/delete", title="segments.delete", back=HERE, records=Act.SEGMENT_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete a segment, if its name was typed; its contacts stay."""
    segment = await visit.get(_api(visit), shown=False)
    if form.get("typed_name").strip() != segment["name"].strip():
        return await segment_page(visit, status=422, problem=t("segments.typed_wrong"))
    await visit.delete(_api(visit))
    return visit.to(HERE, done="segment_deleted")


async def segment_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one segment."""
    segment = await visit.get(_api(visit))
    choices = await fact_choices(visit)
    page = await list_page(visit, f"{_api(visit)}/contacts", _here(visit))
    wanted = contact_filter(visit, _condition(segment), "")
    seconds = LONG if visit.request.query.text("count") else SOON
    return await visit.draw(
        "segments/one.html",
        status=status,
        problem=problem,
        segment=segment,
        here=_here(visit),
        contacts=page.rows,
        paging=page.paging,
        rows=_texts(segment.get("conditions"), choices),
        conditions=_pretty(segment.get("conditions")),
        count=await counted(visit.db, wanted, seconds),
        later=_count_address(segment, choices),
    )


async def _new_page(
    visit: Visit, name: str = "", text: str = "", *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    choices = await fact_choices(visit)
    given = given_filter(visit, choices)
    by_conditions = bool(text or given.rows or visit.request.query.text("by") == "conditions")
    count = None
    try:
        count = await counted(visit.db, contact_filter(visit, given.condition, ""))
    except Invalid as wrong:
        status, problem = 422, wrong.message
    return await visit.draw(
        "segments/new.html",
        status=status,
        problem=problem,
        name=name,
        given=given,
        shown_rows=given.shown(choices),
        choices=choices,
        by_conditions=by_conditions,
        conditions=text or given.json,
        count=count,
        count_href=given.address(NEW, by="conditions", count="1"),
        later=given.address("/dashboard/contacts/count"),
    )


async def _conditions_page(
    visit: Visit, text: str = "", *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    segment = await visit.get(_api(visit))
    if "conditions" not in segment:
        raise Invalid(t("segments.by_hand"))
    choices = await fact_choices(visit)
    given = given_filter(visit, choices)
    rows = rows_of_condition(segment["conditions"], choices.property_types)
    if not given.rows and rows is not None and not text:
        given = replace(given, rows=rows[0], match=rows[1], condition=segment["conditions"])
    count = None
    try:
        count = await counted(visit.db, contact_filter(visit, given.condition, ""))
    except Invalid as wrong:
        status, problem = 422, wrong.message
    return await visit.draw(
        "segments/conditions.html",
        status=status,
        problem=problem,
        segment=segment,
        here=_here(visit),
        given=given,
        shown_rows=given.shown(choices),
        choices=choices,
        conditions=text or given.json or _pretty(segment["conditions"]),
        before=_encoded(segment["conditions"]),
        is_rows=bool(given.rows),
        count=count,
        count_href=given.address(f"{_here(visit)}/conditions", count="1"),
        later=given.address("/dashboard/contacts/count"),
    )


def _rows_address(path: str, rows: list[FilterRow], match: str) -> str:
    values: dict[str, str | None] = {}
    for number, row in enumerate(rows, 1):
        values |= {f"f{number}": row.field, f"o{number}": row.operator, f"v{number}": row.value or None}
    return with_query(path, **values, match=match if len(rows) > 1 else None)


def _condition(segment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the condition that a contact is in the segment."""
    found: Mapping[str, Any] | None = segment.get("conditions")
    if found is not None:
        return found
    return {"type": "rule", "field": f"segments.{segment['id']}", "operator": "eq", "value": True}


def _count_address(segment: Mapping[str, Any], choices: FactChoices) -> str | None:
    """Return where a script asks for the count; None where the conditions do not fit into rows."""
    found = rows_of_condition(dict(_condition(segment)), choices.property_types)
    return None if found is None else _rows_address("/dashboard/contacts/count", *found)


def _texts(condition: dict[str, Any] | None, choices: FactChoices) -> list[tuple[str, str, str]] | None:
    """Return the rows of a condition as texts; None where it does not fit into rows."""
    if condition is None:
        return None
    found = rows_of_condition(condition, choices.property_types)
    if found is None:
        return None
    return [
        (choices.text_of(row.field), t(f"contacts.operator.{row.operator}"), row.value)
        for row in found[0]
        if kind_of(row.field, choices.property_types) is not None
    ]


def _json(text: str) -> Any:
    if len(text) > LONGEST_JSON:
        raise InvalidField("conditions", t("segments.json_long"))
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidField("conditions", t("segments.no_json")) from None


def _encoded(condition: Any) -> str:
    return msgspec.json.encode(condition).decode()


def _pretty(condition: Any) -> str:
    return "" if condition is None else msgspec.json.format(msgspec.json.encode(condition)).decode()


def _api(visit: Visit) -> str:
    return f"/segments/{visit.request.uuid('segment_id')}"


def _here(visit: Visit) -> str:
    return f"{HERE}/{visit.request.uuid('segment_id')}"
