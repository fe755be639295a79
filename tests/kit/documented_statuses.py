"""Every answer that a test gets is one that `/openapi.json` lists for its route (API-01)."""

from __future__ import annotations

import httpx

from pillarbox.kernel.http.openapi import statuses_of
from pillarbox.kernel.http.routing import Route, RouteTable
from pillarbox.kernel.wire.problems import Problem


class DocumentedStatuses:
    """Checks the answers that a client of a world gets; a status that is not documented fails the test."""

    def __init__(self, table: RouteTable) -> None:
        self._table = table

    async def check(self, answer: httpx.Response) -> None:
        request = answer.request
        if request.headers["host"] != request.url.netloc.decode("ascii"):
            return  # Under other names, such as those of tracked links, there are other routes.
        path = request.url.raw_path.decode("ascii").partition("?")[0]
        try:
            entry, _ = self._table.match(request.method, path)
        except Problem:
            return  # There is no such route, so the document says nothing.
        assert answer.status_code in documented(entry), (
            f"{entry.method} {entry.path} answered {answer.status_code}, which /openapi.json does not list:"
            " name it in `problems` of the route"
        )


def documented(entry: Route) -> set[int]:
    """Return the statuses that the document lists for a route."""
    return {entry.status, *entry.also, *statuses_of(entry)}
