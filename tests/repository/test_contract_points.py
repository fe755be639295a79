"""Pages of the contract that say which test covers a point name tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FILE = re.compile(r"`(tests/[\w/]+\.py)`((?:,? `test_\w+`)+)")
HEADING = re.compile(r"^## \d+\. Points that a test covers$", re.M)

PAGES = [
    page for page in sorted((ROOT / "docs/contract").glob("*.md")) if HEADING.search(page.read_text("utf-8"))
]


def rows(page: Path) -> Iterator[str]:
    """The rows of the table, without its head."""
    text = page.read_text("utf-8")
    found = HEADING.search(text)
    assert found is not None
    table = [line for line in text[found.end() :].splitlines() if line.startswith("|")]
    yield from table[2:]


def test_there_is_such_a_page() -> None:
    assert "inboxes.md" in [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_point_has_a_test(page: Path) -> None:
    missing = []
    for row in rows(page):
        named = [
            (file, test) for file, tests in FILE.findall(row) for test in re.findall(r"`(test_\w+)`", tests)
        ]
        if not named:
            missing.append(f"no test: {row}")
        for file, test in named:
            path = ROOT / file
            if not path.is_file() or not re.search(rf"def {test}\b", path.read_text("utf-8")):
                missing.append(f"{file} {test}")
    assert missing == []
