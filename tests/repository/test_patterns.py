"""Regular expressions mean the same on every Python that we run on.

In some releases of 3.11 a group with a possessive quantifier, `(?:…)*+`, goes on from where its last, failed
try ended and not from where that try began: a match is too long, or missing. Atomic groups, `(?>(?:…)*)`, and
possessive quantifiers behind one character or class are right everywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator

import pytest

import pillarbox

parser = importlib.import_module("re._parser")
constants = importlib.import_module("re._constants")

ONE_CHARACTER = {constants.LITERAL, constants.NOT_LITERAL, constants.ANY, constants.IN}

WRONG = (r"(?:ab)*+", r"x(?:y(?:ab|c){1,3}+)?", r"(?=(?:ab)++)", r"(a|(?:bc)?+)")
RIGHT = (r"[ab]*+", r"a++b", r"(?>(?:ab)*)", r"(?:a++b)+")

Pattern = re.Pattern[str] | re.Pattern[bytes]


def has_possessive_group(parsed: Iterable[object]) -> bool:
    """Whether something of more than one character is repeated without giving back."""
    for part in parsed:
        if not isinstance(part, tuple):
            if isinstance(part, parser.SubPattern | list) and has_possessive_group(part):
                return True
            continue
        if part and part[0] is constants.POSSESSIVE_REPEAT:
            repeated = part[1][2]
            if len(repeated) != 1 or repeated[0][0] not in ONE_CHARACTER:
                return True
        if has_possessive_group(part):
            return True
    return False


def patterns() -> Iterator[tuple[str, Pattern]]:
    for found in pkgutil.walk_packages(pillarbox.__path__, "pillarbox."):
        if found.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{found.name}.{name}", value


def parsed(pattern: Pattern) -> Iterable[object]:
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    made: Iterable[object] = parser.parse(pattern.pattern, flags)
    return made


@pytest.mark.parametrize("pattern", [*WRONG, *RIGHT])
def test_the_rule_finds_groups(pattern: str) -> None:
    assert has_possessive_group(parser.parse(pattern)) is (pattern in WRONG)


def test_no_group_has_a_possessive_quantifier() -> None:
    found = list(patterns())
    assert len(found) > 100
    assert [name for name, pattern in found if has_possessive_group(parsed(pattern))] == []
