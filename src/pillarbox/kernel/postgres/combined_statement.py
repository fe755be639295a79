"""Several statements as one: what a commit writes to many tables costs one round trip (architecture 2.6).

A round trip costs more, here and in PostgreSQL, than most of the rows that it carries. Rows travel as JSON,
one document for each table: it is written in C, is one parameter instead of an array for each column, and
`json_to_recordset` reads it as fast as arrays are read.

    STORE = "INSERT INTO things (team_id, id, at) SELECT k.* FROM json_to_recordset($1::text::json) AS k (…)"
    rows = await combined(conn, [Statement(STORE, (rows_json(things),))], Statement(ASK, (teams,)))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import asyncpg
import msgspec

from pillarbox.kernel.postgres.database import Source

_PLACE = re.compile(r"\$(\d+)")
_WITH = "WITH "
_FAIL = "fail_statement('a part has another number of rows than expected')"


class Statement(NamedTuple):
    """SQL with its own `$1` … and what stands for them."""

    sql: str
    args: tuple[Any, ...]


async def combined(source: Source, writes: Sequence[Statement], last: Statement) -> list[Any]:
    """Carry out all of it, or nothing, and return the rows of `last`.

    The statements see the same snapshot: none sees what another writes, and two of them must not change the
    same row. `last` may have parts of its own (WITH). Without a transaction around it this is one of its own.
    """
    sql = _whole(tuple([write.sql for write in writes]), last.sql)
    args = [arg for statement in (*writes, last) for arg in statement.args]
    rows: list[Any] = await source.fetch(sql, *args)
    return rows


class ExpectedRowCount(NamedTuple):
    """A statement that must give back so many rows: what it has changed or found."""

    sql: str
    args: tuple[Any, ...]
    rows: int | None = None


class StatementFailed(asyncpg.PostgresError):
    """A statement has called `fail_statement` of the schema: nothing that it would have done is done."""

    sqlstate = "PB001"


class RowCountMismatch(Exception):  # noqa: N818 - what was assumed is not so, which is no error
    """Nothing was done, because a statement gave back another number of rows than was expected."""


async def execute_all(source: Source, writes: Sequence[ExpectedRowCount]) -> None:
    """Carry out all of it, in this order, in one round trip and one transaction; or RowCountMismatch."""
    arguments = [arg for write in writes for arg in write.args]
    wanted = [write.rows for write in writes if write.rows is not None]
    sql = _checked(tuple([(write.sql, write.rows is not None) for write in writes]))
    try:
        await source.fetchval(sql, *arguments, *wanted)
    except StatementFailed:
        raise RowCountMismatch from None


@lru_cache(maxsize=64)
def _checked(writes: tuple[tuple[str, bool], ...]) -> str:
    """Return the statement of these writes, whose last line fails where a count is wrong: only a failure
    undoes what the statement has done. That line asks for one part after the other, and a part is carried out
    when it is asked for."""
    texts = tuple([sql for sql, _ in writes])
    place = sum([_places(sql) for sql in texts])
    cases = []
    for number, (_, counts) in enumerate(writes):
        if counts:
            place += 1
            met = f"(SELECT count(*) FROM w{number})"  # noqa: S608 - a number of ours
            cases.append(f"WHEN {met} <> ${place}::bigint THEN {_FAIL}")
    return _whole(texts, f"SELECT CASE {' '.join(cases)} ELSE 0 END", renumber=False)


@lru_cache(maxsize=256)
def _whole(writes: tuple[str, ...], last: str, *, renumber: bool = True) -> str:
    parts, used = [], 0
    for number, sql in enumerate(writes):
        parts.append(f"w{number} AS ({_shifted(sql, used)})")
        used += _places(sql)
    last = (_shifted(last, used) if renumber else last).lstrip()
    if not parts:
        return last
    joint = ", " if last.startswith(_WITH) else " "
    return f"{_WITH}{', '.join(parts)}{joint}{last.removeprefix(_WITH)}"


def _places(sql: str) -> int:
    return max((int(place) for place in _PLACE.findall(sql)), default=0)


def _shifted(sql: str, by: int) -> str:
    return _PLACE.sub(lambda place: f"${int(place[1]) + by}", sql)


_encode = msgspec.json.Encoder(enc_hook=str).encode


def rows_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows for `json_to_recordset($1::text::json)`: column to value, where a column that is missing
    is NULL.

    No text in them may hold NUL, not even within a value for a `json` column.
    """
    return _encode(rows).decode()


def row_json(row: object) -> str:
    """Return a dataclass as JSON for `json_populate_record(NULL::things, $2::text::json)`.

    Its fields have the names of columns. The statement names each column that it takes, so columns that the
    row does not know keep their defaults. Texts may hold no NUL, as with `rows_json`.
    """
    return _encode(row).decode()
