"""Sentences of `doctor` and `verify` in the language of the page.

They say them in English, for the commands and for the result that is kept. A page finds the text that a
sentence was made from and says the same with its values. A sentence that is not known, such as one of another
release, stays English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from pillarbox.dashboard.texts import LANGUAGES, LONGEST_SENTENCE, examination, language, sentence_pattern
from pillarbox.dashboard.texts.languages import ENGLISH
from pillarbox.dashboard.texts.number_format import current

PART: Final = "part"
EVERY_ONE: Final = "any"
SECRETS: Final = "key_ring"
"""Gaps quote the sentences of this check."""

_PLACE: Final = re.compile(r"{\w+}")
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


class SaidText(NamedTuple):
    """A text as the page shows it. `language` is the code of its language where it is not the page's."""

    text: str
    language: str | None = None


def said(name: str, sentence: str) -> SaidText:
    """Return a sentence of the check of this name in the language of the page, else as it is."""
    return _in_own_language(sentence, name.partition(".")[0], EVERY_ONE)


def said_gap(name: str, sentence: str) -> SaidText:
    """Return the sentence of the gap of this name in the language of the page, else as it is."""
    return _in_own_language(sentence, name, SECRETS, EVERY_ONE)


def _in_own_language(sentence: str, *groups: str) -> SaidText:
    if language() == ENGLISH:
        return SaidText(sentence)
    known = _said(sentence, groups)
    return SaidText(sentence, ENGLISH) if known is None else SaidText(known)


def _said(sentence: str, groups: Sequence[str]) -> str | None:
    """Return the sentence in the language of the page; None where no text of the groups fits it."""
    if len(sentence) > LONGEST_SENTENCE:
        return None
    for key, pattern in _patterns(*groups).items():
        if (found := pattern.fullmatch(sentence)) is not None:
            values = {place: _value(place, value) for place, value in found.groupdict().items()}
            return LANGUAGES[language()][key].format(**values)
    return None


def _value(place: str, value: str) -> str:
    """Return a value as the page's language writes it; what it is, the beginning of its place says."""
    own = current()
    if place.startswith("why"):
        return _said(value, (PART,)) or value
    if place.startswith("number"):
        return value.translate(str.maketrans(",.", own.thousands + own.decimal))
    if place.startswith(("day", "time")):
        pattern = own.day.replace("%Y", r"\1").replace("%m", r"\2").replace("%d", r"\3")
        return _DAY.sub(pattern, value)
    return value


@cache
def _patterns(*groups: str) -> Mapping[str, re.Pattern[str]]:
    """Return what fits each text of the groups, those with the most words of their own first."""
    texts = [(key, text) for key, text in examination.TEXTS.items() if key.split(".")[1] in groups]
    texts.sort(key=lambda entry: -len(_PLACE.sub("", entry[1])))
    return {key: re.compile(sentence_pattern(text)) for key, text in texts}
