"""Colours of labels: `#RRGGBB`, or one of the older names (inboxes.md section 4). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from pillarbox.kernel.wire.problems import InvalidField

PALETTE: Final[Mapping[str, str]] = {
    "cyan": "#00A2C7",
    "teal": "#12A594",
    "grass": "#46A758",
    "lime": "#BDEE63",
    "yellow": "#FFE629",
    "orange": "#F76B15",
    "iris": "#5B5BD6",
    "plum": "#AB4ABA",
    "crimson": "#E93D82",
    "bronze": "#A18072",
    "mauve": "#8E8C99",
}
"""The older names; a label for which no colour is asked gets one of these too."""

_COLORS: Final = tuple(PALETTE.values())
_HEX: Final = re.compile(r"#[0-9a-f]{6}", re.ASCII | re.IGNORECASE)
_PATTERN: Final = f"^(#[0-9a-fA-F]{{6}}|{'|'.join(PALETTE)})$"

Color = Annotated[str, Meta(extra_json_schema={"pattern": _PATTERN})]


def color(text: str) -> str:
    """Return the colour in capitals, or raise a 422."""
    if _HEX.fullmatch(text):
        return text.upper()
    named = PALETTE.get(text)
    if named is None:
        raise InvalidField("color", f"Use `#RRGGBB` or one of {', '.join(f'`{name}`' for name in PALETTE)}.")
    return named


def any_color(random: float) -> str:
    """Return a colour of the palette; `random` is from 0 up to, not including, 1."""
    return _COLORS[int(random * len(_COLORS))]
