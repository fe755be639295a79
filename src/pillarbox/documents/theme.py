"""How the mail of a team looks: colours, font, logo, width, footer. Other colours follow from three."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, Struct

from pillarbox.documents.colors import contrast, readable_on

Color = Annotated[str, Meta(pattern=r"^#[0-9a-fA-F]{6}$")]
Font = Literal["sans", "serif", "humanist", "mono"]

FONTS: Final[dict[str, str]] = {
    "sans": "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
    "serif": "Charter, 'Iowan Old Style', Georgia, 'Times New Roman', serif",
    "humanist": "Seravek, 'Gill Sans Nova', Ubuntu, Calibri, 'Trebuchet MS', Verdana, sans-serif",
    "mono": "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Courier New', monospace",
}
"""Fonts that machines have already: mail loads none."""

READABLE: Final = 4.5
"""The least contrast of text (WCAG 1.4.3)."""

DARK_PAGE: Final = "#0f1216"
DARK_CARD: Final = "#1a1e24"
DARK_TEXT: Final = "#e8ebef"
_WEB: Final = re.compile(r"https?://[^\s<>\"']+", re.IGNORECASE)


class Theme(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A team's choices."""

    accent: Color = "#1f5fd6"
    page: Color = "#f2f4f7"
    card: Color = "#ffffff"
    text: Color = "#1c2430"
    font: Font = "sans"
    width: Annotated[int, Meta(ge=480, le=720)] = 600
    corner: Annotated[int, Meta(ge=0, le=24)] = 10
    logo_url: Annotated[str, Meta(max_length=500)] = ""
    logo_alt: Annotated[str, Meta(max_length=200)] = ""
    logo_width: Annotated[int, Meta(ge=24, le=480)] = 120
    footer: Annotated[str, Meta(max_length=2000)] = ""
    address: Annotated[str, Meta(max_length=500)] = ""


DEFAULT: Final = Theme()


class ThemeFault(NamedTuple):
    """A field whose value is not usable, and why: `contrast` or `address`."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Palette:
    """All colours of a mail, by day or by night."""

    page: str
    card: str
    text: str
    soft: str
    line: str
    panel: str
    link: str


def faults(theme: Theme) -> list[ThemeFault]:
    """Return what is wrong with a theme."""
    wrong = []
    if contrast(theme.text.lower(), theme.card.lower()) < READABLE:
        wrong.append(ThemeFault("text", "contrast"))
    if theme.logo_url and not _WEB.fullmatch(theme.logo_url):
        wrong.append(ThemeFault("logo_url", "address"))
    return wrong


def by_day(theme: Theme) -> Palette:
    """Return the colours on a light ground."""
    card, text, accent = theme.card.lower(), theme.text.lower(), theme.accent.lower()
    return Palette(
        page=theme.page.lower(),
        card=card,
        text=text,
        soft=readable_between(mixed(text, card, 0.36), card, text),
        line=mixed(text, card, 0.86),
        panel=mixed(accent, card, 0.93),
        link=readable_between(accent, card, text),
    )


def by_night(theme: Theme) -> Palette:
    """Return the colours of dark mode."""
    accent = theme.accent.lower()
    return Palette(
        page=DARK_PAGE,
        card=DARK_CARD,
        text=DARK_TEXT,
        soft="#a9b2bd",
        line="#343c46",
        panel=mixed(accent, DARK_CARD, 0.84),
        link=readable_between(accent, DARK_CARD, "#ffffff"),
    )


def on_accent(theme: Theme) -> str:
    """Return the colour of text on a button."""
    return readable_on(theme.accent.lower())


def mixed(color: str, other: str, share: float) -> str:
    """Return the colour between two; `share` is how much of the other there is."""
    pairs = ((int(color[place : place + 2], 16), int(other[place : place + 2], 16)) for place in (1, 3, 5))
    return "#" + "".join(f"{round(first + (second - first) * share):02x}" for first, second in pairs)


def readable_between(color: str, ground: str, toward: str) -> str:
    """Return the colour, moved toward another until it can be read on the ground."""
    for step in range(11):
        moved = mixed(color, toward, step / 10)
        if contrast(moved, ground) >= READABLE:
            return moved
    return readable_on(ground)
