"""Colours as `#rrggbb`, and the contrast of two of them (WCAG 2.2, relative luminance and contrast ratio)."""

from __future__ import annotations

import re
from typing import Final

COLOR: Final = re.compile(r"#[0-9a-f]{6}")
WHITE: Final = "#ffffff"
BLACK: Final = "#000000"


def color_of(text: str) -> str | None:
    """Return the colour in small letters; None where the text is none."""
    found = text.strip().lower()
    return found if COLOR.fullmatch(found) else None


def contrast(ink: str, paper: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((luminance(ink), luminance(paper)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    """Return the relative luminance, from 0 (black) to 1 (white)."""
    red, green, blue = (_linear(int(color[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def readable_on(color: str) -> str:
    """Return the one of black and white that reads better on a colour."""
    return max((WHITE, BLACK), key=lambda ink: contrast(ink, color))


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)
