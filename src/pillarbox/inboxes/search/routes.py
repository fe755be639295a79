"""HTTP route of searching an inbox (inboxes.md 5.2)."""

from __future__ import annotations

from dataclasses import replace

from pillarbox.inboxes import paths
from pillarbox.inboxes.search import pages, wire
from pillarbox.inboxes.search.message_filter import MESSAGE_FILTERS, MessageFilter
from pillarbox.inboxes.threads.list_filter import FILTERS, ThreadFilter
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import PAGING, Page


@route(
    "GET",
    "/inboxes/{inbox}/threads/search",
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    query={**FILTERS, **MESSAGE_FILTERS, **PAGING},
    summary="Search threads",
)
async def search(request: Request, db: TeamDb) -> Reply[wire.FoundThreads]:
    page = Page.read(request.query)
    threads = replace(ThreadFilter.of(request.query), text=None)
    messages = MessageFilter.of(request.query)
    inbox_id = await paths.inbox_of(request, db)
    return Reply(wire.found(await pages.by_messages(db, inbox_id, page, threads, messages)))
