"""The pages behind share links (emails.md 5.3)."""

from __future__ import annotations

from urllib.parse import unquote

from pillarbox.dashboard import mail_html, pages
from pillarbox.emails.shared_page import SharedEmail
from pillarbox.kernel.http import Html, Reply

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

    def email(self, shared: SharedEmail) -> Reply[Html]:
        frame, left_out = None, 0
        if shared.html is not None:
            shown = mail_html.clean(shared.html, lambda cid: shared.pictures.get(unquote(cid)))
            frame, left_out = mail_html.document(shown), shown.left_out
        return pages.page("shared.html", headers=HEADERS, mail=shared, frame=frame, left_out=left_out)

    def expired(self) -> Reply[Html]:
        return _said("This link has expired", "Ask the sender of the link for a new one.", 410)

    def unknown(self) -> Reply[Html]:
        return _said("There is nothing behind this link", "It may be incomplete: copy the whole of it.", 404)


def _said(title: str, text: str, status: int) -> Reply[Html]:
    reply = pages.message_page(title, text, status=status)
    reply.headers.update(HEADERS)
    return reply
