"""Finds words that address a machine: "ignore previous instructions", names of tools, marks of chats.

    instructions("Ignore all previous instructions and …")
    # [Instruction("ignore_instructions", "en", "Ignore all previous instructions and …")]

Letters of other scripts that look Latin, digits in words, spaced letters, and characters that nobody sees
change nothing. A finding is a hint: a mail about language models quotes such phrases, and a new phrase is not
known here. Nothing is to be decided by it alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pillarbox.mail.deception.folding import clean, folded, in_latin
from pillarbox.mail.deception.phrases import PHRASES, InstructionCode, Phrase

LONGEST_TEXT: Final = 262_144
"""Characters that are read."""
MOST_OF_A_CODE: Final = 3
PIECE: Final = 16_384
"""Characters in which phrases are looked for at once, so that other threads may run in between."""
OVERLAP: Final = 512
"""Characters that two pieces have in common: longer than any phrase."""
LONGEST_EXCERPT: Final = 160


class Instruction(NamedTuple):
    """A phrase that addresses a machine. `language` is empty where it is in none."""

    code: InstructionCode
    language: str
    excerpt: str


def instructions(text: str) -> list[Instruction]:
    """Return the phrases that address a machine, a few of each code; an excerpt is one line without what
    nobody sees."""
    cleaned = clean(text[:LONGEST_TEXT])
    found: dict[InstructionCode, list[Instruction]] = {}
    for at in range(0, len(cleaned), PIECE - OVERLAP):
        for one in _in_piece(cleaned[at : at + PIECE]):
            known = found.setdefault(one.code, [])
            if len(known) < MOST_OF_A_CODE and one not in known:
                known.append(one)
        if at + PIECE >= len(cleaned):
            break
    return [one for known in found.values() for one in known]


def _in_piece(cleaned: str) -> list[Instruction]:
    text = folded(cleaned)
    latin = in_latin(text)
    found = []
    for phrase in PHRASES:
        compared = latin if phrase.is_latin else text
        if any(stem in compared for stem in phrase.stems):
            found += _of_phrase(phrase, compared, cleaned)
    return found


def _of_phrase(phrase: Phrase, compared: str, cleaned: str) -> list[Instruction]:
    found = []
    for match, _ in zip(phrase.pattern.finditer(compared), range(MOST_OF_A_CODE), strict=False):
        around = max(0, LONGEST_EXCERPT - (match.end() - match.start())) // 2
        begin = max(0, match.start() - around)
        excerpt = cleaned[begin : begin + LONGEST_EXCERPT].strip()
        found.append(Instruction(phrase.code, phrase.language, excerpt))
    return found
