"""The HTML of an email as the document of a sandboxed frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pillarbox.dashboard import mail_html, mail_quotes
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply

OF_THE_MAIL: Final = "data:"
FROM_ELSEWHERE: Final = "data: https: http:"
"""Where pictures may come from, as CSP says it."""


def policy_with(images: str) -> str:
    """Return the Content-Security-Policy of a mail's document; `images` are the sources of its pictures."""
    return (
        f"{mail_html.POLICY.format(images=images)}; "
        "sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'"
    )


FRAME_HEADERS: Final = {
    "content-security-policy": policy_with(OF_THE_MAIL),
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def mail_frame(
    visit: Visit, html: str, *, folds_quotes: bool = False, with_remote: bool = False
) -> Reply[Html]:
    """Return the cleaned HTML as a document. Only pictures that stand in it as data are shown, `with_remote`
    also those of other servers.

    Raises ServerOverloaded where too many pages are being made.
    """
    work = visit.request.use(PageWork)
    images = FROM_ELSEWHERE if with_remote else OF_THE_MAIL
    label = t("conversation.quote")

    def drawn() -> str:
        clean = work.cleaned_with_remote(html) if with_remote else work.cleaned(html)
        shown = mail_html.with_pictures(clean, mail_html.no_pictures)
        if folds_quotes:
            styles = f"{mail_quotes.STYLE}{shown.styles}"
            shown = replace(shown, body=mail_quotes.with_folded_quotes(shown.body, label), styles=styles)
        return mail_html.document(shown, images)

    document = await work.do(visit.team_id, drawn, visit.request.is_client_gone)
    return Reply.html(document, 200, {**FRAME_HEADERS, "content-security-policy": policy_with(images)})
