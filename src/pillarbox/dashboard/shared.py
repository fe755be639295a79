"""The pages behind share links (emails.md 5.3)."""

from __future__ import annotations

from urllib.parse import unquote
from uuid import UUID

from pillarbox.dashboard import mail_html, pages
from pillarbox.dashboard.page_work import PageWork
from pillarbox.emails.sharing.shared_page import SharedEmail
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.kernel.work.team_turns import IsGone

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""A `srcdoc` frame inherits its page's policy, so styles of the mail must be allowed by the page."""


class SharedPages:
    """Draws an email for whoever has its link: read-only, no scripts, nothing to download."""

    def __init__(self, work: PageWork) -> None:
        self._work = work

    async def email(self, team_id: UUID, shared: SharedEmail, is_gone: IsGone) -> Reply[Html]:
        return await self._work.do(team_id, lambda: self._drawn(shared), is_gone)

    def _drawn(self, shared: SharedEmail) -> Reply[Html]:
        frame, left_out, is_cut = None, 0, False
        if shared.html is not None:
            found = self._work.cleaned(shared.html)
            shown = mail_html.with_pictures(found, lambda cid: shared.pictures.get(unquote(cid)))
            frame, left_out, is_cut = mail_html.document(shown), shown.left_out, shown.is_cut
        text, text_is_cut = pages.beginning(shared.text)
        return pages.page(
            "shared.html",
            headers=HEADERS,
            mail=shared,
            frame=frame,
            left_out=left_out,
            is_cut=is_cut,
            text=text,
            text_is_cut=text_is_cut,
        )

    def busy(self, problem: ServerOverloaded) -> Reply[Html]:
        reply = _said("This page is busy", problem.message, problem.status)
        reply.headers.update(problem.headers)
        return reply

    def expired(self) -> Reply[Html]:
        return _said("This link has expired", "Ask the sender of the link for a new one.", 410)

    def unknown(self) -> Reply[Html]:
        return _said("There is nothing behind this link", "It may be incomplete: copy the whole of it.", 404)


def _said(title: str, text: str, status: int) -> Reply[Html]:
    reply = pages.message_page(title, text, status=status)
    reply.headers.update(HEADERS)
    return reply
