"""Asks the server of one link whether it leads somewhere.

HEAD comes first, and GET where the server does not know HEAD. No body is read. Redirects are followed to a
bound, and `Outbound` checks the address of each of them. What a server says to a program and not to people
is told apart: many refuse programs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound

LinkStatus = Literal["ok", "broken", "unreachable", "refused"]

SECONDS: Final = 8.0
"""All that one link may take, redirects and a second method included."""

LIMITS: Final = HttpLimits(max_bytes=0, connect=5.0, total=SECONDS, redirects=5, is_head_enough=True)
WITHOUT_HEAD: Final = (405, 501)
NOT_FOR_PROGRAMS: Final = (401, 403, 407, 429, 503, 999)
"""Statuses by which servers keep programs away whose pages people may see."""

REFUSED: Final[Mapping[str, LinkStatus]] = {"refused": "refused", "redirects": "broken", "url": "broken"}
"""The status for kinds of failures other than the silence of a server."""


class LinkResult(NamedTuple):
    """The outcome of a check. `reason` names a sentence; `http_status` is the last answer's, if any came."""

    status: LinkStatus
    reason: str | None = None
    http_status: int | None = None


async def asked(outbound: Outbound, url: str) -> LinkResult:
    """Return what the server says of a link; never raises for what a server does."""
    try:
        async with asyncio.timeout(SECONDS):
            answer = await outbound.fetch("HEAD", url, LIMITS)
            if answer.status in WITHOUT_HEAD:
                answer = await outbound.fetch("GET", url, LIMITS)
    except TimeoutError:
        return LinkResult("unreachable", "timeout")
    except FetchError as failure:
        return LinkResult(REFUSED.get(failure.kind, "unreachable"), failure.kind)
    if answer.status < 400:
        return LinkResult("ok", None, answer.status)
    if answer.status in NOT_FOR_PROGRAMS:
        return LinkResult("broken", "not_for_programs", answer.status)
    return LinkResult("broken", "answer", answer.status)
