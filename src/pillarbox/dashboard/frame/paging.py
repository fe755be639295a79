"""Links between the pages of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pillarbox.dashboard.frame.visit import Visit, with_query

ROWS = 40


class PageLinks(NamedTuple):
    """The addresses of the newer and the older page of a list; None where there is none."""

    newer: str | None
    older: str | None


class ListPage(NamedTuple):
    """One page of a list of the API: its rows as dicts, and the links to its neighbours."""

    rows: Sequence[Mapping[str, Any]]
    paging: PageLinks


async def list_page(visit: Visit, api_path: str, screen_path: str, **filters: str | None) -> ListPage:
    """Return the page of a list that the address of the screen asks for.

    The screen's parameters `after` and `before` are the API's cursors. `filters` go to the API and stay in
    the links.
    """
    after, before = visit.request.query.text("after"), visit.request.query.text("before")
    if after:
        before = None
    query: dict[str, Any] = {**filters, "limit": ROWS, "after": after, "before": before}
    answer = await visit.get(api_path, **query)
    rows, more = answer["data"], answer["has_more"]
    if not rows:
        return ListPage(rows, PageLinks(None, None))
    has_newer = more if before else after is not None
    has_older = True if before else more
    newer = with_query(screen_path, **filters, before=rows[0]["id"]) if has_newer else None
    older = with_query(screen_path, **filters, after=rows[-1]["id"]) if has_older else None
    return ListPage(rows, PageLinks(newer, older))
