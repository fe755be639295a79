"""What the text of a question means: words, phrases, and what is not to be there (inboxes.md 5.2). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pillarbox.inboxes.search.folding import spaced_words

MOST_WORDS: Final = 32

# A phrase up to the end where its second mark is missing; what stands at a mark without a blank is apart.
_ITEM: Final = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')


class TooManyWords(Exception):  # noqa: N818 - who asks is told
    """There are more than `MOST_WORDS`."""


@dataclass(frozen=True, slots=True)
class SearchWords:
    """Each item is one word, or several that follow one another, folded and between blanks, as it stands in
    searched texts. `is_hopeless`: something is looked for, and it has no letter and no digit."""

    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    is_hopeless: bool = False

    def __bool__(self) -> bool:
        return bool(self.wanted or self.excluded or self.is_hopeless)


def words(text: str) -> SearchWords:
    """The words of a question. What has no letter and no digit is no word, and is left out."""
    wanted: dict[str, None] = {}
    excluded: dict[str, None] = {}
    count = 0
    something = False
    for minus, phrase, word in _ITEM.findall(text):
        count += len((phrase or word).split())
        something = something or not (minus or phrase.isspace() or not (phrase or word))
        item = spaced_words(phrase or word)
        if item:
            (excluded if minus else wanted)[item] = None
    if count > MOST_WORDS:
        raise TooManyWords
    return SearchWords(tuple(wanted), tuple(excluded), is_hopeless=something and not wanted)
