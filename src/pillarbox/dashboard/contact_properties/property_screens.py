"""Contact properties: the list, making one, changing its fallback, and deleting it."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard.contact_properties.property_values import text_of_value, value_of
from pillarbox.dashboard.frame.layout import choices
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/contact-properties"
NEW: Final = f"{HERE}/new"
ONE: Final = f"{HERE}/{{contact_property_id}}"
TYPES: Final = ("string", "number")
"""Types of properties that can be made; the API knows the same."""

EXAMPLE: Final = "{{{contact.plan|free}}}"


@screen(
    HERE,
    title="properties.title",
    words="properties.words",
    navigation=NavigationEntry(group="audience", order=40, icon="usage"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the properties of contacts."""
    page = await list_page(visit, "/contact-properties", HERE)
    rows = [{**row, "fallback": text_of_value(row["fallback_value"])} for row in page.rows]
    return await visit.draw(
        "contact_properties/list.html", properties=rows, paging=page.paging, example=EXAMPLE
    )


@screen(NEW, title="properties.new", words="properties.new.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new property."""
    return await _new_page(visit, {"key": "", "type": "string", "fallback": ""})


@act(NEW, title="properties.new", back=NEW, records=Act.PROPERTY_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make a property."""
    given = {name: form.get(name) for name in ("key", "type", "fallback")}
    try:
        fallback = value_of(given["fallback"], given["type"], "fallback_value")
        body = {"key": given["key"].strip(), "type": given["type"], "fallback_value": fallback}
        await visit.post("/contact-properties", body)
    except Problem as problem:
        return await _new_page(visit, given, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="property_created")


@screen(ONE, title="property.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show a property with the form that changes its fallback."""
    return await property_page(visit)


@act(ONE, title="property.save", back=HERE, records=Act.PROPERTY_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Give the property another fallback, or none."""
    shown, typed = await visit.get(_api(visit)), form.get("fallback")
    try:
        fallback = value_of(typed, shown["type"], "fallback_value")
        await visit.patch(_api(visit), {"fallback_value": fallback})
    except Problem as problem:
        return await property_page(visit, typed, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="property_changed")


@act(f"{ONE}/delete", title="property.delete", back=HERE, records=Act.PROPERTY_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the property with all values of contacts, if its key was typed."""
    shown = await visit.get(_api(visit))
    if form.get("typed_name").strip() != shown["key"]:
        return await property_page(visit, status=422, problem=t("property.typed_wrong"))
    await visit.delete(_api(visit))
    return visit.to(HERE, done="property_deleted")


async def property_page(
    visit: Visit, typed: str | None = None, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Show the screen of one property. `typed` is the fallback that a refused form had."""
    shown: dict[str, Any] = await visit.get(_api(visit))
    fallback = text_of_value(shown["fallback_value"])
    return await visit.draw(
        "contact_properties/one.html",
        status=status,
        problem=problem,
        shown=shown,
        fallback=fallback,
        example=f"{{{{{{contact.{shown['key']}}}}}}}",
        typed=fallback if typed is None else typed,
        here=_here(visit),
    )


async def _new_page(
    visit: Visit, given: dict[str, str], *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    return await visit.draw(
        "contact_properties/new.html",
        status=status,
        problem=problem,
        given=given,
        types=choices(TYPES, "properties.type"),
    )


def _api(visit: Visit) -> str:
    return f"/contact-properties/{visit.request.param('contact_property_id')}"


def _here(visit: Visit) -> str:
    return f"{HERE}/{visit.request.param('contact_property_id')}"
