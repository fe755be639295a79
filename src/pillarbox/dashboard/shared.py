"""The pages behind share links (emails.md 5.3)."""

from __future__ import annotations

from contextvars import copy_context
from urllib.parse import unquote
from uuid import UUID

from pillarbox.dashboard import mail_html, pages
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.texts import t, use_language
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

    def speak(self, accepted: str | None) -> None:
        use_language(None, accepted)

    async def email(self, team_id: UUID, shared: SharedEmail, is_gone: IsGone) -> Reply[Html]:
        # The thread draws in the language of this request.
        context = copy_context()
        return await self._work.do(team_id, lambda: context.run(self._drawn, shared), is_gone)

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
        reply = _said(t("shared.busy"), t("shared.busy.text"), problem.status)
        reply.headers.update(problem.headers)
        return reply

    def expired(self) -> Reply[Html]:
        return _said(t("shared.expired"), t("shared.expired.text"), 410)

    def unknown(self) -> Reply[Html]:
        return _said(t("recipient.no_link"), t("recipient.no_link.text"), 404)


def _said(title: str, text: str, status: int) -> Reply[Html]:
    reply = pages.message_page(title, text, status=status)
    reply.headers.update(HEADERS)
    return reply
