"""Which text of an HTML mail its readers do not see, whatever way it is hidden.

    hidden = HiddenText(html)
    if hidden.enter(tag, attributes):   # False: nothing inside of the element is seen
        ... hidden.is_text_seen ...     # False: its own letters are too small, or have the colour behind them
        hidden.leave()
    else:
        ... hidden.hidden_by ...        # one of `KINDS`

Nine ways are known: `display`, `visibility` (and `content-visibility`), `opacity`, the attribute `hidden`,
and `mso-hide`; letters or a box of no size, letters in the colour of what is behind them, a place off the
screen (or cut off); and rules of `<style>` for classes and ids. What cannot be known, such as the colour of
an image behind the letters, counts as seen.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pillarbox.mail.html import limits
from pillarbox.mail.html.colors import Color, color_of
from pillarbox.mail.html.style_rules import (
    Declarations,
    StyledElement,
    StyleRules,
    declarations,
    merge,
    unescaped,
)

LONGEST_STYLE: Final = 4096
"""So much of a `style` is read."""
SMALLEST_SEEN: Final = 2.0
"""Pixels of letters that can be read."""
NEAREST_COLOR: Final = 12
"""By so much, of 255, red, green or blue must differ for letters to be seen."""
OFF_SCREEN: Final = 200.0
"""Pixels to the left of the screen, or above it."""
FAR_RIGHT: Final = 4000.0
FAINTEST: Final = 0.03

KINDS: Final = ("display", "visibility", "opacity", "zero_size", "same_color", "off_screen")
"""The ways as they are named to others; `hidden` and `mso-hide` count as `display`."""

WHITE: Final[Color] = (255, 255, 255)
BLACK: Final[Color] = (0, 0, 0)
_INVISIBLE_COLOR: Final = "transparent"

_LENGTH = re.compile(r"([+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}))([a-z%]*)")
_UNITS: Final = {
    "": 1.0,
    "px": 1.0,
    "pt": 1.333,
    "pc": 16.0,
    "in": 96.0,
    "cm": 37.8,
    "mm": 3.78,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "ch": 8.0,
    "vw": 10.24,
    "vh": 7.68,
    "%": 10.24,
}
_FONT_SIZE = re.compile(
    r"(?:^|[ /])([+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:px|pt|em|rem|%|ex|vw|vh)|0)(?=[ /]|$)"
)
_MOVED = re.compile(r"translate(?:x|y|3d)?\(([^)]{0,100})\)")
_SCALED_TO_NOTHING = re.compile(r"scale(?:x|y|3d)?\( ?0*(?:\.0*)?0 ?[,)]")
_CLIP = re.compile(r"rect\( ?([^)]{0,100})\)")
_INSET = re.compile(r"inset\( ?(?:100|[5-9][0-9])(?:\.[0-9]*)?%|circle\( ?0")
_COLORS = re.compile(r"(?:rgb|hsl)a?\([^()]{1,100}\)|[#a-z0-9]+")
_SIDES: Final = ("left", "top", "right", "bottom", "margin-left", "margin-top", "text-indent")
_PLACED: Final = frozenset(("absolute", "fixed", "relative", "sticky"))
_BOX: Final = ("width", "height", "max-width", "max-height")


class _Look(NamedTuple):
    """How letters of an element look; a colour is None where it is not known."""

    size: float
    color: Color | None
    behind: Color | None
    is_transparent: bool = False

    @property
    def hidden_by(self) -> str | None:
        """Return by which of `KINDS` letters are not seen; None where they are."""
        if self.size < SMALLEST_SEEN:
            return "zero_size"
        if self.is_transparent:
            return "same_color"
        if self.color is None or self.behind is None:
            return None
        return None if differ(self.color, self.behind) else "same_color"


def differ(color: Color, behind: Color) -> bool:
    """Return whether letters of a colour are seen on the other."""
    return max(abs(one - other) for one, other in zip(color, behind, strict=True)) > NEAREST_COLOR


def colors_in(value: str) -> list[Color]:
    """Return the colours that the value of a property names, in lower case."""
    return [found for part in _COLORS.findall(value) if (found := color_of(part)) is not None]


class HiddenText:
    """Collects the hidden text of one document, which is walked through in its order."""

    def __init__(self, html: str) -> None:
        self._rules = StyleRules(html)
        self.is_simplified = False
        """Whether the elements come from `limits.simplified`, which says of some what they were."""
        self.hidden_by = ""
        """By which of `KINDS` the element is hidden that was looked at last and not gone into."""
        self._open: list[StyledElement] = []
        first = _Look(16.0, BLACK, WHITE) if self._rules.are_complete else _Look(16.0, None, None)
        self._looks = [first]

    @property
    def is_text_seen(self) -> bool:
        """Whether letters are seen that stand right here."""
        return self._looks[-1].hidden_by is None

    @property
    def text_hidden_by(self) -> str | None:
        """By which of `KINDS` letters are not seen that stand right here; None where they are."""
        return self._looks[-1].hidden_by

    def enter(self, tag: str, attributes: dict[str, str | None]) -> bool:
        """Go into an element; False where nothing in it is seen, and it is not gone into."""
        if self.is_simplified:
            tag = attributes.get(limits.WRITTEN_FOR) or tag
        if not attributes and not self._rules and tag not in _OWN_COLOR:
            self._open.append(_PLAIN)
            self._looks.append(self._looks[-1])
            return True
        classes = frozenset((attributes.get("class") or "").lower().split()[:50])
        element = StyledElement(tag, classes, (attributes.get("id") or "").lower())
        declared = self._rules.of(element, self._open) if self._rules else {}
        style = attributes.get("style")
        if style:
            merge(declared, declarations(unescaped(style[:LONGEST_STYLE])))
        hidden_by = "display" if "hidden" in attributes else _hidden_by(declared)
        if hidden_by is not None:
            self.hidden_by = hidden_by
            return False
        self._looks.append(_look(self._looks[-1], tag, attributes, declared))
        self._open.append(element)
        return True

    def leave(self) -> None:
        """Go out of the element that was entered last."""
        self._looks.pop()
        self._open.pop()


_PLAIN: Final = StyledElement("", frozenset(), "")
_OWN_COLOR: Final = frozenset(("a", "mark", "button"))
"""Their letters, or what is behind them, have a colour that nobody named."""


def _hidden_by(declared: Declarations) -> str | None:
    values = {name: value for name, (value, _) in declared.items()}
    if not values:
        return None
    if values.get("display") == "none" or values.get("mso-hide") == "all":
        return "display"
    if values.get("visibility") in ("hidden", "collapse") or values.get("content-visibility") == "hidden":
        return "visibility"
    if _is_faint(values):
        return "opacity"
    if _has_no_box(values):
        return "zero_size"
    return "off_screen" if _is_off_screen(values) else None


def _is_faint(values: dict[str, str]) -> bool:
    opacity = values.get("opacity")
    if opacity is None:
        found = re.search(r"opacity\( ?([^)]{1,20})\)", values.get("filter", ""))
        opacity = found[1].strip() if found else None
    if opacity is None:
        return False
    number = _LENGTH.match(opacity)
    return number is not None and float(number[1]) / (100 if number[2] == "%" else 1) < FAINTEST


def _has_no_box(values: dict[str, str]) -> bool:
    is_cut = any(values.get(name, "").startswith(("hidden", "clip")) for name in _OVERFLOWS)
    for name in _BOX:
        length = _pixels(values.get(name, ""))
        if length is not None and ((length <= 1 and is_cut) or (length == 0 and name == "max-height")):
            return True
    return False


_OVERFLOWS: Final = ("overflow", "overflow-x", "overflow-y")


def _is_off_screen(values: dict[str, str]) -> bool:
    is_placed = values.get("position") in _PLACED
    for name in _SIDES:
        if name in ("left", "top", "right", "bottom") and not is_placed:
            continue
        length = _pixels(values.get(name, ""))
        if length is not None and (length <= -OFF_SCREEN or length >= FAR_RIGHT):
            return True
    margins = values.get("margin", "").split()
    if any((length := _pixels(one)) is not None and length <= -OFF_SCREEN for one in margins):
        return True
    return _is_moved_away(values.get("transform", "")) or _is_clipped(values)


def _is_moved_away(transform: str) -> bool:
    if _SCALED_TO_NOTHING.search(transform):
        return True
    moved = _MOVED.search(transform)
    if moved is None:
        return False
    lengths = [_pixels(one.strip()) for one in moved[1].split(",")]
    return any(one is not None and (one <= -OFF_SCREEN or one >= FAR_RIGHT) for one in lengths)


def _is_clipped(values: dict[str, str]) -> bool:
    clip = _CLIP.search(values.get("clip", ""))
    if clip is not None:
        sides = [_pixels(one) for one in clip[1].replace(",", " ").split()]
        if len(sides) == 4 and all(one is not None for one in sides):
            top, right, bottom, left = (one or 0.0 for one in sides)
            return right - left <= 1 or bottom - top <= 1
    return _INSET.search(values.get("clip-path", "")) is not None


def _pixels(text: str) -> float | None:
    found = _LENGTH.fullmatch(text)
    if found is None or found[2] not in _UNITS:
        return None
    return float(found[1]) * _UNITS[found[2]]


def _look(outer: _Look, tag: str, attributes: dict[str, str | None], declared: Declarations) -> _Look:
    values = {name: value for name, (value, _) in declared.items()}
    color, is_transparent = outer.color, outer.is_transparent
    if tag in _OWN_COLOR:
        color = None
    named = values.get("-webkit-text-fill-color") or values.get("color")
    named = named or _named(attributes, "color" if tag == "font" else "text" if tag == "body" else "")
    if named and named not in ("inherit", "currentcolor"):
        is_transparent = _is_transparent(named)
        color = color_of(named)
    behind = None if tag in ("mark", "button") else _behind(outer.behind, attributes, values)
    return _Look(_size(outer.size, tag, attributes, values), color, behind, is_transparent)


def _named(attributes: dict[str, str | None], name: str) -> str:
    return (attributes.get(name) or "").strip().lower()[:100]


def _is_transparent(color: str) -> bool:
    if color == _INVISIBLE_COLOR:
        return True
    found = re.fullmatch(r"(?:rgba?|hsla?)\(.{1,60}[,/] ?([0-9.]{1,10})(%?) ?\)", color)
    if found is None or (color.count(",") < 3 and "/" not in color):
        return False
    number = _LENGTH.fullmatch(found[1])
    return number is not None and float(number[1]) / (100 if found[2] else 1) < FAINTEST


def _behind(outer: Color | None, attributes: dict[str, str | None], values: dict[str, str]) -> Color | None:
    shorthand = values.get("background", "")
    pictures = shorthand + values.get("background-image", "")
    if "background" in attributes or "url(" in pictures or "gradient" in pictures:
        return None
    named = values.get("background-color") or shorthand or _named(attributes, "bgcolor")
    if not named or named in ("none", "inherit", "initial", "unset", "0 0") or _is_transparent(named):
        return outer
    if (whole := color_of(named)) is not None:
        return whole
    found = colors_in(named)
    return found[0] if found else None


def _size(outer: float, tag: str, attributes: dict[str, str | None], values: dict[str, str]) -> float:
    text = values.get("font-size")
    if text is None and "font" in values:
        found = _FONT_SIZE.search(values["font"])
        text = found[1] if found else None
    if text is None:
        return 10.0 if tag == "font" and _named(attributes, "size") else outer
    found = _LENGTH.fullmatch(text)
    if found is None:
        return outer if text in ("inherit", "smaller", "larger", "unset") else 16.0
    number, unit = float(found[1]), found[2]
    if unit in ("em", "%", "ex"):
        return outer * number / (100 if unit == "%" else 2 if unit == "ex" else 1)
    return number * _UNITS.get(unit, 1.0)
