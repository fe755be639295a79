"""The mail of a broadcast with the clicks of each link, and its recipients as a file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from html import escape, unescape
from typing import Any, Final

from pillarbox.dashboard import mail_html
from pillarbox.dashboard.broadcasts.broadcast_list import ONE
from pillarbox.dashboard.broadcasts.report import TYPES, links_of
from pillarbox.dashboard.emails.mail_frame import FRAME_HEADERS
from pillarbox.dashboard.frame.csv_file import MEDIA, lines
from pillarbox.dashboard.frame.screens import download, screen
from pillarbox.dashboard.frame.times import percent
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.page_work import PageWork
from pillarbox.kernel.http.request import Html, Reply

MOST_ROWS: Final = 100_000
PAGE_ROWS: Final = 100
COLUMNS: Final = ("email", "contact_id", "count", "bounce_type", "clicked_links")

_LINK: Final = re.compile(r'<a\b(?:[^>"]|"[^"]*")*>')
_HREF: Final = re.compile(r'\bhref="([^"]*)"')
BADGE: Final = (
    '<span style="display:inline-block;margin:0 .35em 0 0;padding:0 .45em;border-radius:9px;'
    "font:600 12px/1.7 system-ui,sans-serif;color:#1b1f24;text-decoration:none;"
    'background:rgb(255,{green},{blue})">{share}</span>'
)


@screen(f"{ONE}/heat/html", title="broadcast.heat")
async def heat(visit: Visit) -> Reply[Html]:
    """Show the mail for a sandboxed frame, with the share of all clicks beside each link."""
    broadcast_id = visit.request.uuid("broadcast_id")
    broadcast = await visit.get(f"/broadcasts/{broadcast_id}", shown=False)
    links = await links_of(visit, str(broadcast_id))
    clicks = {str(link["url"]): int(link["clicks"]) for link in links}
    work = visit.request.use(PageWork)

    def drawn() -> str:
        shown = mail_html.with_pictures(work.cleaned(broadcast["html"] or ""), mail_html.no_pictures)
        return mail_html.document(replace(shown, body=with_clicks(shown.body, clicks)))

    document = await work.do(visit.team_id, drawn, visit.request.is_client_gone)
    return Reply.html(document, 200, FRAME_HEADERS)


def with_clicks(body: str, clicks: Mapping[str, int]) -> str:
    """Return cleaned HTML with a badge in each link to the web: its share of all clicks."""
    total, most = sum(clicks.values()), max(clicks.values(), default=0)

    def badged(match: re.Match[str]) -> str:
        href = _HREF.search(match[0])
        url = unescape(href[1]).strip() if href else ""
        if not url.startswith(("http://", "https://")):
            return match[0]
        count = clicks.get(url, 0)
        warmth = count / most if most else 0.0
        badge = BADGE.format(
            share=escape(percent(count, total)),
            green=235 - round(95 * warmth),
            blue=215 - round(195 * warmth),
        )
        return f"{match[0]}{badge}"

    return _LINK.sub(badged, body)


@download(f"{ONE}/csv", title="broadcast.csv", query={"type": str})
async def save_csv(visit: Visit) -> Reply[Html]:
    """Save the recipients to whom something happened, bounded."""
    kind = visit.request.query.text("type") or "sent"
    kind = kind if kind in TYPES else "sent"
    broadcast_id = visit.request.uuid("broadcast_id")
    first = await visit.get(f"/broadcasts/{broadcast_id}/recipients", type=kind, limit=PAGE_ROWS)
    return visit.save(f"broadcast-{kind}.csv", csv_parts(visit, kind, first), MEDIA)


async def csv_parts(visit: Visit, kind: str, page: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """Yield the file in pieces of a page. No transaction is open while the browser reads."""
    yield lines([list(COLUMNS)])
    path = f"/broadcasts/{visit.request.uuid('broadcast_id')}/recipients"
    for _ in range(MOST_ROWS // PAGE_ROWS):
        yield lines([_cells(row) for row in page["data"]])
        if not page["has_more"]:
            return
        after = page["data"][-1]["id"]
        page = await visit.get(path, shown=False, type=kind, limit=PAGE_ROWS, after=after)


def _cells(row: Mapping[str, Any]) -> list[Any]:
    links = " ".join(f"{link['url']} ({link['clicks']})" for link in row.get("clicked_links") or ())
    return [row["email"], row["contact_id"] or "", row.get("count", ""), row.get("bounce_type", ""), links]
