"""Texts of pages on which people let programs act for them."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {}
