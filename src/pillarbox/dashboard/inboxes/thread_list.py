"""The threads of an inbox: folders, labels, search, and what is done with several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard.emails.email_acts import chosen
from pillarbox.dashboard.frame.paging import ROWS, PageLinks
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.inboxes.inbox_frame import FOLDERS, HERE, ONE, inbox_frame, inbox_path
from pillarbox.dashboard.inboxes.search_operators import search_parameters
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import has_text, t
from pillarbox.inboxes.threads.recent_changes import digest_of_inboxes
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act

VIEW: Final = ("folder", "label", "unread", "q")
"""Parameters of the address that say which threads are listed."""

MOST_CHANGED: Final = 100
EVERYWHERE: Final = "inbox,archive,sent"
"""Folders that a search looks through, and a label; spam and trash only where they are chosen."""

CHANGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "read": {"read": True},
    "unread": {"read": False},
    "archive": {"folder": "archive"},
    "inbox": {"folder": "inbox"},
    "spam": {"folder": "spam"},
    "trash": {"folder": "trash"},
}
"""The change that each button asks for, as the API takes it."""

STAYS: Final = ("read", "label")
"""Buttons of the page of a thread that lead back to it; the others lead to the list."""


class ThreadRows(NamedTuple):
    """The threads of a page of the list, and the links to its neighbours."""

    rows: Sequence[Mapping[str, Any]]
    paging: PageLinks


NO_ROWS: Final = ThreadRows((), PageLinks(None, None))


@screen(
    ONE,
    title="threads.title",
    query={**dict.fromkeys(VIEW, str), "after": str, "before": str, "done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the threads that the address asks for."""
    return await threads_page(visit, {name: visit.request.query.text(name) for name in VIEW})


@act(f"{ONE}/threads", title="threads.change", back=HERE, records=Act.INBOX_THREADS_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Mark, move or label the chosen threads."""
    view = {name: form.get(name) or None for name in VIEW}
    action, ids = form.get("do"), chosen(form)
    body = {"label_id": form.get("label_id")} if action == "label" else CHANGES.get(action)
    if not ids or body is None or body == {"label_id": ""}:
        wrong = t("threads.none_chosen") if not ids else t("threads.no_label")
        return await threads_page(visit, view, status=422, problem=wrong)
    if len(ids) > MOST_CHANGED:
        return await threads_page(visit, view, status=422, problem=t("threads.too_many", count=MOST_CHANGED))
    visit.acts_on(ids[0], action=action, count=len(ids))
    refused = await _change_each(visit, ids, body)
    if refused is not None:
        return await threads_page(visit, view, status=refused.status, problem=refused.message)
    here = f"{HERE}/{visit.request.param('inbox_id')}"
    if form.get("thread") == ids[0] and action in STAYS:
        return visit.to(f"{here}/threads/{ids[0]}", done=f"threads_{action}")
    return visit.to(with_query(here, **view, done=f"threads_{action}"))


async def threads_page(
    visit: Visit,
    view: Mapping[str, str | None],
    *,
    status: int = 200,
    problem: str | None = None,
) -> Reply[Html]:
    """Show the list for these parameters of the address."""
    frame = await inbox_frame(visit, beside_list=True)
    digest = await digest_of_inboxes(visit.db, UUID(frame.inbox["id"]))
    try:
        page = await _page(visit, frame.here, view)
    except NotFound as missing:
        if visit.request.query.text("after") or visit.request.query.text("before"):
            return visit.to(with_query(frame.here, **view))
        page, status, problem = NO_ROWS, missing.status, missing.message
    except Problem as wrong:
        if wrong.status >= 500:
            raise
        page, status, problem = NO_ROWS, wrong.status, wrong.message
    folder = view["folder"] or ("" if view["label"] else "inbox")
    label = frame.label(view["label"])
    heading = t("folder.inbox")
    if view["q"]:
        heading = t("threads.found")
    elif label is not None:
        heading = label["name"]
    elif has_text(f"folder.{folder}"):
        heading = t(f"folder.{folder}")
    return await visit.draw(
        "inboxes/threads.html",
        status=status,
        problem=problem,
        frame=frame,
        folders=FOLDERS,
        folder=folder,
        heading=heading,
        view=view,
        threads=page.rows,
        paging=page.paging,
        digest=digest,
        here=frame.here,
        shows_recipients=folder == "sent",
        everything=with_query(frame.here, folder=view["folder"], label=view["label"], q=view["q"]),
        unread_only=with_query(
            frame.here, folder=view["folder"], label=view["label"], q=view["q"], unread="1"
        ),
    )


async def _page(visit: Visit, here: str, view: Mapping[str, str | None]) -> ThreadRows:
    """Return the threads that the address asks for. Raises the Problem of the API."""
    after, before = visit.request.query.text("after"), visit.request.query.text("before")
    before = None if after else before
    asked: dict[str, Any] = search_parameters(view["q"]) if view["q"] else {}
    path = f"{inbox_path(visit)}/threads/search" if asked else f"{inbox_path(visit)}/threads"
    if view["unread"]:
        asked["read"] = "false"
    asked |= {"folders": _folders(view), "labels": view["label"]}
    answer = await visit.get(path, **asked, limit=ROWS, after=after, before=before)
    rows, more = answer["data"], answer["has_more"]
    if not rows:
        return NO_ROWS
    has_newer, has_older = (more, True) if before else (after is not None, more)
    newer = with_query(here, **view, before=rows[0]["id"]) if has_newer else None
    older = with_query(here, **view, after=rows[-1]["id"]) if has_older else None
    return ThreadRows(rows, PageLinks(newer, older))


def _folders(view: Mapping[str, str | None]) -> str:
    """Return the folders to list. A search and a label go beyond the folder `inbox`."""
    if view["q"] or view["label"]:
        return view["folder"] if view["folder"] in ("spam", "trash") else EVERYWHERE
    return view["folder"] or "inbox"


async def _change_each(visit: Visit, ids: Sequence[str], body: Mapping[str, Any]) -> Problem | None:
    """Change each thread; return the first refusal. One that is gone meanwhile is left out among several."""
    refused = None
    for thread_id in ids:
        try:
            await visit.patch(f"{inbox_path(visit)}/threads/{thread_id}", body)
        except Problem as problem:
            if problem.status >= 500:
                raise
            if len(ids) == 1 or not isinstance(problem, NotFound) or "label_id" in body:
                refused = refused or problem
    return refused
