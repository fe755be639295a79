"""Pages that say that a part is not built name no part that is built.

Such sentences are written before a part exists, and nobody reads them again when it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.sources import text_of
from pillarbox.application import SLICES

ROOT = Path(__file__).parents[2]
PLACES = ("docs", "src", "deploy")
SUFFIXES = {".md", ".py", ".html", ".sql", ".yaml"}
HISTORY = ROOT / "docs" / "decisions"
"""Records say what was so when they were written."""

PHRASE = re.compile(
    r"not\s+(?:yet\s+)?built\b|do(?:es)?\s+not\s+exist\s+yet"
    r"|\bcomes?\s+with\s+a\s+later\s+(?:release|version)",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"[.:;|](?=\s)|\n\s*\n")
PARTS = {
    *(slice_.name.replace("_", " ") for slice_ in SLICES),
    *("imports", "exports", "threads", "drafts", "labels", "mailbox", "sessions", "passkeys", "dashboard"),
}
WORDS = re.compile(
    rf"\b(?:{'|'.join(sorted(re.escape(name.removesuffix('s')) for name in PARTS))})s?\b", re.I
)


def claims(text: str) -> Iterator[str]:
    """The sentences of a text that say that something is not built; of a row of a table, the cell."""
    begin = 0
    for end in [*(match.start() for match in SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[begin:end]
        # `not built: exports` is a sentence although it has a colon.
        if PHRASE.search(sentence) or (begin and PHRASE.search(text[:begin][-12:])):
            yield " ".join(sentence.split())
        begin = end + 1


def test_nothing_that_is_built_is_said_not_to_be() -> None:
    pages = [path for name in PLACES for path in (ROOT / name).rglob("*") if path.suffix in SUFFIXES]
    wrong = [
        f"{path.relative_to(ROOT)}: {claim}"
        for path in (*pages, ROOT / "README.md", ROOT / "CONTRIBUTING.md")
        if HISTORY not in path.parents
        for claim in claims(text_of(path))
        if WORDS.search(claim)
    ]
    assert wrong == [], "say what is there now, or name only the part that is missing"


@pytest.mark.parametrize(
    "text",
    [
        "Mail of a topic (and broadcasts, which are not built) carries List-Unsubscribe.",
        "| CSV-03 | Cells are quoted. | formula injection | not built: exports |",
        "Read this. Inboxes do not\nexist yet. Read on.",
        "Import of contacts comes with a later release.",
    ],
)
def test_such_a_sentence_is_found(text: str) -> None:
    assert [claim for claim in claims(text) if WORDS.search(claim)] != []


def test_others_are_not() -> None:
    text = "Broadcasts are sent. Greylisting is not built. | a | not built: DANE | contacts |"
    assert [claim for claim in claims(text) if WORDS.search(claim)] == []
