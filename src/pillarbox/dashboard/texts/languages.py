"""The languages that pages are written in, and the one that the page of now is written in."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

ENGLISH: Final = "en"
GERMAN: Final = "de"

NAMES: Final = {ENGLISH: "English", GERMAN: "Deutsch"}
"""The names of the languages in themselves, by their codes (BCP 47). The first one is the default."""

_language: ContextVar[str] = ContextVar("language", default=ENGLISH)


def language() -> str:
    """Return the code of the page's language."""
    return _language.get()


def use_language(chosen: str | None, accepted: str | None) -> None:
    """Set the language of the page: the chosen one, else the first known one of an Accept-Language header."""
    _language.set(_first_known([chosen or "", *_preferred(accepted or "")]))


def _first_known(codes: list[str]) -> str:
    return next((code for code in codes if code in NAMES), ENGLISH)


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
