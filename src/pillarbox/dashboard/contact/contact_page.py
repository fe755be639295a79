"""One contact: what is known of it, what happened to it, and everything that is changed or removed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from pillarbox.contacts.contact_history import address_of, suppressed_address
from pillarbox.dashboard.contact.contact_timeline import position_of, timeline_page
from pillarbox.dashboard.contact_properties.property_values import text_of_value, value_of
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

CONTACTS: Final = "/dashboard/contacts"
ONE: Final = f"{CONTACTS}/{{contact_id}}"
MOST_LISTED: Final = 100
"""Topics, segments and properties that the page shows."""

PROPERTY: Final = "property."
"""The names of fields of properties begin so."""


@screen(ONE, title="contact.title", query={"before": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show a contact with its timeline."""
    return await contact_page(visit)


@screen(f"{ONE}/edit", title="contact.edit", right=Right.USE)
async def edit(visit: Visit) -> Reply[Html]:
    """Show the form of names and properties."""
    return await _edit_page(visit, await _contact(visit))


@act(f"{ONE}/edit", title="contact.edit", back=CONTACTS, records=Act.CONTACT_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Change names and properties."""
    contact = await _contact(visit)
    definitions = await _definitions(visit)
    try:
        body = {
            "first_name": form.get("first_name").strip() or None,
            "last_name": form.get("last_name").strip() or None,
            "properties": _values(form, definitions, contact["properties"]),
        }
        await visit.patch(_api(visit), body)
    except Problem as problem:
        typed = {name: form.get(name) for name, _ in form.fields if name != "csrf_token"}
        return await _edit_page(visit, contact, typed, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="contact_changed")


@act(f"{ONE}/subscription", title="contact.subscription", back=CONTACTS, records=Act.CONTACT_CHANGED)
async def subscribe(visit: Visit, form: Form) -> Reply[Html]:
    """Unsubscribe the contact from everything, or take that back."""
    is_leaving = form.get("unsubscribed") == "yes"
    await visit.patch(_api(visit), {"unsubscribed": is_leaving})
    return visit.to(_here(visit), done="contact_unsubscribed" if is_leaving else "contact_resubscribed")


@act(f"{ONE}/topics", title="contact.topics", back=CONTACTS, records=Act.CONTACT_CHANGED)
async def choose(visit: Visit, form: Form) -> Reply[Html]:
    """Store what the contact gets, for the topics that the form showed."""
    await _contact(visit)
    shown = [text for text in form.every("shown") if well_formed(text)][:MOST_LISTED]
    joined = set(form.every("topic"))
    if shown:
        choices = [{"id": one, "subscription": "opt_in" if one in joined else "opt_out"} for one in shown]
        before = {row["id"]: row["subscription"] for row in await _topics(visit)}
        changed = [choice for choice in choices if before.get(choice["id"]) != choice["subscription"]]
        if changed:
            try:
                await visit.patch(f"{_api(visit)}/topics", changed)
            except Problem as problem:
                return await contact_page(visit, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="contact_topics")


@act(f"{ONE}/segments", title="contact.segments", back=CONTACTS, records=Act.CONTACT_CHANGED)
async def join(visit: Visit, form: Form) -> Reply[Html]:
    """Add the contact to a segment."""
    segment = form.get("segment")
    if not well_formed(segment):
        return await contact_page(visit, status=422, problem=t("contact.no_segment"))
    try:
        await visit.post(f"{_api(visit)}/segments/{UUID(segment)}")
    except Problem as problem:
        return await contact_page(visit, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="contact_joined")


@act(f"{ONE}/segments/leave", title="contact.leave", back=CONTACTS, records=Act.CONTACT_CHANGED)
async def leave(visit: Visit, form: Form) -> Reply[Html]:
    """Take the contact out of a segment."""
    segment = form.get("segment")
    if not well_formed(segment):
        return await contact_page(visit, status=422, problem=t("contact.no_segment"))
    try:
        await visit.delete(f"{_api(visit)}/segments/{UUID(segment)}")
    except Problem as problem:
        return await contact_page(visit, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="contact_left")


@act(f"{ONE}/delete", title="contact.delete", back=CONTACTS, records=Act.CONTACT_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the contact, if its address was typed."""
    contact = await _contact(visit)
    if form.get("typed_name").strip() != contact["email"]:
        return await contact_page(visit, status=422, problem=t("contact.typed_wrong"))
    await visit.delete(_api(visit))
    return visit.to(list_path(visit), done="contact_deleted")


async def contact_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one contact."""
    contact = await _contact(visit)
    address = await address_of(visit.db, UUID(contact["id"]))
    before = visit.request.query.text("before")
    page = await timeline_page(
        visit.db, UUID(contact["id"]), address, position_of(before), given=contact["email"]
    )
    segments = (await visit.get(f"{_api(visit)}/segments", limit=MOST_LISTED))["data"]
    mine = {row["id"] for row in segments}
    others = (await visit.get("/segments", shown=False, limit=MOST_LISTED))["data"]
    name = " ".join(part for part in (contact["first_name"], contact["last_name"]) if part)
    return await visit.draw(
        "contact/one.html",
        status=status,
        problem=problem,
        contact=contact,
        name=name,
        here=_here(visit),
        contacts_path=list_path(visit),
        properties=_shown(contact["properties"]),
        topics=await _topics(visit),
        segments=segments,
        other_segments=[row for row in others if row["id"] not in mine],
        suppressed=await suppressed_address(visit.db, address),
        entries=page.entries,
        older=with_query(_here(visit), before=page.older) if page.older else None,
        newest=_here(visit) if before else None,
        may_manage=visit.may(Right.MANAGE),
    )


def list_path(visit: Visit) -> str:
    """Return the screen of all contacts, or the overview where there is none."""
    return CONTACTS if visit.request.use(ScreenTable).leads_to(CONTACTS) else "/dashboard"


async def _edit_page(
    visit: Visit,
    contact: Mapping[str, Any],
    typed: Mapping[str, str] | None = None,
    *,
    status: int = 200,
    problem: str | None = None,
) -> Reply[Html]:
    values = contact["properties"]
    fields = [
        {
            "name": f"{PROPERTY}{row['key']}",
            "key": row["key"],
            "type": row["type"],
            "fallback": text_of_value(row["fallback_value"]),
            "value": text_of_value(values.get(row["key"], {}).get("value")),
        }
        for row in await _definitions(visit)
    ]
    return await visit.draw(
        "contact/edit.html",
        status=status,
        problem=problem,
        contact=contact,
        fields=fields,
        typed=typed or {},
        here=_here(visit),
    )


def _values(
    form: Form, definitions: Sequence[Mapping[str, Any]], before: Mapping[str, Any]
) -> dict[str, str | float | bool | None]:
    """Return the properties that the form changes; None clears one."""
    changed: dict[str, str | float | bool | None] = {}
    typed = dict(form.fields)
    for row in definitions:
        key, text = row["key"], typed.get(f"{PROPERTY}{row['key']}")
        if text is None or text == text_of_value(before.get(key, {}).get("value")):
            continue
        changed[key] = value_of(text, row["type"], f"properties.{key}")
    return changed


def _shown(properties: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, text_of_value(one["value"])) for key, one in sorted(properties.items())][:MOST_LISTED]


async def _contact(visit: Visit) -> dict[str, Any]:
    visit.request.uuid("contact_id")
    contact: dict[str, Any] = await visit.get(_api(visit))
    return contact


async def _definitions(visit: Visit) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await visit.get("/contact-properties", shown=False, limit=MOST_LISTED))[
        "data"
    ]
    return rows


async def _topics(visit: Visit) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await visit.get(f"{_api(visit)}/topics", limit=MOST_LISTED))["data"]
    return rows


def _api(visit: Visit) -> str:
    return f"/contacts/{visit.request.param('contact_id')}"


def _here(visit: Visit) -> str:
    return f"{CONTACTS}/{visit.request.param('contact_id')}"
