"""Paths to which a page may send a browser: those of this site alone (UI-07)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

LONGEST: Final = 2000

_ENCODED_SLASH: Final = re.compile(r"%(?:2f|5c)", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[\x21-\x7e]+")


def local_path(text: str | None) -> str | None:
    """Return the path, with its query, if it is one of this site however a browser reads it; else None."""
    if not text or len(text) > LONGEST or not _PLAIN.fullmatch(text):
        return None
    path = text.partition("?")[0].partition("#")[0]
    if not path.startswith("/") or "//" in path or "\\" in text or "@" in path:
        return None
    return None if _ENCODED_SLASH.search(path) else text


def with_return(path: str, to: str | None) -> str:
    """Return the path, with the place to go on to afterwards."""
    kept = local_path(to)
    return path if kept is None else f"{path}?to={quote(kept, safe='/')}"
