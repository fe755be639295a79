"""Insights: all that mailbox providers and readers may hold against an email, as rules over what is stored.

Nothing is asked of DNS or of other servers, so the same email gives the same insights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from pillarbox.domains.names import registrable
from pillarbox.mail.deception.link_hosts import shown_host, web_host
from pillarbox.mail.html.nesting import AllowedElements, nested

CLIPPED_FROM: Final = 102_000
"""Gmail shows only so many octets of an HTML part."""
MOST_SHOWN: Final = 3
"""So many hosts or texts stand in a sentence."""
LONGEST_TEXT: Final = 200
NO_REPLY: Final = ("noreply", "donotreply", "nichtantworten", "nepasrepondre")

Level = Literal["ok", "advice", "warning"]
LEVELS: Final = ("warning", "advice", "ok")
_LINKS_AND_IMAGES: Final = AllowedElements(
    {"a", "img"},
    {"a": {"href"}, "img": {"alt", "src"}},
    {
        "script",
        "style",
        "title",
        "template",
        "noscript",
        "iframe",
        "object",
        "svg",
        "math",
        "textarea",
        "select",
    },
)
_WORD: Final = re.compile(r"[^a-z]")


class Insight(NamedTuple):
    """One rule applied to an email. `code` is a key of RULES; `message` is one sentence or two."""

    code: str
    level: Level
    message: str


class WebLink(NamedTuple):
    """A link to the web: its text and the host that it leads to, in lower case."""

    text: str
    host: str


@dataclass(frozen=True)
class ReadEmail:
    """An email as the rules see it. `signs_for` is the domain that signs it; None where none does."""

    sender_host: str
    sender_name: str
    signs_for: str | None
    html: str | None
    text: str | None
    headers: Mapping[str, str]
    is_bulk: bool
    has_own_unsubscribe: bool

    @cached_property
    def _tree(self) -> LexborHTMLParser:
        return LexborHTMLParser(nested(self.html or "", _LINKS_AND_IMAGES).body)

    @cached_property
    def links(self) -> Sequence[WebLink]:
        """Return the links of the HTML to the web, in its order."""
        found = []
        for node in self._tree.css("a[href]"):
            host = web_host(node.attributes.get("href") or "")
            if host and "{" not in host:
                found.append(WebLink(" ".join(node.text().split())[:LONGEST_TEXT], host))
        return found

    @cached_property
    def images(self) -> Sequence[str | None]:
        """Return the texts that stand for the images of the HTML; None where an image has none."""
        return [node.attributes.get("alt") for node in self._tree.css("img")]

    def is_own(self, host: str) -> bool:
        """Return whether a host belongs to the sender: to the same registrable domain."""
        return registrable(host) == registrable(self.sender_host)


def judged(email: ReadEmail) -> list[Insight]:
    """Return what every rule says about the email, what needs attention first."""
    found = [(code, rule(email)) for code, rule in RULES.items()]
    shown = [Insight(code, *verdict) for code, verdict in found if verdict is not None]
    return sorted(shown, key=lambda insight: LEVELS.index(insight.level))


Verdict = tuple[Level, str] | None
"""A level and its sentence; None where the rule does not apply."""


def _dmarc_alignment(email: ReadEmail) -> Verdict:
    host = email.sender_host
    if email.signs_for is None:
        return (
            "warning",
            f"No verified domain of this team signs for {host}, so DMARC cannot pass. Verify the domain.",
        )
    return "ok", f"DKIM signs for {email.signs_for}, the domain in From, so DMARC is aligned."


def _link_hosts(email: ReadEmail) -> Verdict:
    if not email.links:
        return None
    foreign = list(dict.fromkeys(link.host for link in email.links if not email.is_own(link.host)))
    if not foreign:
        return "ok", f"Every link leads to a host of {registrable(email.sender_host)}."
    return (
        "advice",
        f"Links lead to hosts of other domains than the sender's: {_some(foreign)}. Filters trust links to "
        "the sender's own domain more.",
    )


def _link_texts(email: ReadEmail) -> Verdict:
    if not email.links:
        return None
    wrong = [
        f"“{shown}” leads to {link.host}"
        for link in email.links
        if (shown := shown_host(link.text)) and registrable(shown) != registrable(link.host)
    ]
    if not wrong:
        return "ok", "No link shows another host than it leads to."
    return (
        "warning",
        f"The text of a link names another host: {_some(wrong)}. Filters take that for phishing.",
    )


def _html_size(email: ReadEmail) -> Verdict:
    if not email.html:
        return None
    size = len(email.html.encode("utf-8", "replace"))
    if size <= CLIPPED_FROM:
        return "ok", f"The HTML has {size / 1000:.1f} kB: Gmail shows all of it."
    return (
        "warning",
        f"The HTML has {size / 1000:.1f} kB: Gmail shows the first 102 kB, and hides the rest behind a link.",
    )


def _text_part(email: ReadEmail) -> Verdict:
    if not email.html and not email.text:
        return None
    if email.text:
        return "ok", "There is a text part, for programs and readers without HTML."
    return (
        "advice",
        "There is no text part. Add one: filters expect it beside HTML, and some readers need it.",
    )


def _image_texts(email: ReadEmail) -> Verdict:
    if not email.images:
        return None
    missing = sum(text is None for text in email.images)
    if not missing:
        return "ok", "Every image has an alternative text."
    count = f"{missing} of {len(email.images)} images have"
    return (
        "advice",
        f"{count} no alternative text (`alt`): readers who do not load images see nothing there.",
    )


def _sender_address(email: ReadEmail) -> Verdict:
    word = _WORD.sub("", email.sender_name)
    if word.startswith(NO_REPLY):
        return (
            "advice",
            f"The sender {email.sender_name}@{email.sender_host} says that nobody reads answers. An address "
            "that takes them builds trust.",
        )
    return "ok", "The sender's address does not refuse answers."


def _list_unsubscribe(email: ReadEmail) -> Verdict:
    if not email.is_bulk:
        return None
    if email.has_own_unsubscribe:
        return "ok", "The headers of one-click unsubscribe are added by themselves."
    if "list-unsubscribe" not in email.headers:
        return (
            "warning",
            "This is bulk mail without List-Unsubscribe, which Gmail and Yahoo ask for. Use a topic or a "
            "broadcast, or set the header.",
        )
    if "list-unsubscribe-post" not in email.headers:
        return (
            "advice",
            "List-Unsubscribe is there without List-Unsubscribe-Post, so there is no one-click unsubscribe.",
        )
    return "ok", "The headers of one-click unsubscribe are there."


RULES: Final[Mapping[str, Callable[[ReadEmail], Verdict]]] = {
    "dmarc_alignment": _dmarc_alignment,
    "link_hosts": _link_hosts,
    "link_texts": _link_texts,
    "html_size": _html_size,
    "text_part": _text_part,
    "image_texts": _image_texts,
    "sender_address": _sender_address,
    "list_unsubscribe": _list_unsubscribe,
}


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_SHOWN
    shown = ", ".join(text[:LONGEST_TEXT] for text in texts[:MOST_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
