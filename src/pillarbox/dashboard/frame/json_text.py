"""JSON as a person reads it, bounded: what strangers answer may not make a page large."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pillarbox.kernel.process.offload import in_thread_if_large

LONGEST: Final = 8 * 1024
DEEPEST: Final = 20
GROWTH: Final = 4
"""Longer texts, deeper values, and those that indents make so many times as long, get no indents."""

NESTED: Final = 100
"""Levels of a value that a person types; no field of the API takes as many."""


async def parsed(text: str) -> Any:
    """Return the value of a JSON text as the API reads it, of a large one in a thread.

    Raises ValueError where it is none: one with `NaN`, or with half of a surrogate pair, is none.
    """
    return await in_thread_if_large(len(text), parsed_here, text)


def parsed_here(text: str) -> Any:
    """Return the value of a short JSON text as the API reads it; raises ValueError where it is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("no JSON") from None
    if text.count("[") + text.count("{") > NESTED and _is_nested(value):
        raise ValueError("too deep")
    return value


def _is_nested(value: Any) -> bool:
    """Return whether the value has more than `NESTED` levels."""
    level = [value]
    for _ in range(NESTED):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


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
    return levels < 0 or any(_is_deeper(entry, levels - 1) for entry in _inside(value))


def _safe(text: str) -> str:
    """Return the text without lone surrogates, which no page can hold."""
    return text.encode("utf-8", "replace").decode()
