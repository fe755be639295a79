"""The table of contacts: chosen columns, filters that are combined freely, search by parts of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.contact_properties.definitions import PropertyDefinition, definitions
from pillarbox.contacts.conditions.walking import fitting_page
from pillarbox.contacts.engagement.events import engagement_of
from pillarbox.contacts.list_queries import ExportedContact
from pillarbox.dashboard.contact_properties.property_values import text_of_value
from pillarbox.dashboard.contacts.contact_filters import (
    LONG,
    QUERY,
    SOON,
    ContactTableFilter,
    contact_filter,
    counted,
    given_filter,
)
from pillarbox.dashboard.contacts.fact_choices import fact_choices
from pillarbox.dashboard.frame.code_samples import ApiExample
from pillarbox.dashboard.frame.paging import ROWS, PageLinks
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/contacts"
NEW: Final = f"{HERE}/new"

FIXED_COLUMNS: Final = ("name", "status", "created", "opened", "clicked", "bounced")
USUAL_COLUMNS: Final = ("name", "status", "created")
PROPERTY: Final = "property."


@screen(
    HERE,
    title="contacts.title",
    words="contacts.words",
    navigation=NavigationEntry(group="audience", order=10, icon="contacts", keys="c"),
    query={**QUERY, "after": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the contacts that fit the filter of the address."""
    return await contacts_page(visit)


async def contacts_page(
    visit: Visit, *, status: int = 200, problem: str | None = None, confirm: Mapping[str, Any] | None = None
) -> Reply[Html]:
    """Show the table. `confirm` has the fields of an act that is to be confirmed."""
    choices = await fact_choices(visit)
    given = given_filter(visit, choices)
    known = await definitions(visit.db)
    columns = _columns(given, known)
    rows: Sequence[ExportedContact] = ()
    paging, count = PageLinks(None, None), None
    looked_on = None
    try:
        wanted = contact_filter(visit, given.condition, given.search)
        page = await fitting_page(visit.db, wanted, ROWS, _after(visit))
        rows = page.contacts
        if page.following is not None:
            older = given.address(HERE, after=str(page.following))
            looked_on = older if len(rows) < ROWS else None
            paging = PageLinks(None, None if looked_on else older)
        count = await counted(visit.db, wanted, LONG if visit.request.query.text("count") else SOON)
    except Invalid as wrong:
        status, problem = 422, wrong.message
    visit.calls.append(ApiExample("GET", "/contacts", _asked(given), None))
    engagement = {}
    if {"opened", "clicked", "bounced"} & set(columns):
        engagement = await engagement_of(visit.db, [row.id for row in rows])
    acts = (await visit.get("/contacts/bulk-acts", shown=False, limit=5))["data"]
    return await visit.draw(
        "contacts/list.html",
        status=status,
        problem=problem,
        confirm=confirm,
        contacts=[_shown(row, known) for row in rows],
        engagement=engagement,
        columns=columns,
        column_texts=_column_texts(known),
        chosen_columns=given.columns,
        given=given,
        shown_rows=given.shown(choices),
        choices=choices,
        paging=paging,
        looked_on=looked_on,
        count=count,
        count_href=given.address(HERE, count="1"),
        later=given.address(f"{HERE}/count"),
        running=[one for one in acts if one["status"] in ("queued", "in_progress")],
        bulk_href=given.address(f"{HERE}/bulk"),
    )


@download(f"{HERE}/count", title="contacts.count", query=QUERY)
async def count_later(visit: Visit) -> Reply[Html]:
    """Return the count of the contacts that fit as a text, for the script of a page that did not wait."""
    given = given_filter(visit, await fact_choices(visit))
    counts = await counted(visit.db, contact_filter(visit, given.condition, given.search), LONG)
    text = t("contacts.not_counted") if counts is None else t("contacts.counted", count=counts.contacts)
    return visit.save("count.txt", text.encode(), "text/plain; charset=utf-8")


@screen(NEW, title="contacts.new", words="contacts.new.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new contact."""
    return await _new_page(visit, {})


@act(NEW, title="contacts.new", back=NEW, records=Act.CONTACT_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make a contact; one that is there already is not changed by this form."""
    typed = {name: form.get(name) for name in ("email", "first_name", "last_name", "segment")}
    try:
        email = typed["email"].strip()
        if "@" in email and await visit.find(f"/contacts/{email}", shown=False) is not None:
            raise Invalid(t("contacts.known"))
        body = {
            "email": email,
            "first_name": typed["first_name"].strip() or None,
            "last_name": typed["last_name"].strip() or None,
            "segments": [typed["segment"]] if well_formed(typed["segment"]) else None,
        }
        contact = await visit.post("/contacts", {name: value for name, value in body.items() if value})
    except Problem as problem:
        return await _new_page(visit, typed, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{contact['id']}", done="contact_created")


async def _new_page(
    visit: Visit, typed: Mapping[str, str], *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    choices = await fact_choices(visit)
    return await visit.draw(
        "contacts/new.html", status=status, problem=problem, typed=typed, segments=choices.segments
    )


def _after(visit: Visit) -> UUID | None:
    text = visit.request.query.text("after")
    return UUID(text) if text is not None and well_formed(text) else None


def _asked(given: ContactTableFilter) -> dict[str, str]:
    asked = {"search": given.search, "conditions": given.json, "limit": str(ROWS)}
    return {name: value for name, value in asked.items() if value}


def _column_texts(known: Sequence[PropertyDefinition]) -> dict[str, str]:
    fixed = {name: t(f"contacts.column.{name}") for name in FIXED_COLUMNS}
    return {**fixed, **{f"{PROPERTY}{one.key}": one.key for one in known}}


def _columns(given: ContactTableFilter, known: Sequence[PropertyDefinition]) -> list[str]:
    texts = _column_texts(known)
    return [column for column in given.columns if column in texts] or list(USUAL_COLUMNS)


def _shown(contact: ExportedContact, known: Sequence[PropertyDefinition]) -> dict[str, Any]:
    """Return a contact as the table shows it, its properties by column."""
    values = contact.values()
    shown = {
        f"{PROPERTY}{one.key}": text_of_value(
            values.get(
                str(one.number),
                None if one.fallback_value is None else msgspec.json.decode(one.fallback_value),
            )
        )
        for one in known
    }
    return {
        "id": contact.id,
        "email": contact.email,
        "name": " ".join([part for part in (contact.first_name, contact.last_name) if part]),
        "unsubscribed": contact.unsubscribed,
        "created_at": contact.created_at.isoformat(),
        "values": shown,
    }
