"""Lists and cursors (conventions section 10, contract decision 5).

The order is by id, newest first, and a cursor is a position: the row need not exist. A statement takes three
arguments from the page, `*page.args`, and is written as two branches of which only one can find rows. So each
walks the index (team_id, id) from the cursor, and never past the page:

    SELECT id, name FROM (
        (SELECT * FROM things WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM things WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM things WHERE team_id = $1 AND id = $5)
    ) AS page

`$2` is the upper end (null while travelling to newer items), `$3` the lower end (null otherwise) and
`$4` one more than the limit. A third branch, for one row by its id, makes the statement that of
`GET /things/{id}` as well: its arguments are `*NO_PAGE, id`, and those of a page `*page.args, None`. So the
columns stand once. In lists of mail each branch names its columns: that is a tenth faster.

A list that is wanted whole is read a block at a time and sent as it is read (`listed`): however long it is,
it takes the memory of one block, and other requests are served between two blocks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from pillarbox.kernel.wire.problems import Invalid, InvalidParameter
from pillarbox.kernel.wire.query import Query
from pillarbox.kernel.wire.uuids import well_formed

T = TypeVar("T")
S = TypeVar("S")

MOST = 100
DEFAULT = 20
BLOCK = 100
"""Rows that are read at once of a list that is wanted whole."""

NEWEST = UUID(int=2**128 - 1)
OLDEST = UUID(int=0)
BEGIN, END = b'{"object":"list","has_more":false,"data":[', b"]}"
LIMIT_REASON = "Use an integer from 1 to 100."

NO_PAGE = (None, None, 0)
"""The arguments in place of `page.args` for a statement that finds one row, or rows of other conditions."""

PAGING = {"limit": Annotated[int, Meta(ge=1, le=MOST)], "after": UUID, "before": UUID}
"""The query parameters of a list whose cursors are UUIDs."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted. `limit` None means all of it."""

    limit: int | None
    after: UUID | None = None
    before: UUID | None = None

    @classmethod
    def read(
        cls,
        query: Query,
        default: int | None = DEFAULT,
        cursor: Callable[[str], UUID | None] | None = None,
    ) -> Page:
        """Return the page that the query asks for; `default` None for lists that are whole without `limit`.

        `cursor` reads ids that are no UUIDs on the wire. Checked in the contract's order: limit, both
        cursors, malformed cursor.
        """
        limit = query.integer("limit", LIMIT_REASON)
        if limit is not None and not 1 <= limit <= MOST:
            raise InvalidParameter("limit", LIMIT_REASON)
        after, before = query.text("after"), query.text("before")
        if after and before:
            raise Invalid("Use either `after` or `before`, not both.")
        read = cursor or _uuid
        return cls(
            default if limit is None else limit,
            _cursor("after", after, read),
            _cursor("before", before, read),
        )

    @property
    def args(self) -> tuple[UUID | None, UUID | None, int]:
        """Upper end, lower end and how many rows to fetch."""
        if self.limit is None:
            raise ValueError("a list that is wanted whole is read in blocks: use `listed`")
        upper = None if self.before else self.after or NEWEST
        return upper, self.before, self.limit + 1


class ListOf(Struct, Generic[T], kw_only=True):
    """One page of a list."""

    object: Literal["list"] = "list"
    has_more: bool
    data: list[T]


def paging(cursor: Any) -> dict[str, Any]:
    """Return the query parameters of a list whose cursors are of another type."""
    return {**PAGING, "after": cursor, "before": cursor}


def envelope(rows: Sequence[T], page: Page, shape: Callable[[T], S]) -> ListOf[S]:
    """Return the list envelope, newest first, from the rows that the pattern above fetched."""
    if page.limit is None:
        raise ValueError("a list that is wanted whole is read in blocks: use `listed`")
    more = len(rows) > page.limit
    kept = list(rows[: page.limit])
    if page.before:
        kept.reverse()
    return ListOf(has_more=more, data=[shape(row) for row in kept])


class HasId(Protocol):
    """A row with an id."""

    @property
    def id(self) -> UUID: ...


Row = TypeVar("Row", bound=HasId)
Read = Callable[[Page], Awaitable[Sequence[Row]]]
"""Reads the rows of a page, by the pattern above."""


async def listed(read: Read[Row], page: Page, shape: Callable[[Row], S]) -> ListOf[S] | AsyncIterator[bytes]:
    """Return the body of the answer: the list envelope, or the same in pieces where it is wanted whole
    and has more than a block. `read` must not be inside a transaction: nobody knows how slowly the pieces
    are taken."""
    if page.limit is not None:
        return envelope(await read(page), page, shape)
    block = await _block(read, page.after, page.before)
    if block.is_last:
        return ListOf(has_more=False, data=[shape(row) for row in block.rows])
    return _pieces(read, block, page.before, shape)


async def every_row(read: Read[Row]) -> list[Row]:
    """Return all rows of a list, for commands; a request sends them as they are read (`listed`)."""
    block = await _block(read, None, None)
    found = list(block.rows)
    while not block.is_last:
        block = await _block(read, found[-1].id, None)
        found += block.rows
    return found


@dataclass(frozen=True, slots=True)
class _Block(Generic[Row]):
    rows: Sequence[Row]
    is_last: bool


async def _block(read: Read[Row], after: UUID | None, end: UUID | None) -> _Block[Row]:
    """Return the next rows from the newest on, as far as `end`, which is not among them."""
    rows = await read(Page(BLOCK, after=after))
    kept = [row for row in rows[:BLOCK] if end is None or row.id > end]
    return _Block(kept, len(rows) <= BLOCK or len(kept) < BLOCK)


async def _pieces(
    read: Read[Row], block: _Block[Row], end: UUID | None, shape: Callable[[Row], Any]
) -> AsyncIterator[bytes]:
    before = BEGIN
    while block.rows:
        yield before + msgspec.json.encode([shape(row) for row in block.rows])[1:-1]
        if block.is_last:
            break
        before = b","
        block = await _block(read, block.rows[-1].id, end)
    yield END


class EncodedRows(NamedTuple):
    """Rows as JSON with commas between, newest first; `text` and `last`, the id of the last one, are None
    where there are none."""

    text: str | None
    last: UUID | None
    is_last: bool


ReadEncoded = Callable[[UUID, UUID], Awaitable[EncodedRows]]
"""Reads the next rows between two positions, the upper one first."""


async def encoded(read: ReadEncoded, page: Page) -> bytes | AsyncIterator[bytes]:
    """Return the body of a list that is wanted whole and may be very long, as `listed` would make it, from
    rows that the database has encoded: a million rows cost the process hardly anything, and other requests do
    not wait for it."""
    end = page.before or OLDEST
    block = await read(page.after or NEWEST, end)
    if block.is_last:
        return BEGIN + (block.text or "").encode() + END
    return _encoded_pieces(read, block, end)


async def _encoded_pieces(read: ReadEncoded, block: EncodedRows, end: UUID) -> AsyncIterator[bytes]:
    before = BEGIN
    while block.text is not None and block.last is not None:
        yield before + block.text.encode()
        if block.is_last:
            break
        before = b","
        block = await read(block.last, end)
    yield END


def ascending(stored: Sequence[Row], page: Page) -> tuple[Sequence[Row], bool]:
    """Return one page of a short list whose ids ascend with its order, and whether there is more of it."""
    rows = list(stored)
    if page.after is not None:
        rows = [row for row in rows if row.id > page.after]
    elif page.before is not None:
        rows = [row for row in rows if row.id < page.before]
    if page.limit is None:
        return rows, False
    kept = rows[-page.limit :] if page.before is not None else rows[: page.limit]
    return kept, len(kept) < len(rows)


def _cursor(name: str, text: str | None, read: Callable[[str], UUID | None]) -> UUID | None:
    found = None if text is None else read(text)
    if text is not None and found is None:
        raise InvalidParameter(name, "Use the id of an item of the list.")
    return found


def _uuid(text: str) -> UUID | None:
    return UUID(text) if well_formed(text) else None
