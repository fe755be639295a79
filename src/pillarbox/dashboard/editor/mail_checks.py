"""Checks of a mail before it is sent: of its document, and the insights of emails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pillarbox.documents.colors import contrast
from pillarbox.documents.rendering import RenderedDocument
from pillarbox.documents.theme import Theme
from pillarbox.emails.insights.rules import ReadEmail, judged
from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.mail.placeholders.parsing import CONTACT_PATH, RESERVED, UNSUBSCRIBE_URL, placeholders

APPLIED: Final = ("link_texts", "html_size", "text_part", "image_texts", "sender_address")
"""The insights of emails that can be told from a document."""
NORMAL_CONTRAST: Final = 4.5
BUTTON_CONTRAST: Final = 3.0
LONGEST_SUBJECT: Final = 70
MOST_NAMED: Final = 4
PERSONAL: Final = frozenset(("FIRST_NAME", "LAST_NAME", "contact.first_name", "contact.last_name"))


class MailCheck(NamedTuple):
    """One result: `code` names its text, `level` is `ok`, `advice` or `warning`. `message` is a sentence of
    the API in place of the text."""

    code: str
    level: str
    values: Mapping[str, Any]
    message: str | None = None


class CheckedMail(NamedTuple):
    """A mail before it is sent: what is rendered, and what is said beside it. `is_bulk`: it goes to many."""

    mail: RenderedDocument
    subject: str
    sender: str
    variables: Sequence[Mapping[str, Any]]
    theme: Theme
    kind: str
    is_bulk: bool


def checks_of(checked: CheckedMail) -> list[MailCheck]:
    """Return what the checks say, what needs attention first."""
    found = [*_own(checked), *_insights(checked)]
    order = {"warning": 0, "advice": 1, "ok": 2}
    return sorted(found, key=lambda check: order[check.level])


def _own(checked: CheckedMail) -> Iterator[MailCheck]:
    yield from _placeholders(checked)
    mail = checked.mail
    has_link = any(name in mail.html for name in UNSUBSCRIBE_URL)
    if has_link:
        yield MailCheck("unsubscribe", "ok", {})
    else:
        yield MailCheck("no_unsubscribe", "warning" if checked.is_bulk else "advice", {})
    subject = checked.subject.strip()
    if not subject:
        yield MailCheck("no_subject", "warning", {})
    elif len(subject) > LONGEST_SUBJECT:
        yield MailCheck("long_subject", "advice", {"count": len(subject)})
    if checked.kind in ("blocks", "markdown"):
        theme = checked.theme
        ratio = contrast(theme.text.lower(), theme.card.lower())
        yield MailCheck(
            "contrast", "ok" if ratio >= NORMAL_CONTRAST else "warning", {"ratio": f"{ratio:.1f}"}
        )
        button = contrast(theme.accent.lower(), theme.card.lower())
        if button < BUTTON_CONTRAST:
            yield MailCheck("button_contrast", "advice", {"ratio": f"{button:.1f}"})
    if "http://" in mail.html.replace("http://www.w3.org", ""):
        yield MailCheck("plain_links", "advice", {})


def _placeholders(checked: CheckedMail) -> Iterator[MailCheck]:
    """Yield what is wrong with placeholders: nothing is declared for one, or it has no fallback."""
    declared = {str(entry["key"]): entry["fallback_value"] for entry in checked.variables}
    undeclared: dict[str, None] = {}
    without: dict[str, None] = {}
    for part in (checked.subject, checked.mail.html, checked.mail.text or ""):
        for placeholder in placeholders(part):
            name = placeholder.name
            if placeholder.fallback is not None or name in UNSUBSCRIBE_URL or name == "EMAIL":
                continue
            if name in PERSONAL or name.startswith(CONTACT_PATH):
                without[name] = None
            elif name in RESERVED:
                continue
            elif name not in declared:
                undeclared[name] = None
            elif declared[name] is None:
                without[name] = None
    if undeclared:
        yield MailCheck("undeclared", "warning", {"names": _some(undeclared)})
    if without:
        yield MailCheck("no_fallback", "advice", {"names": _some(without)})
    if not undeclared and not without:
        yield MailCheck("placeholders", "ok", {})


def _insights(checked: CheckedMail) -> Iterator[MailCheck]:
    try:
        sender = parse_mailbox(checked.sender)
        name, host = sender.local, sender.domain
    except AddressError:
        name, host = "", ""
    text = checked.mail.text if checked.mail.text is not None else text_of(checked.mail.html)
    email = ReadEmail(
        sender_host=host,
        sender_name=name.lower(),
        signs_for=None,
        html=checked.mail.html,
        text=text,
        headers={},
        is_bulk=checked.is_bulk,
        has_own_unsubscribe=True,
    )
    for insight in judged(email):
        if insight.code in APPLIED and (host or insight.code != "sender_address"):
            yield MailCheck(insight.code, insight.level, {}, insight.message)


def _some(names: Mapping[str, None]) -> str:
    shown = ", ".join(list(names)[:MOST_NAMED])
    return f"{shown} …" if len(names) > MOST_NAMED else shown
