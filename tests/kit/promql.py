"""What a PromQL expression asks for: names of series, their label matchers, and the labels it groups by.

A reader for the expressions of our dashboard and alerts, not for all of PromQL: whether an expression is well
formed is for Prometheus itself to say (`kit.prometheus`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(
    r"""\s+
    | (?P<string>"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
    | (?P<range>\[[^\]]*\])
    | (?P<number>\d+(?:\.\d+)?(?:[smhdwy])?\b)
    | (?P<word>[A-Za-z_:][A-Za-z0-9_:]*)
    | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^(){},<>=])""",
    re.X,
)
OPERATORS = frozenset({"and", "or", "unless", "bool", "offset", "atan2", "group_left", "group_right"})
GROUPING = frozenset({"by", "without", "on", "ignoring"})


class Selector(NamedTuple):
    """A series that is asked for, with the labels that are matched."""

    name: str
    labels: frozenset[str]


class Asked(NamedTuple):
    """All that an expression asks for."""

    selectors: tuple[Selector, ...]
    grouped: frozenset[str]
    functions: frozenset[str]

    @property
    def names(self) -> set[str]:
        return {selector.name for selector in self.selectors}


class NotPromQL(ValueError):  # noqa: N818 - it is what was given, not what happened
    """The expression has something that this reader does not know."""


def tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(expression):
        found = TOKEN.match(expression, at)
        if found is None:
            raise NotPromQL(f"unexpected {expression[at : at + 10]!r} in {expression!r}")
        at = found.end()
        if found.lastgroup is not None:
            yield found.lastgroup, found.group()


def asked(expression: str) -> Asked:
    """Read one expression."""
    every = [*tokens(expression), ("end", "")]
    selectors: list[Selector] = []
    grouped: set[str] = set()
    functions: set[str] = set()
    at = 0
    while at < len(every):
        kind, text = every[at]
        following = every[at + 1][1] if at + 1 < len(every) else ""
        if kind == "word" and text in GROUPING:
            labels, at = _list(every, at + 1)
            grouped |= labels
            continue
        if kind == "word" and text not in OPERATORS:
            if following in ("(", "by", "without"):
                functions.add(text)
            elif following == "{":
                labels, at = _matchers(every, at + 1)
                selectors.append(Selector(text, labels))
                continue
            else:
                selectors.append(Selector(text, frozenset()))
        at += 1
    return Asked(tuple(selectors), frozenset(grouped), frozenset(functions))


def _list(every: list[tuple[str, str]], at: int) -> tuple[frozenset[str], int]:
    """Return the names between parentheses, and where it goes on."""
    end = next(place for place in range(at, len(every)) if every[place][1] == ")")
    return frozenset(text for kind, text in every[at:end] if kind == "word"), end + 1


def _matchers(every: list[tuple[str, str]], at: int) -> tuple[frozenset[str], int]:
    end = next(place for place in range(at, len(every)) if every[place][1] == "}")
    return frozenset(text for kind, text in every[at:end] if kind == "word"), end + 1
