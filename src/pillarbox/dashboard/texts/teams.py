"""Texts of pages about teams."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {}
