"""The real mail beside the editor: as a contact gets it, by day and by night, or its text part."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.dashboard import mail_html
from pillarbox.dashboard.emails.mail_frame import FRAME_HEADERS
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.page_work import PageWork
from pillarbox.documents.rendering import RenderedDocument
from pillarbox.emails.requests.templating import ContactSource
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.placeholders.contact_values import ContactValues
from pillarbox.mail.placeholders.parsing import filled, links
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.document_changes import used_variables
from pillarbox.templates.mail import RenderedMail, render
from pillarbox.templates.variables import DeclaredVariable, Scalar, Variable

NO_LINK: Final = "#"
_FRAMED: Final = {**FRAME_HEADERS, "x-frame-options": "SAMEORIGIN"}
_NO_ID: Final = UUID(int=0)
_NO_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
LONGEST: Final = 2 * 1024 * 1024
_NIGHT: Final = re.compile(r"\(\s*prefers-color-scheme\s*:\s*dark\s*\)", re.IGNORECASE)
_ALWAYS: Final = "(min-width:0px)"
_NEVER: Final = "(max-width:0px)"
_IMAGE: Final = re.compile(r"/i/[A-Za-z0-9._-]{1,120}")


class PreviewLook(NamedTuple):
    """For whom the mail is shown, and how: `contact` is an address, `view` is `html` or `text`."""

    contact: str = ""
    is_dark: bool = False
    view: str = "html"


EXAMPLE: Final = ContactValues(email="ada@quay.example", first_name="Ada", last_name="Quill")
"""The contact of a team that has chosen none."""


def look_of(values: Mapping[str, str]) -> PreviewLook:
    """Return what the fields of a form or an address ask for."""
    view = "text" if values.get("view") == "text" else "html"
    return PreviewLook(values.get("contact", "").strip()[:320], values.get("mode") == "dark", view)


async def contact_values(visit: Visit, address: str) -> ContactValues:
    """Return the values of the contact of an address; of the example where it is none."""
    if not address:
        return EXAMPLE
    try:
        key = email_address(address).address
    except NotAnAddress:
        return EXAMPLE
    found = await visit.request.use(ContactSource).values(visit.db, {key})
    return found.get(key) or ContactValues(email=address)


def personal_mail(
    mail: RenderedDocument,
    subject: str | None,
    variables: Sequence[Mapping[str, Any]],
    contact: ContactValues,
) -> RenderedMail:
    """Return the mail as the contact gets it. Variables without a value show their names."""
    declared = [_variable(entry) for entry in variables]
    known = {variable.key for variable in declared}
    declared += [
        _declared(DeclaredVariable(key, "string", None))
        for key in used_variables(subject, mail.html, mail.text)
        if key not in known
    ]
    given: dict[str, Scalar] = {
        variable.key: f"[{variable.key}]" if variable.type == "string" else 1
        for variable in declared
        if variable.fallback_value is None
    }
    content = TemplateContent(
        sender=None,
        subject=subject,
        reply_to=None,
        html=mail.html,
        text=mail.text,
        variables=tuple(declared),
    )
    return render(content, None, given, contact, "variables")


async def preview_frame(
    visit: Visit,
    mail: RenderedDocument,
    subject: str | None,
    variables: Sequence[Mapping[str, Any]],
    look: PreviewLook,
) -> Reply[Html]:
    """Return the mail as the document of a sandboxed frame."""
    contact = await contact_values(visit, look.contact)
    work, origin = visit.request.use(PageWork), visit.request.use(ScreenTable).public_url
    html_of_text = _text_document if look.view == "text" else None

    def drawn() -> str:
        personal = personal_mail(mail, subject, variables, contact)
        if html_of_text is not None:
            return html_of_text(filled(personal.text or "", links(NO_LINK, is_html=False)))
        return shown_mail(work, filled(personal.html, links(NO_LINK, is_html=True)), origin, look)

    document = await work.do(visit.team_id, drawn, visit.request.is_client_gone)
    policy = FRAME_HEADERS["content-security-policy"].replace("img-src data:", f"img-src data: {origin}")
    return Reply.html(document, 200, {**_FRAMED, "content-security-policy": policy})


def problem_frame(problem: Problem) -> Reply[Html]:
    """Return what is wrong with the document, in the frame of its mail."""
    return Reply.html(_text_document(problem.message), problem.status, _FRAMED)


def shown_mail(work: PageWork, html: str, origin: str, look: PreviewLook) -> str:
    """Return the mail's HTML as a whole document; the team's own pictures are shown, others are not."""
    own = html[:LONGEST].replace(f'src="{origin}/i/', 'src="cid:/i/')

    def picture(cid: str) -> str | None:
        return f"{origin}{cid}" if _IMAGE.fullmatch(cid) else None

    shown = mail_html.with_pictures(work.cleaned(own), picture)
    document = mail_html.document(shown, f"data: {origin}")
    return _NIGHT.sub(_ALWAYS if look.is_dark else _NEVER, document)


def _text_document(text: str) -> str:
    return (
        '<!doctype html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        "<style>body{margin:16px;font:14px/1.6 ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap;"
        f"overflow-wrap:anywhere}}</style></head><body>{escape(text)}</body></html>"
    )


def _variable(entry: Mapping[str, Any]) -> Variable:
    return _declared(DeclaredVariable(entry["key"], entry["type"], entry["fallback_value"]))


def _declared(declared_variable: DeclaredVariable) -> Variable:
    return Variable(
        id=_NO_ID,
        key=declared_variable.key,
        type=declared_variable.type,
        fallback_value=declared_variable.fallback_value,
        created_at=_NO_TIME,
        updated_at=_NO_TIME,
    )
