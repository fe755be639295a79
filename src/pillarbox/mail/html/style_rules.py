"""The rules of the `<style>` elements of a mail that may hide text, and what they declare for an element.

Only what text can be hidden by is read. Rules inside of `@media` count where they hold on a screen of 1024
pixels, as mail programs on a desk have it. All of it is bounded: so many characters, rules and comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

LONGEST_CSS: Final = 200_000
MOST_RULES: Final = 400
MOST_PARTS: Final = 6
"""Elements that a selector may name, one inside the other."""
MOST_COMPARISONS: Final = 100_000
"""Of elements with selectors that name their id, a class, or their name, in one document; what stands behind
them has no rules."""
COST_OF_MATCH: Final = 4
"""Comparisons that take as long as one that succeeds, with what follows."""
SCREEN: Final = 1024

PROPERTIES: Final = frozenset(
    (
        *("display", "visibility", "content-visibility", "opacity", "filter", "font", "font-size", "color"),
        *("background", "background-color", "background-image", "-webkit-text-fill-color", "position"),
        *(
            "left",
            "top",
            "right",
            "bottom",
            "text-indent",
            "margin",
            "margin-left",
            "margin-top",
            "transform",
        ),
        *("clip", "clip-path", "width", "height", "max-width", "max-height", "overflow", "overflow-x"),
        *("overflow-y", "line-height", "mso-hide"),
    )
)

Declarations = dict[str, tuple[str, bool]]
"""The value of each property, in lower case, and whether it is important."""

_BEGIN = re.compile(r"<!--|<style(?=[\s/>])([^>]*)>", re.IGNORECASE)
_STYLE_END = re.compile(r"</style(?=[\s/>])", re.IGNORECASE)
_COMMENT_MARKS = re.compile(r"<!--|-->")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n]?|([^\n]))")
_BRACE = re.compile(r"[{}]")
_MEDIA_OF_STYLE = re.compile(r"media\s*=\s*[\"']?([^\"'>]{1,200})", re.IGNORECASE)
_WIDTH = re.compile(r"\((min|max)-(?:device-)?width\s*:\s*([0-9]{1,5})(?:\.[0-9]*)?(px|em|rem)?\s*\)")
_COMBINATOR = re.compile(r"\s*(?:[>+]|~(?!=))\s*|\s+")
_PIECE = re.compile(
    r"\*|([a-z][a-z0-9]*)|\.([^\s.#:\[\]>+~*]+)|#([^\s.#:\[\]>+~*]+)"
    r"|\[\s*(class|id)\s*(?:([~^$*|]?)=\s*[\"']?([^\"'\]]*)[\"']?\s*)?\]"
)


class Compound(NamedTuple):
    """The conditions that a compound selector puts on one element."""

    tag: str
    classes: frozenset[str]
    id: str
    attributes: tuple[tuple[str, str, str], ...]


class StyledElement(NamedTuple):
    """An element as selectors see it."""

    tag: str
    classes: frozenset[str]
    id: str


class StyleRule(NamedTuple):
    """A selector with what it declares; `compounds` from the outermost element to the one that is meant."""

    compounds: tuple[Compound, ...]
    specificity: tuple[int, int, int]
    declarations: Declarations


class StyleRules:
    """All rules of a document. `are_complete` is false where one could not be read that gives a colour."""

    def __init__(self, html: str) -> None:
        self.are_complete = True
        self._compared = 0
        self._rules: list[StyleRule] = []
        for css in _sheets(html):
            for selectors, body in _blocks(css):
                if len(self._rules) < MOST_RULES and (found := declarations(body)):
                    self._add(selectors, found)
        self._rules.sort(key=lambda rule: rule.specificity)
        self._named: dict[str, list[int]] = {}
        for place, rule in enumerate(self._rules):
            self._named.setdefault(_name(rule.compounds[-1]), []).append(place)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def of(self, element: StyledElement, ancestors: Sequence[StyledElement]) -> Declarations:
        """Return what the rules declare for the element; the most specific and the last of them counts."""
        found: Declarations = {}
        names = ("*", element.tag, f"#{element.id}", *[f".{one}" for one in element.classes])
        places = sorted([place for name in names for place in self._named.get(name, ())])
        self._compared += len(places) + 1
        if self._compared > MOST_COMPARISONS:
            return found
        for place in places:
            rule = self._rules[place]
            if _fits(rule.compounds[-1], element) and self._is_inside(rule.compounds[:-1], ancestors):
                merge(found, rule.declarations)
                self._compared += COST_OF_MATCH
        return found

    def _is_inside(self, compounds: Sequence[Compound], ancestors: Sequence[StyledElement]) -> bool:
        at = len(ancestors)
        for compound in reversed(compounds):
            at -= 1
            while at >= 0 and not _fits(compound, ancestors[at]):
                at -= 1
                self._compared += 1
            if at < 0:
                return False
        return True

    def _add(self, selectors: str, declared: Declarations) -> None:
        for selector in selectors.split(",")[:MOST_RULES]:
            compounds = _compounds(selector.strip())
            if compounds is not None and len(self._rules) < MOST_RULES:
                self._rules.append(StyleRule(compounds, _specificity(compounds), declared))
            elif compounds is None and any("background" in name or name == "color" for name in declared):
                self.are_complete = False


def declarations(text: str) -> Declarations:
    """Return the declarations of `PROPERTIES` in a `style`."""
    found: Declarations = {}
    for part in text.split(";"):
        name, colon, value = part.partition(":")
        name = name.strip().lower()
        if not colon or name not in PROPERTIES:
            continue
        value, bang, _ = value.lower().partition("!")
        merge(found, {name: (" ".join(value.split()), bool(bang))})
    return found


def merge(known: Declarations, later: Declarations) -> None:
    """Put later declarations over known ones; what is important stays before what is not."""
    for name, (value, is_important) in later.items():
        if is_important or not known.get(name, ("", False))[1]:
            known[name] = value, is_important


def unescaped(css: str) -> str:
    """Return the text without comments and escapes, by which names could be written so that nobody
    finds them."""
    if "/*" in css:
        pieces, at = [], 0
        while (begin := css.find("/*", at)) >= 0:
            pieces.append(css[at:begin])
            end = css.find("*/", begin + 2)
            at = end + 2 if end >= 0 else len(css)
        css = "".join(pieces) + css[at:]
    return _ESCAPE.sub(_character, css) if "\\" in css else css


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    number = int(match[1], 16)
    return chr(number) if 0 < number < 0x110000 and chr(number) not in "{};" else ""


def _sheets(html: str) -> Iterator[str]:
    """Yield the contents of the style elements outside of comments, to the bound."""
    at, left = 0, LONGEST_CSS
    while left > 0 and (found := _BEGIN.search(html, at)) is not None:
        if found[0] == "<!--":
            at = html.find("-->", found.start() + 2)
            if at < 0:
                return
            continue
        end = _STYLE_END.search(html, found.end())
        at = end.start() if end is not None else len(html)
        media = _MEDIA_OF_STYLE.search(found[1] or "")
        if media is None or _holds(media[1]):
            css = html[found.end() : min(at, found.end() + left)]
            left -= len(css)
            yield _COMMENT_MARKS.sub(" ", unescaped(css))


def _blocks(css: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and declarations of the rules that hold on a screen."""
    holding, selectors, start = [True], "", 0
    for brace in _BRACE.finditer(css):
        piece, start = css[start : brace.start()], brace.end()
        if brace[0] == "{":
            prelude = piece.rpartition(";")[2].strip().lower()
            is_group = prelude.startswith("@")
            holding.append(holding[-1] and (not is_group or _group_holds(prelude)))
            selectors = "" if is_group else prelude
        else:
            if selectors and holding[-1]:
                yield selectors, piece
            selectors = ""
            if len(holding) > 1:
                holding.pop()


def _group_holds(prelude: str) -> bool:
    if prelude.startswith("@media"):
        return _holds(prelude.removeprefix("@media"))
    return prelude.startswith(("@supports", "@layer"))


def _holds(media: str) -> bool:
    return any(_one_holds(one.strip().lower()) for one in media.split(","))


def _one_holds(query: str) -> bool:
    for bound, number, unit in _WIDTH.findall(query):
        width = int(number) * (16 if unit in ("em", "rem") else 1)
        if width > SCREEN if bound == "min" else width < SCREEN:
            return False
    rest = _WIDTH.sub("", query)
    return not set(rest.replace("(", " ( ").split()) - {"all", "screen", "only", "and"}


def _compounds(selector: str) -> tuple[Compound, ...] | None:
    """Return the elements that a selector names; None where it looks at more than names, classes and ids."""
    parts = _COMBINATOR.split(selector)
    if not selector or len(parts) > MOST_PARTS:
        return None
    found = []
    # An element beside another one is taken to be there.
    beside = [mark.strip() in ("+", "~") for mark in _COMBINATOR.findall(selector)] + [False]
    for part, is_beside in zip(parts, beside, strict=True):
        compound = _compound(part)
        if compound is None:
            return None
        if not is_beside:
            found.append(compound)
    return tuple(found)


def _compound(text: str) -> Compound | None:
    at, tag, named, classes, attributes = 0, "", "", set(), []
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return None
        at = piece.end()
        tag = piece[1] or tag
        named = piece[3] or named
        if piece[2]:
            classes.add(piece[2])
        if piece[4]:
            attributes.append((piece[4], piece[5] or "", piece[6] or ""))
    return Compound(tag, frozenset(classes), named, tuple(attributes))


def _specificity(compounds: Sequence[Compound]) -> tuple[int, int, int]:
    return (
        sum(bool(one.id) for one in compounds),
        sum(len(one.classes) + len(one.attributes) for one in compounds),
        sum(bool(one.tag) for one in compounds),
    )


def _name(compound: Compound) -> str:
    """Return what each element has that fits: an id, a class or a name; `*` for any."""
    if compound.id:
        return f"#{compound.id}"
    return next((f".{one}" for one in compound.classes), compound.tag or "*")


def _fits(compound: Compound, element: StyledElement) -> bool:
    tag, classes, named, attributes = compound
    if (tag and tag != element.tag) or (named and named != element.id) or not classes <= element.classes:
        return False
    return all(_has(element, *attribute) for attribute in attributes)


def _has(element: StyledElement, name: str, kind: str, value: str) -> bool:
    values = element.classes if name == "class" else frozenset((element.id,)) - {""}
    if not value:
        return bool(values)
    if kind in ("", "~"):
        return values >= set(value.split())
    return any(value in one for one in values)
