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
_MAY_BE_SPACED = re.compile(r"[ .\-_*]\w[ .\-_*]\w[ .\-_*]")
"""In each text with such a word, and found in a third of the time."""
_BETWEEN_LETTERS = re.compile(r"[ .\-_*]")
_DIGITS = re.compile(
    r"[013457$](?:(?<=[a-z].)[013457$]{0,2}(?=[a-z])|(?<=[01345$])(?<![a-z0-9].)(?=[a-z]{2}))"
)
"""Up to three between letters, or one before a word. What stands before them is asked for behind the first:
the search goes from digit to digit."""

_DRAWN_AS: Final = {
    "a": "ɑαаәᴀ",
    "b": "ʙβвь",
    "c": "ϲсҫᴄ",
    "d": "đԁᴅ",
    "e": "εеєᴇ",
    "f": "ք",
    "g": "ɡց",
    "h": "ħʜнһհ",
    "i": "ıɩɪιі",
    "j": "ϳјᴊ",
    "k": "κкᴋ",
    "l": "łʟӏ",
    "m": "мᴍ",
    "n": "ɴηпո",
    "o": "øοσоօᴏ",
    "p": "ρрᴘ",
    "q": "ԛզ",
    "r": "ʀг",
    "s": "ѕꜱ",
    "t": "ŧτтᴛ",
    "u": "μυսᴜ",
    "v": "νѵᴠ",
    "w": "ωԝᴡ",
    "x": "χх",
    "y": "ʏγуү",
    "z": "ζзᴢ",
}
"""Letters of other alphabets, small capitals and letters with a stroke, by the Latin letter that they look
like (after the confusables of UTS 39)."""

LIKE_LATIN: Final = {ord(one): letter for letter, drawn in _DRAWN_AS.items() for one in drawn}
"""The Latin letter for each of them, as `str.translate` takes it."""
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
    if _MAY_BE_SPACED.search(text):
        text = _SPACED.sub(lambda found: _BETWEEN_LETTERS.sub("", found[0]), text)
    return " ".join(text.split())


def folded(cleaned: str) -> str:
    """Return the text without accents and in lower case; each character stays one."""
    return cleaned.lower() if cleaned.isascii() else cleaned.translate(_FOLD)


def in_latin(folded_text: str) -> str:
    """Return the text with Latin letters for those that look like them; each character stays one."""
    text = folded_text if folded_text.isascii() else folded_text.translate(LIKE_LATIN)
    return _DIGITS.sub(lambda found: found[0].translate(_LETTERS_OF_DIGITS), text)
