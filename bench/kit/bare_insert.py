"""What the database takes for a batch when nothing but the driver stands before it.

The rows of one batch are read from all tables that it wrote, and inserted again and again with fresh ids and
instants, by one statement for each batch that is a transaction of its own: the same columns, indexes and
bodies, the row of metrics and the row of the request log among them. Ids and values are made before the clock
starts, and they are ordered by time, as ours are.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from bench.kit.processes import Meter
from bench.kit.server import Server
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids

BATCH = """
    SELECT team_id, id, response_body
      FROM logs
     WHERE endpoint = '/emails/batch' AND response_status = 200
     ORDER BY id DESC LIMIT 1
"""

COLUMNS = """
    SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type
      FROM pg_attribute a
     WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY a.attnum
"""

ROWS = {
    "emails": "SELECT * FROM emails WHERE team_id = $1 AND id = ANY ($2::uuid[]) ORDER BY id",
    "contents": "SELECT * FROM contents WHERE team_id = $1 AND id = ANY ($2::uuid[]) ORDER BY id",
    "recipients": "SELECT * FROM recipients WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) ORDER BY 1, 2",
    "deliveries": "SELECT * FROM deliveries WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) ORDER BY 1, 2",
    "timeline": "SELECT * FROM timeline WHERE team_id = $1 AND email_id = ANY ($2::uuid[]) ORDER BY email_id",
    "metric_increments": "SELECT * FROM metric_increments WHERE team_id = $1 ORDER BY id DESC LIMIT 1",
    "logs": "SELECT * FROM logs WHERE team_id = $1 AND id = ANY ($2::uuid[])",
}
"""The rows of a batch, by table: of its emails, but for the log, where it is of the request. Commits of
several batches have one increment together."""

WAL = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"

OF_EMAIL = frozenset({("emails", "id"), ("emails", "content_id"), ("contents", "id")})
"""Columns with the id of the email, beside all that are called `email_id`."""


class Inserted(NamedTuple):
    """What the driver inserted, in which time, with which processor time of PostgreSQL and octets of WAL;
    `wrong` names the tables that got another number of rows."""

    mails: int
    seconds: float
    postgres: float
    wal: float
    wrong: list[str]

    @property
    def rate(self) -> float:
        return self.mails / self.seconds


class Column(NamedTuple):
    table: str
    name: str
    type: str
    values: list[Any]

    @property
    def is_of_email(self) -> bool:
        return self.name == "email_id" or (self.table, self.name) in OF_EMAIL

    @property
    def is_own_id(self) -> bool:
        return self.name == "id" and not self.is_of_email


class Batch(NamedTuple):
    """A stored batch, as columns; those that are NULL in all its rows are left out."""

    emails: int
    columns: list[Column]

    def statement(self) -> str:
        place = 0
        parts = []
        for table in ROWS:
            of_table = [column for column in self.columns if column.table == table]
            arrays = [f"${place + at}::{column.type}[]" for at, column in enumerate(of_table, 1)]
            place += len(of_table)
            names = ", ".join([column.name for column in of_table])
            parts.append(f"INSERT INTO {table} ({names}) SELECT * FROM unnest({', '.join(arrays)})")
        *first, last = parts
        written = ", ".join([f"w{number} AS ({part})" for number, part in enumerate(first)])
        return f"WITH {written} {last}"

    def arguments(self, ids: Ids) -> list[Sequence[Any]]:
        """The values of one more batch."""
        of_emails = ids.several(self.emails)
        now = datetime.now(UTC)
        found: list[Sequence[Any]] = []
        for column in self.columns:
            if column.is_of_email:
                found.append(of_emails)
            elif column.is_own_id:
                found.append(ids.several(len(column.values)))
            elif column.type == "timestamp with time zone":
                found.append([now] * len(column.values))
            else:
                found.append(column.values)
        return found

    def rows(self, table: str) -> int:
        return max(len(column.values) for column in self.columns if column.table == table)


def inserted(server: Server, mails: int, connections: int) -> Inserted:
    """Insert at least so many mails over so many connections, batch by batch."""
    return asyncio.run(_inserted(server, mails, connections))


async def _inserted(server: Server, mails: int, connections: int) -> Inserted:
    conns = [await server.connect() for _ in range(connections)]
    try:
        batch = await _stored_batch(conns[0])
        statement, ids = batch.statement(), Ids(SystemClock())
        statements = [await conn.prepare(statement) for conn in conns]
        batches = [batch.arguments(ids) for _ in range(-(-mails // batch.emails))]
        before = await _counts(conns[0])
        # Counting has changed pages: they are written now, not while the clock runs.
        await conns[0].execute("CHECKPOINT")
        written, meter, began = await conns[0].fetchval(WAL), Meter(server.process.pid), time.monotonic()
        waiting = iter(batches)
        await asyncio.gather(*[_insert(prepared, waiting) for prepared in statements])
        took, used = time.monotonic() - began, meter.used()
        written = await conns[0].fetchval(WAL) - written
        after = await _counts(conns[0])
    finally:
        for conn in conns:
            await conn.close()
    wrong = [table for table in ROWS if after[table] - before[table] != len(batches) * batch.rows(table)]
    return Inserted(
        mails=len(batches) * batch.emails,
        seconds=took,
        postgres=used["postgres"],
        wal=float(written),
        wrong=wrong,
    )


async def _insert(
    statement: asyncpg.prepared_stmt.PreparedStatement, batches: Iterable[Sequence[Sequence[Any]]]
) -> None:
    for arguments in batches:
        await statement.fetch(*arguments)


async def _stored_batch(conn: asyncpg.Connection) -> Batch:
    """The last batch that was accepted."""
    answered = await conn.fetchrow(BATCH)
    emails = [UUID(found["id"]) for found in json.loads(answered["response_body"])["data"]]
    columns = []
    for table, select in ROWS.items():
        wanted = [answered["id"]] if table == "logs" else emails
        rows = await conn.fetch(select, answered["team_id"], *([wanted] if "$2" in select else []))
        for name, kind in await conn.fetch(COLUMNS, table):
            values = [row[name] for row in rows]
            if any(value is not None for value in values):
                columns.append(Column(table, name, kind, values))
    return Batch(len(emails), columns)


async def _counts(conn: asyncpg.Connection) -> dict[str, int]:
    return {table: await conn.fetchval(f"SELECT count(*) FROM {table}") for table in ROWS}
