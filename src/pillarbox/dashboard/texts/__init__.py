"""The texts of all pages: one catalogue of key and text per language.

The catalogues of the parts are merged here; a key begins with the name of its page. Templates and handlers
ask `t("login.title")`; words in braces are filled in: `t("login.wait", seconds=30)`. Each language has every
key. The language and the time zone of a page are those of the request that is at work. Begin with `frame.py`,
whose texts many screens use.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

from pillarbox.dashboard.texts import (
    account,
    consent,
    docs,
    domains,
    emails,
    frame,
    installation,
    logs,
    metrics,
    overview,
    people,
    received,
    send,
    suppressions,
    teams,
    unsubscribe_page,
    webhooks,
)

ENGLISH: Final = "en"


def _merged(*catalogues: Mapping[str, str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for catalogue in catalogues:
        if twice := found.keys() & catalogue.keys():
            raise ValueError(f"texts with the same key: {sorted(twice)}")
        found |= catalogue
    return MappingProxyType(found)


TEXTS: Final = _merged(
    people.TEXTS,
    account.TEXTS,
    teams.TEXTS,
    unsubscribe_page.TEXTS,
    consent.TEXTS,
    installation.TEXTS,
    frame.TEXTS,
    overview.TEXTS,
    emails.TEXTS,
    received.TEXTS,
    webhooks.TEXTS,
    logs.TEXTS,
    domains.TEXTS,
    suppressions.TEXTS,
    metrics.TEXTS,
    send.TEXTS,
    docs.TEXTS,
)
"""Every text in English."""

LANGUAGES: Final = {ENGLISH: TEXTS}
"""Every text in every language, by the language's code (BCP 47)."""

_language: ContextVar[str] = ContextVar("language", default=ENGLISH)


def t(key: str, **values: object) -> str:
    """Return the text of a key in the page's language, with values in place of the words in braces."""
    text = LANGUAGES[_language.get()].get(key) or TEXTS[key]
    return text.format(**values) if values else text


def has_text(key: str) -> bool:
    """Return whether there is a text with this key."""
    return key in TEXTS


def language() -> str:
    """Return the code of the page's language."""
    return _language.get()


def use_language(chosen: str | None, accepted: str | None) -> None:
    """Set the language of the page: the chosen one, else the first known one of an Accept-Language header."""
    _language.set(_first_known([chosen or "", *_preferred(accepted or "")]))


def _first_known(codes: list[str]) -> str:
    return next((code for code in codes if code in LANGUAGES), ENGLISH)


def _preferred(header: str) -> list[str]:
    """Return the languages of the header by their weight, without regions."""
    weighted = []
    for entry in header[:200].split(","):
        code, _, weight = entry.partition(";q=")
        try:
            weighted.append((float(weight or 1), code.strip().partition("-")[0].lower()))
        except ValueError:
            continue
    return [code for weight, code in sorted(weighted, key=lambda pair: -pair[0]) if weight > 0]
