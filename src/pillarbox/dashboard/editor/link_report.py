"""The links of a mail that is not sent yet, with what their checks found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.editor.edited_thing import EditedContent
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.page_work import PageWork
from pillarbox.documents.link_checks.checks import CheckedLink, LinkChecks, checked_links
from pillarbox.documents.link_checks.mail_links import MOST_LINKS, MailLinks, MailPart, links_of

SHOWN: Final = 25
"""Links that are shown one by one; the others are counted."""

LONGEST_SHOWN: Final = 200
CLOSED: Final = "closed"
"""The status of what a server shows to no program. People may see it, so nothing is called broken."""

LEVELS: Final[Mapping[str, str]] = {
    "broken": "warning",
    "refused": "warning",
    "unreachable": "warning",
    CLOSED: "advice",
    "waiting": "advice",
    "": "advice",
    "ok": "ok",
}
"""How each status is shown, what needs attention first; "" is that nobody has asked."""


class ShownLink(NamedTuple):
    """One link as it is shown. `reason` names a text, which has the number `http_status`."""

    url: str
    status: str
    level: str
    reason: str | None
    http_status: int | None
    checked_at: str | None


class LinkReport(NamedTuple):
    """The links of a mail as they are shown. `most` is how many are checked where it has more, else 0;
    `unshown` are counted only. `is_waiting`: some wait for their check."""

    shown: Sequence[ShownLink]
    unshown: int
    most: int
    is_waiting: bool


async def report_of(visit: Visit, parts: Sequence[MailPart]) -> LinkReport:
    """Return the links of a mail, or of its variants, what needs attention first."""
    links = await _links(visit, parts)
    shown = [_shown(link) for link in await checked_links(visit.db, links)]
    order = list(LEVELS)
    shown.sort(key=lambda link: order.index(link.status))
    return LinkReport(
        shown=shown[:SHOWN],
        unshown=len(shown[SHOWN:]),
        most=MOST_LINKS if links.has_more else 0,
        is_waiting=any(link.status == "waiting" for link in shown),
    )


async def begin(visit: Visit, parts: Sequence[MailPart]) -> None:
    """Let a job check the links of a mail that were not checked within the last hour; raises TooMany."""
    links = await _links(visit, parts)
    await visit.request.use(LinkChecks).begin(visit.db, links)


def parts_of(content: EditedContent) -> Sequence[MailPart]:
    """Return what the editor has, as links are read from it."""
    declared = {
        str(entry["key"]): str(entry["fallback_value"])
        for entry in content.variables
        if entry["fallback_value"] is not None
    }
    return [MailPart(content.html, content.text or "", declared)]


def parts_of_broadcast(broadcast: Mapping[str, Any], plan: Mapping[str, Any]) -> Sequence[MailPart]:
    """Return the bodies of a broadcast, or those of its variants."""
    bodies = [broadcast]
    if plan["ab_test"] and plan["ab_test"]["variants"]:
        bodies = [
            variant if variant["html"] or variant["text"] else broadcast
            for variant in plan["ab_test"]["variants"]
        ]
    return [MailPart(body["html"] or "", body["text"] or "", {}) for body in bodies]


async def _links(visit: Visit, parts: Sequence[MailPart]) -> MailLinks:
    work = visit.request.use(PageWork)
    return await work.do(visit.team_id, lambda: links_of(parts), visit.request.is_client_gone)


def _shown(link: CheckedLink) -> ShownLink:
    known = link.known
    status = "" if known is None else known.status
    if known is not None and known.reason == "not_for_programs":
        status = CLOSED
    url = link.url if len(link.url) <= LONGEST_SHOWN else f"{link.url[:LONGEST_SHOWN]}…"
    return ShownLink(
        url=url,
        status=status,
        level=LEVELS[status],
        reason=None if known is None else known.reason,
        http_status=None if known is None else known.http_status,
        checked_at=None if known is None or known.checked_at is None else known.checked_at.isoformat(),
    )
