"""A list of threads that is read when it is news: the query parameters `wait` and `after_change`.

`change` names the state of a page: it is made of what the page shows. So it is the same in every process and
after every restart, and another one as soon as the page shows something else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from pillarbox.inboxes.paths import PARAMETER
from pillarbox.inboxes.threads import wire
from pillarbox.inboxes.waiting.waiters import Waiters, WaitingRequest
from pillarbox.kernel.http.request import Request
from pillarbox.kernel.wire.problems import InvalidParameter
from pillarbox.kernel.wire.query import Query

LONGEST_WAIT: Final = 60
LONGEST_CHANGE: Final = 64
WAIT_REASON: Final = f"Use a number of seconds from 0 to {LONGEST_WAIT}."
CHANGE_REASON: Final = "Use the `change` of an earlier answer."

WAITING_FOR: Final[dict[str, Any]] = {
    "wait": Annotated[int, Meta(ge=0, le=LONGEST_WAIT)],
    "after_change": Annotated[str, Meta(max_length=LONGEST_CHANGE)],
}
"""The query parameters."""

_CHANGE_OCTETS: Final = 12

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """`seconds` is None where the caller asks for nothing of this; `after_change` is the state it knows."""

    seconds: int | None
    after_change: str | None

    @classmethod
    def read(cls, query: Query) -> WaitOptions:
        """Return the wait that a query asks for; a 422 names the parameter that is wrong."""
        seconds = query.integer("wait", WAIT_REASON)
        if seconds is not None and seconds > LONGEST_WAIT:
            raise InvalidParameter("wait", WAIT_REASON)
        after_change = query.text("after_change")
        if after_change is not None and len(after_change) > LONGEST_CHANGE:
            raise InvalidParameter("after_change", CHANGE_REASON)
        if seconds is None and after_change is not None:
            seconds = 0
        return cls(seconds, after_change)


async def awaited(
    request: Request,
    wait: WaitOptions,
    key: Hashable,
    find: Callable[[], Awaitable[UUID]],
    read: Callable[[UUID], Awaitable[wire.ThreadList]],
) -> wire.ThreadList:
    """Return the page of the inbox: at once without a wait, else as soon as its state is not `after_change`.
    Where no state is named, as soon as it shows a thread. Requests with an equal `key` are shown the same
    page."""
    if wait.seconds is None:
        return await read(await find())
    waiters, team_id = request.use(Waiters), request.known.team_id
    inbox_id = await waiters.readings.read((team_id, request.param(PARAMETER)), find)

    async def with_change() -> wire.ThreadList:
        page = await read(await find())
        page.change = change_of(page)
        return page

    def is_news(page: wire.ThreadList) -> bool:
        return page.change != wait.after_change if wait.after_change else bool(page.data)

    found = WaitingRequest(
        team_id=team_id,
        inbox_id=inbox_id,
        page=key,
        seconds=float(wait.seconds),
        is_gone=request.is_client_gone,
    )
    return await waiters.first(found, with_change, is_news)


def change_of(page: wire.ThreadList) -> str:
    """Return the name of what the page shows."""
    digest = hashlib.blake2b(_encode([page.has_more, page.data]), digest_size=_CHANGE_OCTETS)
    return base64.urlsafe_b64encode(digest.digest()).decode()
