"""The list of suppressed addresses: search, adding, removing, and a file of all."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

import asyncpg

from pillarbox.dashboard.frame.csv_file import MEDIA, lines
from pillarbox.dashboard.frame.layout import choices
from pillarbox.dashboard.frame.paging import ROWS, ListPage, PageLinks, list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import NotAnAddress
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people import audit
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right
from pillarbox.suppressions.addresses import listed_address
from pillarbox.suppressions.changes import ORIGINS
from pillarbox.suppressions.listing import COLUMNS, blocks_of, count_of, find_containing
from pillarbox.suppressions.wire import MOST

HERE: Final = "/dashboard/suppressions"
ADD: Final = f"{HERE}/add"
MOST_SHOWN: Final = 5
_BETWEEN: Final = re.compile(r"[\s,;]+")


@screen(
    HERE,
    title="suppressions.title",
    words="suppressions.words",
    navigation=NavigationEntry(group="email", order=70, icon="blocked", keys="u"),
    query={"address": str, "origin": str, "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    return await list_screen(visit)


@screen(ADD, title="suppressions.add", words="suppressions.add.words", right=Right.USE)
async def add(visit: Visit) -> Reply[Html]:
    return await _add_page(visit, "")


@act(ADD, title="suppressions.add", back=ADD, records=Act.SUPPRESSIONS_ADDED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Suppress the addresses of the field, all or none of them."""
    text = form.get("addresses")
    addresses = [piece for piece in _BETWEEN.split(text) if piece]
    if problem := _wrong(addresses):
        return await _add_page(visit, text, status=422, problem=problem)
    visit.acts_on(addresses[0], count=len(addresses))
    try:
        await visit.post("/suppressions/batch/add", {"emails": addresses})
    except Problem as refused:
        return await _add_page(visit, text, status=refused.status, problem=refused.message)
    return visit.to(HERE, done="suppressions_added")


@act(f"{HERE}/remove", title="suppressions.remove", back=HERE)
async def remove(visit: Visit, form: Form) -> Reply[Html]:
    """Take the chosen addresses off the list."""
    ids = [value for value in form.every("id") if well_formed(value)][:MOST]
    if not ids:
        return await list_screen(visit, status=422, problem=t("suppressions.none_chosen"))
    try:
        await visit.post("/suppressions/batch/remove", {"ids": ids})
    except Problem as problem:
        return await list_screen(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="suppressions_removed")


@download(f"{HERE}/csv", title="suppressions.csv", query={"origin": str})
async def save_csv(visit: Visit) -> Reply[Html]:
    """Save the whole list, or that of one origin."""
    origin = visit.request.query.choice("origin", *ORIGINS)
    await audit.record(
        visit.request.use(asyncpg.Pool),
        visit.request.at,
        Act.SUPPRESSIONS_EXPORTED,
        team_id=visit.team_id,
        actor=visit.actor,
        target=origin,
        details={"count": await count_of(visit.db, origin)},
    )
    name = "suppressions.csv" if origin is None else f"suppressions-{origin}.csv"
    return visit.save(name, _csv_parts(visit.db, origin), MEDIA)


async def _csv_parts(db: TeamDb, origin: str | None) -> AsyncIterator[bytes]:
    """Yield the file in pieces of a block."""
    yield lines([COLUMNS])
    async for block in blocks_of(db, origin):
        yield lines(block)


async def list_screen(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the list, filtered by the parameters of the address."""
    query = visit.request.query
    address, origin = query.text("address"), query.text("origin")
    origin = origin if origin in ORIGINS else None
    page = await (
        list_page(visit, "/suppressions", HERE, origin=origin)
        if address is None
        else _found(visit, address, origin)
    )
    return await visit.draw(
        "suppressions/list.html",
        status=status,
        problem=problem,
        entries=page.rows,
        paging=page.paging,
        address=address or "",
        origin=origin or "",
        origins=choices(ORIGINS, "suppressions.origin"),
        is_filtered=bool(address or origin),
    )


async def _found(visit: Visit, text: str, origin: str | None) -> ListPage:
    """Return the entries whose address contains the text."""
    after = visit.request.query.text("after")
    cursor = UUID(after) if after and well_formed(after) else None
    found = await find_containing(visit.db, text, origin, limit=ROWS, after=cursor)
    older = (
        with_query(HERE, address=text, origin=origin, after=str(found.following)) if found.following else None
    )
    rows: list[dict[str, Any]] = [
        {
            "id": str(entry.id),
            "email": entry.shown,
            "origin": entry.origin,
            "created_at": iso_style(entry.created_at),
        }
        for entry in found.rows
    ]
    return ListPage(rows, PageLinks(None, older))


def _wrong(addresses: list[str]) -> str | None:
    """Return a sentence about typed texts that are no addresses; None where all are."""
    if not addresses:
        return t("suppressions.no_address")
    if len(addresses) > MOST:
        return t("suppressions.too_many", count=len(addresses))
    wrong = [text for text in addresses if not _is_address(text)]
    return t("suppressions.not_so", texts=", ".join(wrong[:MOST_SHOWN])) if wrong else None


def _is_address(text: str) -> bool:
    try:
        listed_address(text)
    except NotAnAddress:
        return False
    return True


async def _add_page(visit: Visit, text: str, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    return await visit.draw("suppressions/add.html", status=status, problem=problem, addresses=text)
