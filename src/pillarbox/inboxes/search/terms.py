"""The terms by which blocks find messages, as places in the signature of a message. Pure.

A signature has `ROWS` bits. Of each word, each pair of words that follow one another, and each part of one to
three octets of subject and correspondents, some bits are set. Which ones is stored: where it changes,
`VERSION` does. `signatures.py` computes the same for many messages at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Final

VERSION: Final = 1
"""Of what is stored."""

WORD_ROWS: Final = 6656
OCTET_ROWS: Final = 1536
ROWS: Final = WORD_ROWS + OCTET_ROWS
"""Words have rows of their own: some parts of addresses are in all messages, and their rows are full."""

ROWS_OF_PART: Final = 64

COLUMNS: Final = 1024
"""Of a block. With more than that the messages that no block has would take long to compare."""

WORDS_OF_COLUMN: Final = 256
OCTETS_OF_COLUMN: Final = 1000
"""The most words and octets of a column; the rest of a long message goes into another column."""

WORD_BITS: Final = 6
"""Of a word, and of two words that follow one another. Of messages without it, one in a thousand seems to
have it: where a million have two words and none has them together, a thousand are compared."""

OCTET_BITS: Final = (1, 1, 2)
"""For parts of one, two and three octets."""

MOST_PIECES: Final = 10
"""Of a text about so many say enough."""

ATTACHMENT_BITS: Final = 4

ALL: Final = 0xFFFFFFFFFFFFFFFF
BASE: Final = 0x9E3779B97F4A7C15
PAIR: Final = 0xC2B2AE3D27D4EB4F
MIX: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class SearchField(IntEnum):
    """The parts of a message that are searched octet by octet."""

    SUBJECT = 1
    SENDER = 2
    TO = 3
    CC = 4
    BCC = 5
    ATTACHMENT = 6
    """Set where a message has attachments; without octets."""


def word_hash(word: str) -> int:
    """Return the hash of a word's octets."""
    found, power = 0, 1
    for octet in word.encode():
        found = (found + (octet + 1) * power) & ALL
        power = power * BASE & ALL
    return found


def mixed(number: int) -> int:
    """Return a number each of whose bits depends on all bits of this one (the end of SplitMix64)."""
    number = ((number ^ (number >> 30)) * MIX[0]) & ALL
    number = ((number ^ (number >> 27)) * MIX[1]) & ALL
    return number ^ (number >> 31)


def rows(number: int, bits: int, first: int, count: int) -> Iterator[int]:
    """Yield the places of a term in a signature, among so many from the first one on."""
    for place in range(bits):
        if place % 4 == 0:
            number = mixed((number + place) & ALL)
        yield first + (((number >> 16 * (place % 4)) & 0xFFFF) * count >> 16)


def word_rows(number: int) -> tuple[int, ...]:
    """Return the rows of a word, or of two words."""
    return tuple(rows(number, WORD_BITS, 0, WORD_ROWS))


def octet_rows(number: int, bits: int) -> tuple[int, ...]:
    """Return the rows of one to three octets, or of a property without octets."""
    return tuple(rows(number, bits, WORD_ROWS, OCTET_ROWS))


def of_words(words: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the places of words that follow one another: of each pair, which has both words; of a word
    alone, its own."""
    hashes = [word_hash(word) for word in words]
    if len(hashes) > 1:
        hashes = [(one * PAIR + other) & ALL for one, other in pairwise(hashes)]
    return list(map(word_rows, hashes))


def of_octets(part: SearchField, text: str) -> list[tuple[int, ...]]:
    """Return the places of some pieces of a text that is somewhere in this part of a message."""
    octets = text.encode("utf-8", "replace")
    length = min(3, len(octets))
    pieces = dict.fromkeys(octets[at : at + length] for at in range(len(octets) - length + 1) if length)
    step = max(1, len(pieces) // MOST_PIECES)
    return [octet_rows(octets_key(part, piece), OCTET_BITS[length - 1]) for piece in list(pieces)[::step]]


def octets_key(part: SearchField, octets: bytes) -> int:
    """Return the number of one to three octets of a part of a message."""
    return part << 32 | len(octets) << 24 | int.from_bytes(octets, "little")


def of_attachment() -> tuple[int, ...]:
    """Return the places that say that a message has attachments."""
    return octet_rows(octets_key(SearchField.ATTACHMENT, b""), ATTACHMENT_BITS)
