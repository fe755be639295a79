"""The messages that seem to fit, by the matrices of their blocks.

A row of a matrix is a number with a bit for each column. A term is in the columns that all of its rows have,
and a message has a term where one of its columns has it. What is found this way may err, and only so that a
message too many is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.inboxes.search import queries
from pillarbox.inboxes.search.queries import StoredBlock
from pillarbox.inboxes.search.terms import VERSION
from pillarbox.kernel.postgres.database import TeamDb

MOST_ROWS: Final = 96
"""Of each block. A question with more is asked with less, and what is found is compared all the same."""

OCTETS_AT_ONCE: Final = 8 * 1024 * 1024
"""Of rows that are read by one statement."""

Term = tuple[int, ...]
"""Rows that a message with the term has in one of its columns."""


class Clause(NamedTuple):
    """A message has all terms of one of the alternatives."""

    alternatives: tuple[tuple[Term, ...], ...]


class CandidateColumns(NamedTuple):
    """Columns of a block in which messages begin that seem to fit, as a number whose first bit is the first
    column."""

    block: StoredBlock
    bits: int


@dataclass(slots=True)
class Candidates:
    """The messages that may fit. `messages` counts the columns in which a message begins, of all blocks that
    were read."""

    blocks: list[CandidateColumns] = field(default_factory=list)
    messages: int = 0

    @property
    def count(self) -> int:
        return sum([columns.bits.bit_count() for columns in self.blocks])

    def newest(self, limit: int) -> list[tuple[UUID, list[int]]]:
        """Return the columns of so many messages with their blocks, of the newest blocks first and the newest
        of each."""
        found: list[tuple[UUID, list[int]]] = []
        for columns in self.blocks:
            found.append((columns.block.id, list(_numbers(columns, limit))))
            limit -= len(found[-1][1])
            if limit <= 0:
                break
        return found


async def read(db: TeamDb, inbox_id: UUID, clauses: Sequence[Clause], lower: UUID, upper: UUID) -> Candidates:
    """Return the messages in blocks that seem to fit, with ids from `lower` to below `upper`."""
    clauses = affordable(clauses)
    blocks = await queries.blocks(db, inbox_id, lower, upper)
    found = Candidates()
    numbers = sorted({row for clause in clauses for terms in clause.alternatives for t in terms for row in t})
    for some in _together(blocks, len(numbers)):
        read_rows = await queries.rows(db, inbox_id, some, numbers) if numbers else []
        bits = {one.place: one.bits for one in read_rows}
        for place, block in enumerate(some, 1):
            columns = _fitting(block, numbers, bits.get(place, b""), clauses)
            if block.oldest_id < lower or block.newest_id >= upper:
                columns &= await _between(db, inbox_id, block, lower, upper)
            found.messages += int.from_bytes(block.begins).bit_count()
            if columns:
                found.blocks.append(CandidateColumns(block, columns))
    return found


def affordable(clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses with fewer rows, where they have too many: each alternative loses its last terms,
    and then the last clauses go."""
    kept = max((len(terms) for clause in clauses for terms in clause.alternatives), default=0)
    cut = list(clauses)
    while kept > 1 and _rows(cut) > MOST_ROWS:
        kept -= 1
        cut = [Clause(tuple(terms[:kept] for terms in clause.alternatives)) for clause in clauses]
    while len(cut) > 1 and _rows(cut) > MOST_ROWS:
        cut.pop()
    return cut


def _rows(clauses: Sequence[Clause]) -> int:
    return sum([len(term) for clause in clauses for terms in clause.alternatives for term in terms])


def _together(blocks: Sequence[StoredBlock], rows: int) -> Iterator[list[StoredBlock]]:
    some: list[StoredBlock] = []
    octets = 0
    for block in blocks:
        some.append(block)
        octets += block.columns // 8 * rows
        if octets >= OCTETS_AT_ONCE:
            yield some
            some, octets = [], 0
    if some:
        yield some


def _fitting(block: StoredBlock, numbers: Sequence[int], bits: bytes, clauses: Sequence[Clause]) -> int:
    begins = int.from_bytes(block.begins)
    width = block.columns // 8
    if block.version != VERSION or len(bits) != width * len(numbers):
        return begins
    rows = {number: int.from_bytes(bits[at * width : (at + 1) * width]) for at, number in enumerate(numbers)}
    continued = ((1 << block.columns) - 1) ^ begins
    fitting = begins
    for clause in clauses:
        one_of = 0
        for terms in clause.alternatives:
            having = fitting
            for term in terms:
                having &= _beginnings(rows, term, begins, continued)
                if not having:
                    break
            one_of |= having
        fitting = one_of
    return fitting


def _beginnings(rows: dict[int, int], term: Term, begins: int, continued: int) -> int:
    """Return the first columns of the messages that have the term in one of their columns."""
    columns = -1
    for row in term:
        columns &= rows[row]
    found = columns & begins
    moving = columns & continued
    while moving:
        moving <<= 1
        found |= moving & begins
        moving &= continued
    return found


async def _between(db: TeamDb, inbox_id: UUID, block: StoredBlock, lower: UUID, upper: UUID) -> int:
    """Return the columns of messages with these ids."""
    messages = await queries.messages_of(db, inbox_id, block.id)
    ids = [messages[at : at + 16] for at in range(0, len(messages), 32)]
    first, end = lower.bytes, upper.bytes
    return int("".join(["1" if first <= one < end else "0" for one in ids]), 2)


def _numbers(columns: CandidateColumns, limit: int) -> Iterator[int]:
    """Yield the columns that are set, the last first."""
    digits = format(columns.bits, f"0{columns.block.columns}b")
    at = len(digits)
    while limit > 0 and (at := digits.rfind("1", 0, at)) >= 0:
        yield at
        limit -= 1
