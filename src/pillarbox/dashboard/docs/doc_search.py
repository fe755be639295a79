"""Searches the documentation: operations of the API and sections of the guide that have all words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
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


class SearchedSection(NamedTuple):
    """A section of the guide as it is searched: what is shown of it, and its title and all of it folded."""

    address: str
    page: str
    heading: str
    text: str
    title_folded: str
    all_folded: str


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
    fitting = [section for section in _searched() if _has(section.all_folded, words)]
    best = sorted(fitting, key=lambda section: not _has(section.title_folded, words))[:RESULTS]
    return [
        GuideMatch(section.address, section.page, section.heading, _excerpt(section.text, words))
        for section in best
    ]


@cache
def _searched() -> Sequence[SearchedSection]:
    """Return all sections of the guide, folded once."""
    found = []
    for name, page in guide.texts():
        for section in page.sections:
            heading = section.heading
            title = f"{page.title} {heading.text}".casefold()
            anchor = "" if heading.level == 1 else f"#{heading.anchor}"
            found.append(
                SearchedSection(
                    address=f"{guide.path_of(name)}{anchor}",
                    page=page.title,
                    heading=heading.text,
                    text=section.text,
                    title_folded=title,
                    all_folded=f"{title} {section.text}".casefold(),
                )
            )
    return found


def _has(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return the text around the first word that stands in it."""
    plain = " ".join(text.split())
    places = [place for word in words if (place := plain.casefold().find(word)) >= 0]
    begin = max(0, min(places, default=0) - AROUND)
    end = min(len(plain), begin + 3 * AROUND)
    return f"{'…' if begin else ''}{plain[begin:end]}{'…' if end < len(plain) else ''}"
