"""The signatures of many messages at once, as a matrix: one row for each place of a signature, one column for
each message. Long messages have several columns, one after the other.

This is the one module that needs numpy, for a tenth of the time that Python would take; it is imported by the
job that describes messages alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

# One thread: nothing here multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from pillarbox.inboxes.search import terms
from pillarbox.inboxes.search.described import IndexedMessage
from pillarbox.inboxes.search.terms import (
    COLUMNS,
    OCTET_BITS,
    OCTET_ROWS,
    OCTETS_OF_COLUMN,
    ROWS,
    WORD_BITS,
    WORD_ROWS,
    WORDS_OF_COLUMN,
)

AT_ONCE: Final = 64
"""Messages whose numbers stay in the cache of the processor."""

Numbers = NDArray[np.uint64]

_BLANK: Final = np.array([octet in b" \n" for octet in range(256)])
_U: Final = np.uint64


class SignatureRows(NamedTuple):
    """How many bits a term has, and among which rows."""

    bits: int
    first: int
    among: int


OF_WORD: Final = SignatureRows(WORD_BITS, 0, WORD_ROWS)


def matrix(messages: Sequence[IndexedMessage]) -> bytes:
    """Return the signatures of messages that have room in a block, row for row; eight columns in an octet."""
    bits = np.zeros(ROWS * COLUMNS, np.uint8)
    column = 0
    for at in range(0, len(messages), AT_ONCE):
        some = messages[at : at + AT_ONCE]
        widths = [message.columns for message in some]
        first = [column + end - width for end, width in zip(accumulate(widths), widths, strict=True)]
        _words(bits, some, first, widths)
        _octets(bits, some, first, widths)
        column += sum(widths)
    return np.packbits(bits.reshape(ROWS, COLUMNS), axis=1).tobytes()


def _words(
    bits: NDArray[np.uint8], messages: Sequence[IndexedMessage], first: Sequence[int], widths: Sequence[int]
) -> None:
    octets = np.frombuffer(b"".join([message.searched + b"\n" for message in messages]), np.uint8)
    lengths = np.array([len(message.searched) + 1 for message in messages])
    is_blank = _BLANK[octets]
    # A text begins with a blank or a line end, and so does a word with what is before it.
    edges = np.flatnonzero(is_blank[1:] != is_blank[:-1]) + 1
    if not is_blank[0]:
        edges = np.concatenate((np.zeros(1, edges.dtype), edges))
    begins, ends = edges[0::2], edges[1::2]
    if not len(begins):
        return
    powers, inverses = _powers(len(octets))
    sums = np.zeros(len(octets) + 1, _U)
    np.cumsum((octets.astype(_U) + _U(1)) * powers, out=sums[1:])
    hashes = (sums[ends] - sums[begins]) * inverses[begins]
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)[:-1]))
    of_message = np.searchsorted(starts, begins, "right") - 1
    first_word = np.searchsorted(begins, starts)
    rank = np.arange(len(begins)) - first_word[of_message]
    last = np.array(widths) - 1
    columns = np.array(first)[of_message] + np.minimum(rank // WORDS_OF_COLUMN, last[of_message])
    _set(bits, hashes, columns, OF_WORD)
    # Words follow one another where one blank is between them.
    are_pairs = np.flatnonzero((begins[1:] - ends[:-1] == 1) & (octets[ends[:-1]] == 32))
    pairs = hashes[are_pairs] * _U(terms.PAIR) + hashes[are_pairs + 1]
    _set(bits, pairs, columns[are_pairs], OF_WORD)


def _octets(
    bits: NDArray[np.uint8], messages: Sequence[IndexedMessage], first: Sequence[int], widths: Sequence[int]
) -> None:
    texts = [text for message in messages for _, text in message.parts]
    parts = [part for message in messages for part, _ in message.parts]
    lengths = np.array([len(text) for text in texts], np.int64)
    octets = np.frombuffer(b"".join([*texts, b"\0\0\0"]), np.uint8).astype(_U)
    tags = np.repeat(np.array(parts, _U), lengths) << _U(32)
    begins = [
        sum([len(text) for _, text in message.parts[:place]])
        for message in messages
        for place in range(len(message.parts))
    ]
    counts = [len(message.parts) for message in messages]
    of_part = np.repeat(np.repeat(np.array(first), counts), lengths)
    last = np.repeat(np.repeat(np.array(widths) - 1, counts), lengths)
    place = np.repeat(np.array(begins, np.int64), lengths) + _within(lengths)
    columns = of_part + np.minimum(place // OCTETS_OF_COLUMN, last)
    count = int(lengths.sum())
    piece = np.zeros(count, _U)
    is_whole = np.ones(count, bool)
    for length, of_length in enumerate(OCTET_BITS, 1):
        added = octets[length - 1 : count + length - 1]
        piece = piece | added << _U(8 * (length - 1))
        is_whole = is_whole & (added != 0)
        keys = (tags | _U(length << 24) | piece)[is_whole]
        _set(bits, keys, columns[is_whole], SignatureRows(of_length, WORD_ROWS, OCTET_ROWS))
    having = np.array([one for one, m in zip(first, messages, strict=True) if m.has_attachment], np.int64)
    for row in terms.of_attachment():
        bits[row * COLUMNS + having] = 1


def _within(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, 2 … for each length, one after the other."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths)


def _set(bits: NDArray[np.uint8], numbers: Numbers, columns: NDArray[np.int64], rows: SignatureRows) -> None:
    for place in range(rows.bits):
        if place % 4 == 0:
            numbers = _mixed(numbers + _U(place))
        found = ((numbers >> _U(16 * (place % 4))) & _U(0xFFFF)) * _U(rows.among) >> _U(16)
        bits[(found.astype(np.int64) + rows.first) * COLUMNS + columns] = 1


def _mixed(numbers: Numbers) -> Numbers:
    numbers = (numbers ^ (numbers >> _U(30))) * _U(terms.MIX[0])
    numbers = (numbers ^ (numbers >> _U(27))) * _U(terms.MIX[1])
    return numbers ^ (numbers >> _U(31))


_known_powers: list[tuple[Numbers, Numbers]] = []


def _powers(count: int) -> tuple[Numbers, Numbers]:
    """Return the powers of the base, and what they are to be multiplied by to make 1."""
    if not _known_powers or len(_known_powers[0][0]) < count:
        size = max(count, 1 << 18)
        inverse = pow(terms.BASE, -1, 1 << 64)
        _known_powers[:] = [(_of_base(terms.BASE, size), _of_base(inverse, size))]
    powers, inverses = _known_powers[0]
    return powers[:count], inverses[:count]


def _of_base(base: int, count: int) -> Numbers:
    factors = np.full(count, base, _U)
    factors[0] = 1
    return np.cumprod(factors, dtype=_U)
