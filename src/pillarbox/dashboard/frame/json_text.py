"""JSON as a person reads it, bounded: what strangers answer may not make a page large."""

from __future__ import annotations

import json
from typing import Any, Final

LONGEST: Final = 8 * 1024
DEEPEST: Final = 20
GROWTH: Final = 4
"""Longer texts, deeper values, and those that indents make so many times as long, get no indents."""


def indented(value: Any) -> str:
    """Return a value as JSON with indents, or in one line where indents would make it large."""
    plain = _safe(json.dumps(value, ensure_ascii=False))
    if len(plain) > LONGEST or _is_deeper(value, DEEPEST):
        return plain
    text = _safe(json.dumps(value, ensure_ascii=False, indent=2))
    return text if len(text) <= GROWTH * len(plain) + 200 else plain


def indented_text(text: str) -> str:
    """Return JSON text with indents, and any other text, or a long one, as it is."""
    if len(text) > LONGEST:
        return _safe(text)
    try:
        return indented(json.loads(text))
    except (ValueError, RecursionError):
        return _safe(text)


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(entry, levels - 1) for entry in inner)


def _safe(text: str) -> str:
    """Return the text without lone surrogates, which no page can hold."""
    return text.encode("utf-8", "replace").decode()
