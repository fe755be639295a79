"""Reads the text of a search: words, phrases, and those that must not occur (inboxes.md 5.2). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pillarbox.inboxes.search.folding import spaced_words

MOST_WORDS: Final = 32

# A phrase up to the end where its second mark is missing; what stands at a mark without a blank is apart.
_ITEM: Final = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')


_OPERATOR: Final = re.compile(
    r"(from|to|cc|bcc|subject|has|before|after|older|newer|older_than|newer_than|in|is|label|filename):"
)
_JOINING: Final = frozenset(("OR", "AND", "NOT", "|", "||", "&&"))


class OperatorRefused(Exception):  # noqa: N818 - who asks is told
    """Other searches know the operator in `args`, and this one does not."""


class TooManyWords(Exception):  # noqa: N818 - who asks is told
    """There are more than `MOST_WORDS`."""


@dataclass(frozen=True, slots=True)
class SearchWords:
    """Each item is one word, or several that follow one another, folded and between blanks, as it stands in
    searched texts; without the blank behind it, it is the beginning of a word. `is_hopeless`: something is
    looked for, and it has no letter and no digit."""

    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    is_hopeless: bool = False

    def __bool__(self) -> bool:
        return bool(self.wanted or self.excluded or self.is_hopeless)


def words(text: str) -> SearchWords:
    """Return the words of a search. Characters that are neither letters nor digits are left out.

    A `*` behind a word says that it is the beginning of one. Raises OperatorRefused and TooManyWords.
    """
    wanted: dict[str, None] = {}
    excluded: dict[str, None] = {}
    count = 0
    something = False
    for minus, phrase, word in _ITEM.findall(text):
        count += len((phrase or word).split())
        something = something or not (minus or phrase.isspace() or not (phrase or word))
        if operator := _operator(word):
            raise OperatorRefused(operator)
        item = spaced_words(phrase or word)
        if word.endswith("*"):
            item = item.rstrip()
        if item:
            (excluded if minus else wanted)[item] = None
    if count > MOST_WORDS:
        raise TooManyWords
    return SearchWords(tuple(wanted), tuple(excluded), is_hopeless=something and not wanted)


def _operator(word: str) -> str | None:
    """Return the operator of other searches that a word is, or begins with."""
    if word in _JOINING:
        return word
    found = _OPERATOR.match(word.lower())
    return found[0] if found is not None else None
