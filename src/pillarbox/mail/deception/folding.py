"""Text as it is compared with phrases: without marks that nobody sees, without accents, in one case.

cleaned = clean(text)           # what an excerpt is cut from
folded(cleaned)                 # of the same length: a place in one is a place in the other
in_latin(folded(cleaned))       # letters that look Latin are Latin, digits in words are letters
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from pillarbox.mail.deception.invisible import without_unseen

_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Marks that stand on letters; vowels of Indic and Semitic scripts are none of them."""
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*]\w){4,}(?!\w)")
"""A word of which each letter stands alone."""
_BETWEEN_LETTERS = re.compile(r"[ .\-_*]")
_BLANKS = re.compile(r"\s+")
_DIGITS = re.compile(r"(?<=[a-z])[013457$]{1,3}(?=[a-z])|(?<![a-z0-9])[01345$](?=[a-z]{2})")

_PAIRS: Final = (
    "аa вb гr еe зz іi јj кk мm нh оo пn рp сc ѕs тt уy хx ԁd ԛq ԝw ьb ѵv һh ӏl "
    "αa βb γy εe ζz ηn ιi κk μu νv οo ρp τt υu χx ωw ϲc ϳj "
    "ıi ɑa ɡg ɩi ʀr ʏy øo đd łl ħh ŧt"
)
"""A letter in lower case of another script, and the Latin one that it looks like."""
_LIKE_LATIN: Final = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}
_LETTERS_OF_DIGITS: Final = str.maketrans("013457$", "oieasts")


_MOST_KNOWN: Final = 20_000


class _Fold(dict[int, str]):
    """One character for each character, found once."""

    def __missing__(self, number: int) -> str:
        if len(self) > _MOST_KNOWN:
            self.clear()
        base, *marks = list(unicodedata.normalize("NFKD", chr(number)))
        found = self[number] = (base if all(map(unicodedata.combining, marks)) else chr(number)).casefold()[
            :1
        ]
        return found


_FOLD = _Fold()


def clean(text: str) -> str:
    """Return the text in one line, without what nobody sees, and with spaced words as words."""
    text = without_unseen(text)
    if not text.isascii():
        text = _MARKS.sub("", unicodedata.normalize("NFKC", text))
    text = _SPACED.sub(lambda found: _BETWEEN_LETTERS.sub("", found[0]), text)
    return _BLANKS.sub(" ", text).strip()


def folded(cleaned: str) -> str:
    """Return the text without accents and in lower case; each character stays one."""
    return cleaned.lower() if cleaned.isascii() else cleaned.translate(_FOLD)


def in_latin(folded_text: str) -> str:
    """Return the text with Latin letters for those that look like them; each character stays one."""
    text = folded_text if folded_text.isascii() else folded_text.translate(_LIKE_LATIN)
    return _DIGITS.sub(lambda found: found[0].translate(_LETTERS_OF_DIGITS), text)
