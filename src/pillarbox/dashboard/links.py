"""The links of a mail with where they really lead, so that nobody has to trust their text (UI-08)."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from pillarbox.dashboard import mail_html
from pillarbox.mail.html.nesting import AllowedElements, nested

MOST = 200
LONGEST_TEXT = 200
SCHEMES = frozenset({"http", "https", "mailto"})

LINKS_ALONE = AllowedElements({"a"}, {"a": {"href"}}, mail_html.EMPTIED)
"""Without other elements no link can stand inside of another."""

_SITE = re.compile(r"(?:https?://)?((?:[\w-]{1,63}\.){1,8}[a-z]{2,24})(?=[/:?#\s]|$)", re.IGNORECASE)


class MailLink(NamedTuple):
    """One link. `opens` is False where its scheme is none that a mail may open; `warning` is a sentence."""

    text: str
    target: str
    opens: bool
    warning: str | None


def links(html: str) -> list[MailLink]:
    """Return the links of an HTML body in their order, without repetitions."""
    tree = LexborHTMLParser(nested(mail_html.without_data(html), LINKS_ALONE).body)
    found: dict[MailLink, None] = {}
    node = tree.body.child if tree.body is not None else None
    while node is not None and len(found) < MOST:
        target = (node.attributes.get("href") or "").strip() if node.is_element_node else ""
        if target and not target.startswith("#"):
            found[_link(" ".join(node.text().split())[:LONGEST_TEXT], target)] = None
        node = node.next
    return list(found)


def _link(text: str, target: str) -> MailLink:
    scheme, host = _parts(target)
    if scheme not in SCHEMES:
        return MailLink(text, target, False, "This kind of link is not opened.")
    if scheme == "mailto":
        return MailLink(text, target, True, None)
    if not host.isascii() or any(label.startswith("xn--") for label in host.split(".")):
        return MailLink(text, target, True, "The host has letters that can look like others.")
    claimed = _SITE.match(text)
    if claimed and _site(claimed[1]) != _site(host):
        return MailLink(text, target, True, f"The text names {claimed[1].lower()}, the link leads to {host}.")
    return MailLink(text, target, True, None)


def _parts(target: str) -> tuple[str, str]:
    try:
        parts = urlsplit(target)
        return parts.scheme.lower(), (parts.hostname or "").lower()
    except ValueError:
        return "", ""


def _site(host: str) -> str:
    return host.lower().removeprefix("www.")
