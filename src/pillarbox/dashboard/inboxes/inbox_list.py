"""Inboxes: the list with what is unread, and making one."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.inboxes.inbox_frame import HERE
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.inboxes.threads.recent_changes import digest_of_inboxes
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

NEW: Final = f"{HERE}/new"
FIELDS: Final = ("local", "domain", "name", "from_name", "forwarding")
DOMAINS: Final = 100
"""Domains that the form offers."""


@screen(
    HERE,
    title="inboxes.title",
    words="inboxes.words",
    navigation=NavigationEntry(group="inboxes", order=10, icon="inbox", keys="n"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the inboxes with their unread threads."""
    digest = await digest_of_inboxes(visit.db, None)
    page = await list_page(visit, "/inboxes", HERE)
    return await visit.draw("inboxes/list.html", inboxes=page.rows, paging=page.paging, digest=digest)


@screen(NEW, title="inboxes.new", words="inboxes.new.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new inbox."""
    return await _new_page(visit, dict.fromkeys(FIELDS, ""))


@act(NEW, title="inboxes.new", back=NEW, records=Act.INBOX_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make an inbox."""
    given = {name: form.get(name).strip() for name in FIELDS}
    body: dict[str, Any] = {
        "email_address": f"{given['local']}@{given['domain']}",
        "name": given["name"] or None,
        "from_name": given["from_name"] or None,
        "forwarding": bool(given["forwarding"]),
    }
    try:
        inbox = await visit.post("/inboxes", body)
    except Problem as problem:
        return await _new_page(visit, given, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{inbox['id']}", done="inbox_created")


async def _new_page(
    visit: Visit, given: dict[str, str], *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    domains = (await visit.get("/domains", shown=False, limit=DOMAINS))["data"]
    names = [domain["name"] for domain in domains]
    if given["domain"] and given["domain"] not in names:
        names.append(given["domain"])
    return await visit.draw("inboxes/new.html", status=status, problem=problem, given=given, domains=names)
