"""The file of a person, and its erasure, on the page of a contact or by any address."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from pillarbox.dashboard.contact.contact_page import ONE as CONTACT
from pillarbox.dashboard.contact.contact_page import contact_page
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act, record
from pillarbox.people.roles import Right
from pillarbox.personal_data.export import MEDIA
from pillarbox.personal_data.person import People, address_of

HERE: Final = "/dashboard/personal-data"
FILE: Final = "personal-data.json"


@screen(
    HERE,
    title="person.title",
    words="person.words",
    right=Right.MANAGE,
    navigation=NavigationEntry(group="audience", order=80, icon="check"),
    query={"address": str, "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the erasures, and the form of an address."""
    return await erasures_page(visit)


@download(f"{HERE}/file", title="person.file", right=Right.MANAGE, query={"address": str})
async def save(visit: Visit) -> Reply[Html]:
    """Save all that the team holds about an address."""
    return await _file(visit, visit.request.query.text("address") or "")


@download(f"{CONTACT}/file", title="person.file", right=Right.MANAGE)
async def save_of_contact(visit: Visit) -> Reply[Html]:
    """Save all that the team holds about a contact."""
    visit.request.uuid("contact_id")
    return await _file(visit, visit.request.param("contact_id"))


@act(f"{HERE}/erase", title="person.erase", back=HERE, right=Right.MANAGE, confirm=True, keeps=["address"])
async def erase(visit: Visit, form: Form) -> Reply[Html]:
    """Erase an address, if it was typed twice."""
    address = form.get("address").strip()
    if not _is_address(address):
        return await erasures_page(visit, address, status=422, problem=t("person.no_address"))
    if form.get("typed_name").strip().lower() != address.lower():
        return await erasures_page(visit, address, status=422, problem=t("person.typed_wrong"))
    try:
        await visit.post(f"/personal-data/{quote(address, safe='')}/erase")
    except Problem as problem:
        return await erasures_page(visit, address, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="person_erasing")


@act(
    f"{CONTACT}/erase",
    title="person.erase",
    back=HERE,
    right=Right.MANAGE,
    confirm=True,
    keeps=["typed_name"],
)
async def erase_contact(visit: Visit, form: Form) -> Reply[Html]:
    """Erase the person of a contact, if its address was typed. Who logs in for it first goes on with that
    address."""
    contact = await visit.get(f"/contacts/{visit.request.param('contact_id')}")
    if form.get("typed_name").strip() != contact["email"]:
        return await contact_page(visit, status=422, problem=t("person.typed_wrong"))
    try:
        await visit.post(f"/personal-data/{contact['id']}/erase")
    except Problem as problem:
        return await contact_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="person_erasing")


@act(f"{HERE}/{{erasure_id}}/remove", title="person.allow", back=HERE, right=Right.MANAGE)
async def allow(visit: Visit, _: Form) -> Reply[Html]:
    """Allow mail to an erased address again."""
    erasure_id = visit.request.uuid("erasure_id")
    try:
        await visit.delete(f"/personal-data/erasures/{erasure_id}")
    except NotFound:
        raise
    except Problem as problem:
        return await erasures_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="person_allowed")


async def erasures_page(
    visit: Visit, typed: str = "", *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Show the erasures of the team. With an address, say whether it is of somebody who was erased."""
    page = await list_page(visit, "/personal-data/erasures", HERE)
    address = visit.request.query.text("address") or typed or _kept_address(visit)
    found: Any = None
    if _is_address(address):
        found = await visit.find(f"/personal-data/erasures/{quote(address, safe='')}", shown=False)
    elif address and problem is None:
        status, problem = 422, t("person.no_address")
    return await visit.draw(
        "contact/erasures.html",
        status=status,
        problem=problem,
        erasures=page.rows,
        paging=page.paging,
        address=address if _is_address(address) else "",
        asked=address,
        found=found,
        tones={"completed": "good", "waiting": "warn", "in_progress": "info"},
    )


async def _file(visit: Visit, named: str) -> Reply[Html]:
    people, address = visit.request.use(People), await address_of(visit.db, named)
    await record(
        visit.pool,
        visit.request.at,
        Act.PERSON_EXPORTED,
        team_id=visit.team_id,
        actor=visit.actor,
        target=await people.mark_of(visit.db, address),
    )
    return visit.save(FILE, await people.file(visit.db, address, visit.request.at), MEDIA)


def _kept_address(visit: Visit) -> str:
    """Return the address of the form that has asked for a login."""
    fields = saved_form.kept(visit.request, visit.visitor).fields
    address = fields.get("address") or fields.get("typed_name", "").strip()
    return address if _is_address(address) else ""


def _is_address(text: str) -> bool:
    try:
        email_address(text)
    except NotAnAddress:
        return False
    return True
