"""The HTML of an email as the document of a sandboxed frame."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard import mail_html
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.page_work import PageWork
from pillarbox.kernel.http.request import Html, Reply

FRAME_HEADERS: Final = {
    "content-security-policy": f"{mail_html.POLICY.format(images='data:')}; "
    "sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def mail_frame(visit: Visit, html: str) -> Reply[Html]:
    """Return the cleaned HTML as a document. Only pictures that stand in it as data are shown.

    Raises ServerOverloaded where too many pages are being made.
    """
    work = visit.request.use(PageWork)

    def drawn() -> str:
        return mail_html.document(mail_html.with_pictures(work.cleaned(html), mail_html.no_pictures))

    document = await work.do(visit.team_id, drawn, visit.request.is_client_gone)
    return Reply.html(document, 200, FRAME_HEADERS)
