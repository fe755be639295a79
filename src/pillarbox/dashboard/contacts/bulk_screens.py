"""Acts on many contacts: chosen ones of the table, or all that fit its filter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from uuid import UUID

from pillarbox.contact_properties.definitions import definitions
from pillarbox.contacts.bulk_acts.acts import digest_of_bulk_acts
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.language import FactComparison, FactField, SomeCondition
from pillarbox.contacts.conditions.membership import following_fitting
from pillarbox.dashboard.contacts.contact_filters import (
    QUERY,
    ContactTableFilter,
    contact_filter,
    given_filter,
)
from pillarbox.dashboard.contacts.contact_list import HERE, contacts_page
from pillarbox.dashboard.contacts.fact_choices import fact_choices
from pillarbox.dashboard.frame.csv_file import MEDIA, lines
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

BULK: Final = f"{HERE}/bulk"
ONE: Final = f"{BULK}/{{bulk_act_id}}"
ACTIONS: Final = ("add_to_segment", "remove_from_segment", "unsubscribe", "delete")
TO_CONFIRM: Final = ("unsubscribe", "delete")
"""Acts that cannot be undone by another one."""

COLUMNS: Final = ("id", "email", "first_name", "last_name", "unsubscribed", "created_at")
ROWS: Final = 1000
MOST_CHOSEN: Final = 100
FIRST: Final = UUID(int=0)


@act(BULK, title="bulk.title", back=HERE, records=Act.CONTACTS_CHANGED)
async def begin(visit: Visit, form: Form) -> Reply[Html]:
    """Begin an act on the chosen contacts, or on all that fit the filter."""
    action, is_all = form.get("action"), form.get("scope") == "all"
    ids = [text for text in form.every("id") if well_formed(text)]
    given = given_filter(visit, await fact_choices(visit))
    if action == "export" and is_all:
        return await _save_fitting(visit, given)
    if action == "export" and ids:
        visit.has_acted(None, Act.CONTACTS_EXPORTED, contacts=len(ids))
        return visit.save("contacts.csv", csv_parts(visit.db, _chosen(visit, ids[:MOST_CHOSEN])), MEDIA)
    if action not in ACTIONS:
        return await contacts_page(visit, status=422, problem=t("bulk.no_action"))
    if not ids and not is_all:
        return await contacts_page(visit, status=422, problem=t("bulk.none_chosen"))
    if action in TO_CONFIRM and form.get("confirmed") != "yes":
        confirm = {"action": action, "ids": ids, "is_all": is_all, "segment": form.get("segment")}
        return await contacts_page(visit, confirm=confirm)
    body: dict[str, Any] = {"action": action}
    if well_formed(form.get("segment")) and "segment" in action:
        body["segment_id"] = form.get("segment")
    if is_all:
        body |= {"all": True, "search": given.search or None, "conditions": given.condition}
    else:
        body["contacts"] = ids
    visit.acts_on(None, action=action, contacts="all" if is_all else str(len(ids)))
    try:
        begun = await visit.post("/contacts/bulk-acts", body)
    except Problem as problem:
        return await contacts_page(visit, status=problem.status, problem=problem.message)
    return visit.to(f"{BULK}/{begun['id']}")


@screen(BULK, title="bulk.title", words="bulk.words", query={"after": str, "before": str, "done": str})
async def index(visit: Visit) -> Reply[Html]:
    """Show the acts of the last thirty days."""
    digest = await digest_of_bulk_acts(visit.db, None)
    page = await list_page(visit, "/contacts/bulk-acts", BULK)
    return await visit.draw("contacts/bulk_list.html", acts=page.rows, paging=page.paging, digest=digest)


@screen(ONE, title="bulk.one")
async def show(visit: Visit) -> Reply[Html]:
    """Show how far an act is."""
    digest = await digest_of_bulk_acts(visit.db, None)
    shown = await visit.get(f"/contacts/bulk-acts/{visit.request.uuid('bulk_act_id')}")
    segment = None
    if shown["segment_id"] is not None:
        segment = await visit.find(f"/segments/{shown['segment_id']}", shown=False)
    return await visit.draw(
        "contacts/bulk.html",
        bulk=shown,
        segment=segment,
        is_running=shown["status"] in ("queued", "in_progress"),
        percent=round(100 * min(1, shown["done"] / shown["total"])) if shown["total"] else None,
        digest=digest,
    )


@act(f"{ONE}/stop", title="bulk.stop", back=BULK, records=Act.CONTACTS_ACT_STOPPED)
async def stop(visit: Visit, form: Form) -> Reply[Html]:
    """Stop an act that runs."""
    act_id = visit.request.uuid("bulk_act_id")
    await visit.post(f"/contacts/bulk-acts/{act_id}/stop")
    return visit.to(f"{BULK}/{act_id}")


@download(f"{HERE}/csv", title="contacts.csv", right=Right.USE, query=QUERY)
async def save_csv(visit: Visit) -> Reply[Html]:
    """Save the contacts that fit the filter, the oldest first."""
    given = given_filter(visit, await fact_choices(visit))
    reply = await _save_fitting(visit, given)
    await visit.record(Act.CONTACTS_EXPORTED, team_id=visit.team_id)
    return reply


async def _save_fitting(visit: Visit, given: ContactTableFilter) -> Reply[Html]:
    """Return the file of the contacts that fit the filter. It is written while the browser reads it
    (docs/decisions/0188)."""
    wanted = contact_filter(visit, given.condition, given.search)
    visit.has_acted(None, Act.CONTACTS_EXPORTED, search=given.search, conditions=json.dumps(given.condition))
    return visit.save("contacts.csv", csv_parts(visit.db, wanted), MEDIA)


async def csv_parts(db: TeamDb, fitting: ContactFilter, rows: int = ROWS) -> AsyncIterator[bytes]:
    """Yield the file in pieces. No transaction is open while the browser reads."""
    known = sorted(await definitions(db), key=lambda one: one.key)
    yield lines(
        [
            [
                "id",
                "email",
                "first_name",
                "last_name",
                "unsubscribed",
                "created_at",
                *[one.key for one in known],
            ]
        ]
    )
    after = FIRST
    while block := await following_fitting(db, fitting, after, rows):
        yield lines([_cells(contact, [str(one.number) for one in known]) for contact in block])
        after = block[-1].id


def _chosen(visit: Visit, ids: Sequence[str]) -> ContactFilter:
    """Return the filter of contacts with these ids."""
    rules = [FactComparison(FactField("contact", "id"), "eq", one) for one in ids]
    return ContactFilter(visit.request.at, SomeCondition(tuple(rules)))


def _cells(contact: Any, numbers: Sequence[str]) -> list[Any]:
    values = contact.values()
    return [
        str(contact.id),
        contact.email,
        contact.first_name or "",
        contact.last_name or "",
        "true" if contact.unsubscribed else "false",
        iso_style(contact.created_at),
        *[_text(values.get(number)) for number in numbers],
    ]


def _text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value
