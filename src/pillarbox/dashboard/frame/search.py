"""The search field: one question over screens, emails, domains, contacts and everything that has an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pillarbox.automations.overview import views
from pillarbox.dashboard.docs import doc_search
from pillarbox.dashboard.docs.doc_pages import Documentation
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.texts import t
from pillarbox.emails.search.filters import EmailFilter, NotAFilter
from pillarbox.emails.search.find import find
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.wire.uuids import well_formed

LONGEST: Final = 200
EMAILS: Final = 10
CONTACTS: Final = 5
DOCUMENTS: Final = 4
"""So many operations and so many sections of the guide."""
NAMED_AUTOMATIONS: Final = 10
NAMED: Final = 100
"""Of a list whose names are compared, the newest so many."""

BY_ID: Final[Mapping[str, str]] = {
    "/emails": "emails.title",
    "/emails/receiving": "received.title",
    "/domains": "domains.title",
    "/webhooks": "webhooks.title",
    "/contacts": "contacts.title",
    "/segments": "segments.title",
    "/templates": "templates.title",
    "/broadcasts": "broadcasts.title",
    "/logs": "logs.title",
    "/automations": "automations.title",
    "/events": "events.title",
}
"""Lists of the API whose entries are found by their id."""

MESSAGE_ID: Final = re.compile(r"<?[^<>\s]{1,250}@[^<>\s@]{1,255}>?")

BY_NAME: Final = ("/domains", "/templates", "/broadcasts", "/segments", "/api-keys", "/events")
"""Lists of the API whose entries are found by a part of their name."""


class FoundThing(NamedTuple):
    """One result: where it leads, what it is called, and what it is."""

    path: str
    text: str
    kind: str


@screen("/dashboard/search", title="search.title", query={"q": str})
async def search(visit: Visit) -> Reply[Html]:
    """Show what fits the words of the search field."""
    q = (visit.request.query.text("q") or "").strip()[:LONGEST]
    screens = _screens(visit, q) if q else []
    things = await _things(visit, q) if q else []
    documents = await _documents(visit, q) if q else []
    return await visit.draw("frame/search.html", q=q, screens=screens, things=things, documents=documents)


def _screens(visit: Visit, q: str) -> list[FoundThing]:
    """Return the screens whose title or words have the text in them."""
    wanted = q.casefold()
    return [
        FoundThing(entry.path, t(entry.title), "")
        for entry in visit.request.use(ScreenTable).visible_to(visit.visitor)
        if "{" not in entry.path and wanted in _words(entry.title, entry.words)
    ]


async def _documents(visit: Visit, q: str) -> list[FoundThing]:
    """Return what the documentation says about it."""
    reference = await visit.request.use(Documentation).reference(visit.request)
    matches = await in_thread(doc_search.search, reference, q)
    operations = [
        FoundThing(operation.address, f"{operation.method} {operation.path}", operation.summary)
        for operation in matches.operations[:DOCUMENTS]
    ]
    sections = [
        FoundThing(section.address, section.heading, section.page) for section in matches.sections[:DOCUMENTS]
    ]
    return [*operations, *sections]


def _words(title: str, words: str | None) -> str:
    return f"{t(title)} {t(words) if words else ''}".casefold()


async def _things(visit: Visit, q: str) -> list[FoundThing]:
    if well_formed(q):
        return await _by_id(visit, q.lower())
    leads_to = visit.request.use(ScreenTable).leads_to
    found = [*await _with_message_id(visit, q), *await _emails(visit, q), *await _named(visit, q)]
    return [thing for thing in found if leads_to(thing.path.partition("?")[0])]


async def _by_id(visit: Visit, id: str) -> list[FoundThing]:
    found = []
    for path, kind in BY_ID.items():
        if not visit.request.use(ScreenTable).leads_to(f"/dashboard{path}/{id}"):
            continue
        thing = await visit.find(f"{path}/{id}", shown=False)
        if thing is not None:
            found.append(FoundThing(f"/dashboard{path}/{id}", _name(thing), kind))
    return found


async def _emails(visit: Visit, q: str) -> list[FoundThing]:
    """Return the emails to an address or a domain, else those whose subject has the words."""
    try:
        wanted = EmailFilter.parsed(to=q) if "@" in q else EmailFilter.parsed(subject=q)
    except NotAFilter:
        return []
    page = await find(visit.db.source, visit.team_id, wanted, limit=EMAILS)
    found = [
        FoundThing(f"/dashboard/emails/{email.id}", email.subject or t("email.no_subject"), "emails.title")
        for email in page.emails
    ]
    if found:
        query = {"to": q} if "@" in q else {"subject": q}
        found.append(FoundThing(with_query("/dashboard/emails", **query), t("search.more"), "emails.title"))
    return found


async def _with_message_id(visit: Visit, q: str) -> list[FoundThing]:
    """Return the emails, sent and received, with this Message-ID."""
    found = []
    if MESSAGE_ID.fullmatch(q):
        for path in ("/emails", "/emails/receiving"):
            listed = await visit.get(path, shown=False, message_id=q, limit=EMAILS)
            found += [
                FoundThing(
                    f"/dashboard{path}/{email['id']}",
                    email["subject"] or t("email.no_subject"),
                    BY_ID[path],
                )
                for email in listed["data"]
            ]
    return found


async def _named(visit: Visit, q: str) -> list[FoundThing]:
    found = []
    found += await _contacts(visit, q)
    for path in BY_NAME:
        for entry in (await visit.get(path, shown=False, limit=NAMED))["data"]:
            if q.casefold() in str(entry.get("name") or "").casefold():
                found.append(FoundThing(_path_of(path, entry), entry["name"], f"{path[1:]}.title"))
    for automation in await views.named(visit.db, q, NAMED_AUTOMATIONS):
        found.append(
            FoundThing(f"/dashboard/automations/{automation.id}", automation.name, "automations.title")
        )
    return found


async def _contacts(visit: Visit, q: str) -> list[FoundThing]:
    """Return the newest contacts that have the words in their address or names."""
    try:
        listed = await visit.get("/contacts", shown=False, search=q, limit=CONTACTS)
    except Problem:
        return []
    found = [
        FoundThing(f"/dashboard/contacts/{contact['id']}", contact["email"], "contacts.title")
        for contact in listed["data"]
    ]
    if listed["has_more"]:
        more = with_query("/dashboard/contacts", search=q)
        found.append(FoundThing(more, t("search.more"), "contacts.title"))
    return found


def _path_of(path: str, entry: Mapping[str, Any]) -> str:
    return "/team/keys" if path == "/api-keys" else f"/dashboard{path}/{entry['id']}"


def _name(thing: Mapping[str, Any]) -> str:
    """Return the text by which people know a thing."""
    names: Iterable[Any] = (thing.get(key) for key in ("name", "subject", "email", "endpoint", "id"))
    return str(next(name for name in names if name))
