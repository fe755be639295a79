"""Colours of HTML and CSS as red, green and blue (CSS Color Module Level 4, the forms that mails use)."""

from __future__ import annotations

import re
from colorsys import hls_to_rgb
from typing import Final

Color = tuple[int, int, int]

_HEX = re.compile(r"#?([0-9a-f]{6}|[0-9a-f]{3})(?:[0-9a-f]{2})?")
_SHORT = re.compile(r"#([0-9a-f]{3})[0-9a-f]?")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]{1,100})\)")
_NUMBER = re.compile(r"([0-9]{1,4}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(%|deg)?")

NAMES: Final[dict[str, Color]] = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "red": (255, 0, 0),
    "green": (0, 128, 0),
    "lime": (0, 255, 0),
    "blue": (0, 0, 255),
    "navy": (0, 0, 128),
    "yellow": (255, 255, 0),
    "orange": (255, 165, 0),
    "purple": (128, 0, 128),
    "maroon": (128, 0, 0),
    "olive": (128, 128, 0),
    "teal": (0, 128, 128),
    "aqua": (0, 255, 255),
    "cyan": (0, 255, 255),
    "fuchsia": (255, 0, 255),
    "magenta": (255, 0, 255),
    "gray": (128, 128, 128),
    "grey": (128, 128, 128),
    "silver": (192, 192, 192),
    "lightgray": (211, 211, 211),
    "lightgrey": (211, 211, 211),
    "darkgray": (169, 169, 169),
    "darkgrey": (169, 169, 169),
    "dimgray": (105, 105, 105),
    "dimgrey": (105, 105, 105),
    "gainsboro": (220, 220, 220),
    "whitesmoke": (245, 245, 245),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
    "ghostwhite": (248, 248, 255),
    "floralwhite": (255, 250, 240),
    "mintcream": (245, 255, 250),
    "azure": (240, 255, 255),
    "aliceblue": (240, 248, 255),
    "seashell": (255, 245, 238),
    "linen": (250, 240, 230),
    "beige": (245, 245, 220),
    "honeydew": (240, 255, 240),
    "lavender": (230, 230, 250),
    "lavenderblush": (255, 240, 245),
    "oldlace": (253, 245, 230),
    "cornsilk": (255, 248, 220),
    "lightyellow": (255, 255, 224),
    "lightcyan": (224, 255, 255),
    "pink": (255, 192, 203),
    "brown": (165, 42, 42),
    "gold": (255, 215, 0),
    "window": (255, 255, 255),
    "canvas": (255, 255, 255),
    "windowtext": (0, 0, 0),
    "canvastext": (0, 0, 0),
}


def color_of(text: str) -> Color | None:
    """Return the colour that a text in lower case names; None where it names none that is known."""
    if text in NAMES:
        return NAMES[text]
    if found := _SHORT.fullmatch(text):
        red, green, blue = (int(digit * 2, 16) for digit in found[1])
        return red, green, blue
    if found := _HEX.fullmatch(text):
        digits = found[1] if len(found[1]) == 6 else "".join(digit * 2 for digit in found[1])
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    if found := _FUNCTION.fullmatch(text):
        return _computed(found[1], found[2])
    return None


def _computed(kind: str, arguments: str) -> Color | None:
    found = [_NUMBER.fullmatch(one) for one in arguments.replace(",", " ").replace("/", " ").split()[:3]]
    if len(found) != 3:
        return None
    numbers = [(float(one[1]), one[2] == "%") for one in found if one is not None]
    if len(numbers) != 3:
        return None
    if kind == "rgb":
        red, green, blue = (min(255, round(n * 2.55 if percent else n)) for n, percent in numbers)
        return red, green, blue
    (hue, _), (saturation, _), (lightness, _) = numbers
    shades = hls_to_rgb(hue % 360 / 360, min(lightness, 100) / 100, min(saturation, 100) / 100)
    red, green, blue = (round(255 * shade) for shade in shades)
    return red, green, blue
