"""The parts of templates to begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryTemplate:
    """A template to begin with; `fallbacks` are the values of its variables where there are no others."""

    name: str
    subject: str
    preheader: str
    blocks: Sequence[Block]
    fallbacks: Mapping[str, str]
    language: str = "en"

    @property
    def document(self) -> dict[str, Any]:
        """The document, as the API takes it."""
        return {
            "kind": "blocks",
            "blocks": list(self.blocks),
            "preheader": self.preheader,
            "language": self.language,
        }

    @property
    def variables(self) -> list[dict[str, Any]]:
        """The variables that it declares."""
        return [
            {"key": key, "type": "string", "fallback_value": value} for key, value in self.fallbacks.items()
        ]


def heading(words: str, level: int = 1, align: str = "left") -> Block:
    return {"type": "heading", "text": words, "level": level, "align": align}


def text(words: str, align: str = "left") -> Block:
    return {"type": "text", "text": words, "align": align}


def panel(words: str, align: str = "left") -> Block:
    return {"type": "text", "text": words, "align": align, "panel": True}


def button(words: str, href: str, align: str = "left") -> Block:
    return {"type": "button", "text": words, "href": href, "align": align}


DIVIDER: Final[Block] = {"type": "divider"}
