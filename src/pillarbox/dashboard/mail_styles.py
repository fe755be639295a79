"""CSS of mails: what passes can neither load anything nor leave its place on the page (UI-02, UI-03).

What is written is built anew from pieces that match allow-lists: no backslash, no `<`, no at-rule but
`@media`, no function but those below. So whatever is misread here, a browser cannot make it an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_SHEET = 256 * 1024
LONGEST_VALUE = 500

PROPERTIES = re.compile(
    r"(?:color|background(?:-color|-image|-position|-repeat|-size|-clip)?|opacity|visibility"
    r"|font(?:-family|-size|-style|-variant|-weight|-stretch)?|line-height|letter-spacing|word-spacing"
    r"|text-(?:align|decoration|decoration-color|decoration-line|decoration-style|indent|overflow|shadow"
    r"|transform|size-adjust)|white-space|word-break|word-wrap|overflow-wrap|hyphens|direction|unicode-bidi"
    r"|display|float|clear|vertical-align|box-sizing|box-shadow|overflow(?:-x|-y)?"
    r"|(?:min-|max-)?(?:width|height)|(?:margin|padding)(?:-top|-right|-bottom|-left)?"
    r"|border(?:-top|-right|-bottom|-left)?(?:-color|-style|-width)?|border-(?:collapse|spacing|radius)"
    r"|border-(?:top|bottom)-(?:left|right)-radius|outline(?:-color|-style|-width)?"
    r"|list-style(?:-type|-position)?|table-layout|caption-side|empty-cells|page-break-(?:before|after|inside)"
    r"|flex(?:-basis|-direction|-flow|-grow|-shrink|-wrap)?|order|gap|row-gap|column-gap"
    r"|(?:align|justify)-(?:content|items|self))"
)
FUNCTIONS = frozenset(
    ("rgb", "rgba", "hsl", "hsla", "calc", "min", "max", "clamp", "linear-gradient", "radial-gradient")
)

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_STRING = re.compile(r"\"[^\"'()]*\"|'[^\"'()]*'")
_VALUE = re.compile(r"[A-Za-z0-9 #%.,()+*/!\"'-]+")
_CALL = re.compile(r"([A-Za-z0-9-]*)\(")
_SELECTOR = re.compile(r"[A-Za-z0-9_ .#*>+~:,()\[\]=^$|\"'-]+")
_MEDIA = re.compile(r"@media[A-Za-z0-9 :,.()<>=-]+", re.IGNORECASE)
_BRACE = re.compile(r"[{}]")
_BLANKS = re.compile(r"\s+")


def declarations(text: str) -> str:
    """Return the declarations that may stay, as they may stand in a `style` attribute."""
    kept = (_declaration(piece) for piece in _COMMENT.sub(" ", text).split(";"))
    return ";".join(piece for piece in kept if piece)


def sheet(text: str) -> str:
    """Return the rules of a style sheet that may stay."""
    return "\n".join(_rules(_COMMENT.sub(" ", text[:LONGEST_SHEET]), nested=False))


def _declaration(piece: str) -> str:
    name, colon, value = piece.partition(":")
    name, value = name.strip().lower(), _BLANKS.sub(" ", value).strip()
    if not colon or not PROPERTIES.fullmatch(name) or len(value) > LONGEST_VALUE:
        return ""
    return f"{name}:{value}" if _is_plain(value) else ""


def _is_plain(value: str) -> bool:
    bare = _STRING.sub("", value)
    return (
        _VALUE.fullmatch(value) is not None
        and '"' not in bare
        and "'" not in bare
        and bare.count("(") == bare.count(")")
        and all(name.lower() in FUNCTIONS for name in _CALL.findall(value))
    )


def _rules(text: str, *, nested: bool) -> Iterator[str]:
    at = 0
    while (start := text.find("{", at)) >= 0:
        prelude = _BLANKS.sub(" ", text[at:start].rpartition(";")[2]).strip()[:LONGEST_VALUE]
        end = _block_end(text, start)
        block, at = text[start + 1 : end], end + 1
        if prelude.startswith("@"):
            if not nested and _MEDIA.fullmatch(prelude):
                yield f"{prelude}{{{''.join(_rules(block, nested=True))}}}"
        elif (kept := declarations(block)) and _is_selector(prelude):
            yield f"{prelude}{{{kept}}}"


def _is_selector(text: str) -> bool:
    bare = _STRING.sub("", text)
    return _SELECTOR.fullmatch(text) is not None and '"' not in bare and "'" not in bare


def _block_end(text: str, start: int) -> int:
    """Return the place where the block that opens at `start` closes, inner blocks included."""
    depth = 0
    for found in _BRACE.finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return len(text)
