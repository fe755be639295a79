"""Texts as they are compared in search: without regard to case, to width and to what is not seen. Pure.

A word is a run of letters and digits with their marks. In scripts without blanks between words (Chinese,
Japanese, Thai, Lao, Burmese, Khmer) each character with its marks is a word, so that any part of a text is a
phrase. This is done with each message that comes in, so it looks at the different characters of a text, of
which there are few, rather than at each character.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

_BLANK_OR_ASCII_WORD: Final = "".join(
    character if character.isalnum() else " " for character in map(chr, range(128))
)

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)

# The four letters i of Turkish are one: which of them an I means depends on the language.
_DOTTED_I, _DOTLESS_I = "i\u0307", "\u0131"

_MARKS: Final = frozenset({"Mn", "Mc"})
_LAST_MARK: Final = 0x1F000

_LETTER, _MARK, _UNSPACED_LETTER, _SEPARATOR = range(4)

_kinds: dict[str, int] = {}
"""The kind of each character that was seen; there are not many more than a hundred thousand."""

_unseen: dict[str, bool] = {}

_plain: dict[str, str] = {}
_ACCENT: Final = re.compile("[\u0300-\u036f]+")
_ACCENTED: Final = re.compile("[a-z\u0370-\u04ff][\u0300-\u036f]+$")
_STROKED: Final = {
    "ł": "l",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "þ": "th",
    "æ": "ae",
    "œ": "oe",
    "ħ": "h",
    "ŧ": "t",
    "ŋ": "n",
    "ґ": "г",
    "ı": "i",
}
"""Letters that Unicode does not take apart."""


def folded(text: str) -> str:
    """Return a text in the form in which those are equal that differ only in case, width or invisible
    characters."""
    if text.isascii():
        return text.lower()
    for character in filter(_is_unseen, set(text)):
        text = text.replace(character, "")
    text = _compatible(_compatible(text).casefold())
    if _DOTLESS_I in text or _DOTTED_I in text:
        text = _compatible(text.replace(_DOTTED_I, "i").replace(_DOTLESS_I, "i"))
    return text


def without_accents(text: str) -> str:
    """Return the text, which is folded, with plain letters in place of Latin, Greek and Cyrillic ones with
    marks."""
    if text.isascii():
        return text
    for character in set(text):
        plain = _plain.get(character)
        if plain is None:
            plain = _plain[character] = _plain_of(character)
        if plain != character:
            text = text.replace(character, plain)
    return text


def spaced_words(text: str) -> str:
    """Return the words of the text, folded, each with a blank before it and one behind the last; "" for
    none."""
    words = text.lower().translate(_BLANK_OR_ASCII_WORD).split() if text.isascii() else _words(folded(text))
    return f" {' '.join(words)} " if words else ""


def _words(text: str) -> list[str]:
    characters = set(text)
    kinds = {character: _kind(character) for character in characters}
    for character, kind in kinds.items():
        if kind == _SEPARATOR and character != " ":
            text = text.replace(character, " ")
    if _UNSPACED_LETTER not in kinds.values():
        return text.split()
    marks = [character for character, kind in kinds.items() if kind == _MARK]
    words: list[str] = []
    for place, run in enumerate(_unspaced_runs().split(text)):
        if place % 2:
            apart = " ".join(run)
            for mark in marks:
                apart = apart.replace(f" {mark}", mark)
            words += apart.split()
        else:
            words += run.split()
    return words


@cache
def _unspaced_runs() -> re.Pattern[str]:
    """Return the pattern of runs that are written without spaces. Python knows no class of marks, and to list
    them takes a moment."""
    marks = "".join(
        character
        for character in map(chr, range(0x300, _LAST_MARK))
        if unicodedata.category(character) in _MARKS
    )
    return re.compile(f"([{_UNSPACED}][{_UNSPACED}{marks}]*)")


def _compatible(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _plain_of(character: str) -> str:
    if character in _STROKED:
        return _STROKED[character]
    base = unicodedata.normalize("NFD", character)
    # A short i is another letter in every language that has it.
    if len(base) == 1 or character == "\u0439" or not _ACCENTED.match(base):
        return "" if _ACCENT.fullmatch(character) else character
    return _ACCENT.sub("", base)


def _kind(character: str) -> int:
    kind = _kinds.get(character)
    if kind is None:
        kind = _kinds[character] = _kind_of(character)
    return kind


def _kind_of(character: str) -> int:
    category = unicodedata.category(character)
    if category in _MARKS:
        return _MARK
    if not character.isalnum():
        return _SEPARATOR
    return _UNSPACED_LETTER if _UNSPACED_CHARACTER.match(character) else _LETTER


def _is_unseen(character: str) -> bool:
    found = _unseen.get(character)
    if found is None:
        found = _unseen[character] = _UNSEEN.match(character) is not None
    return found
