"""The examples of README and guide: fenced blocks, each under a comment that says what becomes of it.

    <!-- run -->                                 it runs, and its commands end with 0
    <!-- run; output: TEXT -->                   and it prints this
    <!-- run; exit status 1; output: TEXT -->    and its last command ends with 1
    <!-- run in the background; output: TEXT --> it begins, and has printed this when the page is over
    <!-- run as the server -->                   the server of all examples gets its flags
    <!-- not run: REASON -->

Blocks of a page run in their order; what one sets, the next ones have.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/guide").glob("*.md")))

FENCE = re.compile(r"```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
MARK = re.compile(
    r"<!-- (?:not run: (?P<reason>\S.*)"
    r"|run(?P<how> in the background| as the server)?(?:; exit status (?P<status>\d))?"
    r"(?:; output: (?P<output>.+))?) -->"
)
INDENTED = re.compile(r"\n\n(?: {4}\S.*\n)+")


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str
    mark: str
    """The line above it."""

    @property
    def how(self) -> str | None:
        """ "run", "background", "server" or "not run"; None without a mark."""
        found = MARK.fullmatch(self.mark)
        if found is None:
            return None
        return "not run" if found["reason"] else (found["how"] or "run").split()[-1]

    @property
    def status(self) -> int:
        found = MARK.fullmatch(self.mark)
        return int(found["status"] or 0) if found else 0

    @property
    def output(self) -> str:
        found = MARK.fullmatch(self.mark)
        return (found["output"] or "") if found else ""


def examples_of(page: str, text: str) -> Iterator[Example]:
    for found in FENCE.finditer(text):
        before = text[: found.start()]
        lines = before.rstrip("\n").splitlines()
        yield Example(
            page=page,
            line=before.count("\n") + 1,
            language=found["language"],
            text=found["text"],
            mark=lines[-1] if lines else "",
        )


def all_examples() -> list[Example]:
    return [one for page in PAGES for one in examples_of(page, (ROOT / page).read_text(encoding="utf-8"))]


def server_flags() -> list[str]:
    """Return what the examples ask of the server that they talk to."""
    texts = [one.text for one in all_examples() if one.how == "server"]
    return [word for text in texts for word in shlex.split(text, comments=True)[1:]]
