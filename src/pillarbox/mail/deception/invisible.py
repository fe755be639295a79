"""Characters that nobody sees: how they hide words, and how a text is without them.

Some have a use. Joiners shape Persian and Indic words, a selector colours a heart, tags make the flag of
Scotland, and newsletters stretch their preview with fillers. Such uses are not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TAGS: Final = "\U000e0000-\U000e007f"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS: Final = "\u200c\u200d"
_NO_WIDTH: Final = "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u3164\ufeff\uffa0"
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OTHER: Final = (
    "\u206a-\u206f\ufff0-\ufffb\ufffe\uffff\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_PRIVATE: Final = "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff"
_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"

_ALL: Final = f"{_TAGS}{_SELECTORS}{_NO_WIDTH}{_BIDI}{_OTHER}{_PRIVATE}{_CONTROLS}"
UNSEEN: Final = re.compile(f"[{_ALL}]+")
"""All characters of these kinds, but for tabs, line feeds and joiners."""

HIDING: Final = re.compile(f"[{_TAGS}{_NO_WIDTH}{_JOINERS}{_BIDI}]|[{_SELECTORS}]{{2}}")
"""In each text of which `unseen_pieces` has one."""


def unseen_but(kept: str) -> re.Pattern[str]:
    """Return `UNSEEN` without these characters."""
    return re.compile(f"(?:(?![{kept}])[{_ALL}])+")


_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SPACES = re.compile("[\t\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")
_SHAPED: Final = "[\u0600-\u08ff\u0900-\u0dff]"
_JOINERS_OF_NO_USE = re.compile(f"[{_JOINERS}](?!{_SHAPED})|(?<!{_SHAPED})[{_JOINERS}]")
"""All but those that shape a word of a script that has use for them; without them it is spelled wrongly."""

_TAG_RUN = re.compile(f"[{_TAGS}]+")
_FLAG: Final = "\U0001f3f4"
_LONGEST_FLAG: Final = 7
_SELECTOR_RUN = re.compile(f"[{_SELECTORS}]{{2,}}")
_ZERO_RUN = re.compile(f"[{_NO_WIDTH}{_JOINERS}]+")
_BIDI_RUN = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MOST_SHOWN: Final = 1000
"""Words that are shown of one kind; all are counted."""
_MOST_TURNED: Final = 200
_AROUND: Final = 100
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
"""The blocks of scripts that run so (UAX 9, 3.2)."""
_WORD_AROUND: Final = 20
_LONGEST_UNIT: Final = 4
_LONG_RUN: Final = 16
_MOST_RUNS: Final = 20_000
"""Runs of one kind that are looked at."""


class UnseenPiece(NamedTuple):
    """Text that is hidden by characters that nobody sees: `kind`, how many they are, and the text."""

    kind: str
    characters: int
    text: str


def without_unseen(text: str) -> str:
    """Return the text without characters that nobody sees. Ends of lines become line feeds and blanks of all
    kinds spaces."""
    return without(UNSEEN, text)


def without(unseen: re.Pattern[str], text: str) -> str:
    """Return the text without what the pattern names, as `without_unseen` does."""
    if text.isascii():
        plain = text.replace("\r\n", "\n").replace("\t", " ")
        if plain.replace("\n", "").isprintable():
            return plain
    text = unseen.sub("", _SPACES.sub(" ", _LINE_ENDS.sub("\n", text)))
    return _JOINERS_OF_NO_USE.sub("", text) if "\u200c" in text or "\u200d" in text else text


def unseen_pieces(text: str) -> Iterator[UnseenPiece]:
    """Yield what is hidden in the text by characters that nobody sees."""
    if text.isascii():
        return
    yield from _tags(text)
    yield from _selectors(text)
    yield from _zero_widths(text)
    yield from _turned(text)


def _tags(text: str) -> Iterator[UnseenPiece]:
    """Yield the ASCII text that tag characters stand for (Unicode 23.9)."""
    for found, _ in zip(_TAG_RUN.finditer(text), range(_MOST_RUNS), strict=False):
        run = found[0]
        if text[found.start() - 1 : found.start()] == _FLAG and len(run) <= _LONGEST_FLAG:
            continue
        said = "".join([chr(ord(one) - 0xE0000) for one in run if 0xE0020 <= ord(one) < 0xE007F])
        yield UnseenPiece("tag_characters", len(run), said)


def _selectors(text: str) -> Iterator[UnseenPiece]:
    """Yield the octets that runs of variation selectors stand for, as text."""
    for found, _ in zip(_SELECTOR_RUN.finditer(text), range(_MOST_RUNS), strict=False):
        octets = bytes([_octet(ord(one)) for one in found[0]])
        said = octets.decode("utf-8", "ignore")
        yield UnseenPiece("variation_selectors", len(octets), without_unseen(said))


def _octet(number: int) -> int:
    return number - 0xFE00 if number < 0xE0000 else number - 0xE0100 + 16


def _zero_widths(text: str) -> Iterator[UnseenPiece]:
    """Yield words that are cut by characters without width, and long runs of them that repeat nothing."""
    count = 0
    for found, _ in zip(_ZERO_RUN.finditer(text), range(_MOST_RUNS), strict=False):
        begin, end = found.span()
        run = found[0]
        if len(run) >= _LONG_RUN and not _repeats(run):
            yield UnseenPiece("zero_width", len(run), "")
        elif begin and end < len(text) and _cuts_word(text[begin - 1], text[end], run):
            count += 1
            word = text[max(0, begin - _WORD_AROUND) : end + _WORD_AROUND] if count <= _MOST_SHOWN else ""
            yield UnseenPiece("zero_width", len(run), " ".join(without_unseen(word).split()))


def _repeats(run: str) -> bool:
    return any(
        run == (run[:unit] * (len(run) // unit + 1))[: len(run)] for unit in range(1, _LONGEST_UNIT + 1)
    )


def _cuts_word(before: str, after: str, run: str) -> bool:
    """Return whether a run stands inside of a word of a script that has no use for it. A soft hyphen has."""
    if run == "\xad":
        return False
    return all(one.isalpha() and _is_simple(one) for one in (before, after))


def _is_simple(letter: str) -> bool:
    """Return whether the letter is Latin, Greek or Cyrillic."""
    return letter < "\u0530" or "\u1e00" <= letter < "\u2000" or "\uff21" <= letter <= "\uff5a"


def _turned(text: str) -> Iterator[UnseenPiece]:
    """Yield lines whose order is turned (UAX 9), but for those of scripts that run from right to left."""
    count = 0
    natural = _RIGHT_TO_LEFT.search(text)
    for found, _ in zip(_BIDI_RUN.finditer(text), range(_MOST_RUNS), strict=False):
        begin, end = max(0, found.start() - _AROUND), found.end() + _AROUND
        if natural is not None and natural.start() < begin:
            natural = _RIGHT_TO_LEFT.search(text, begin)
        is_natural = natural is not None and natural.start() < end
        if is_natural and found[0] not in "\u202d\u202e":
            continue
        count += 1
        if count <= _MOST_TURNED:
            yield UnseenPiece("bidi", 1, " ".join(without_unseen(text[begin:end]).split()))
