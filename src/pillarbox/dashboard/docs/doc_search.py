"""Searches the documentation: operations of the API and sections of the guide that have all words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pillarbox.dashboard.docs import guide
from pillarbox.dashboard.docs.reference import ApiReference, Operation

LONGEST: Final = 100
MOST_WORDS: Final = 6
RESULTS: Final = 30
"""So many operations and so many sections are shown."""
AROUND: Final = 70


class GuideMatch(NamedTuple):
    """A section of the guide that fits: its address, the page, the heading, and some text around a word."""

    address: str
    page: str
    heading: str
    excerpt: str


class DocMatches(NamedTuple):
    """The results of a search, the best first."""

    operations: Sequence[Operation]
    sections: Sequence[GuideMatch]


def search(reference: ApiReference, text: str) -> DocMatches:
    """Return the operations and the sections that have all words of the text."""
    words = text[:LONGEST].casefold().split()[:MOST_WORDS]
    if not words:
        return DocMatches((), ())
    return DocMatches(_operations(reference, words), _sections(words))


def _operations(reference: ApiReference, words: Sequence[str]) -> Sequence[Operation]:
    fitting = [
        operation
        for operation in reference.operations
        if operation.kind != "page" and operation.same_as is None and _has(operation.words, words)
    ]
    return sorted(fitting, key=lambda operation: not _has(_title(operation), words))[:RESULTS]


def _title(operation: Operation) -> str:
    return f"{operation.method} {operation.path} {operation.summary}".casefold()


def _sections(words: Sequence[str]) -> Sequence[GuideMatch]:
    ranked: list[tuple[int, GuideMatch]] = []
    for name, page in guide.texts():
        for section in page.sections:
            title = f"{page.title} {section.heading.text}".casefold()
            if not _has(f"{title} {section.text}".casefold(), words):
                continue
            anchor = "" if section.heading.level == 1 else f"#{section.heading.anchor}"
            excerpt = _excerpt(section.text, words)
            match = GuideMatch(f"{guide.path_of(name)}{anchor}", page.title, section.heading.text, excerpt)
            ranked.append((0 if _has(title, words) else 1, match))
    return [match for _, match in sorted(ranked, key=lambda entry: entry[0])][:RESULTS]


def _has(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return the text around the first word that stands in it."""
    plain = " ".join(text.split())
    places = [place for word in words if (place := plain.casefold().find(word)) >= 0]
    begin = max(0, min(places, default=0) - AROUND)
    end = min(len(plain), begin + 3 * AROUND)
    return f"{'…' if begin else ''}{plain[begin:end]}{'…' if end < len(plain) else ''}"
