"""Copies of a team's rows, so that the database has a choice of plans."""

from __future__ import annotations

from typing import Final, NamedTuple

import asyncpg

from kit.world import Team

COPIES: Final = 1000
"""Copies of each row; three digits of an id tell them apart."""

ROWS: Final = 3
"""How many rows of a table are copied: the first by its key, so that parts of one thing go together."""

WITH_PARENT: Final = {
    "timeline": "email_id",
    "attachments": "email_id",
    "received_attachments": "email_id",
    "automation_runs": "event_id",
}
"""Tables with ids of their own, and the column that differs between copies as well."""

WITHOUT_TEAM: Final = ("people", "person_sessions", "teams")
"""Tables that are copied too, though their rows are of no team."""

COLUMNS: Final = """
    SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, NULL) AS type
      FROM pg_class AS c
      JOIN pg_attribute AS a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
       AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity = ''
     ORDER BY c.relname, a.attnum
"""
UNIQUE: Final = """
    SELECT i.indrelid::regclass::text AS "table",
           array_agg(a.attname::text ORDER BY array_position(i.indkey::int2[], a.attnum)) AS columns
      FROM pg_index AS i
      JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
     WHERE i.indisunique
     GROUP BY i.indexrelid, i.indrelid, i.indisprimary
     ORDER BY i.indisprimary DESC
"""

VARIED: Final = {
    "uuid": "overlay({0}::text PLACING lpad(to_hex(n), 3, '0') FROM 16 FOR 3)::uuid",
    "text": "n || '.' || {0}",
    "bytea": "{0} || int4send(n)",
    "smallint": "({0} + n)::smallint",
    "integer": "{0} + n",
    "bigint": "{0} + n",
    "date": "{0} - n",
    "timestamp with time zone": "{0} - n * interval '1 second'",
}
"""What makes the value of copy `n`, by the type of the column."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str


async def copy_rows(team: Team) -> dict[str, int]:
    """Copy rows of each table that has rows of this team, past its constraints between tables; return how
    many were made of each table."""
    columns: dict[str, list[Column]] = {}
    made: dict[str, int] = {}
    async with team.world.pool.acquire() as conn, conn.transaction():
        await conn.execute("SET LOCAL session_replication_role = replica")
        unique: dict[str, list[list[str]]] = {}
        for row in await conn.fetch(UNIQUE):
            unique.setdefault(row["table"], []).append(row["columns"])
        for row in await conn.fetch(COLUMNS):
            columns.setdefault(row["table"], []).append(Column(row["column"], row["type"]))
        for table, known in columns.items():
            if table in WITHOUT_TEAM or any(column.name == "team_id" for column in known):
                made[table] = await _copy(conn, team, table, known, unique.get(table, []))
    await team.world.pool.execute("VACUUM ANALYZE")
    return {table: number for table, number in made.items() if number}


async def _copy(
    conn: asyncpg.Connection, team: Team, table: str, columns: list[Column], unique: list[list[str]]
) -> int:
    varied = _varied(table, {column.name: column.type for column in columns}, unique)
    names = ", ".join(f'"{column.name}"' for column in columns)
    values = ", ".join(
        VARIED[column.type].format(f'k."{column.name}"') if column.name in varied else f'k."{column.name}"'
        for column in columns
    )
    order = ", ".join(f'"{name}"' for name in unique[0]) if unique else "ctid"
    condition = "$1::uuid IS NOT NULL" if table in WITHOUT_TEAM else "team_id = $1"
    sql = (
        f"INSERT INTO {table} ({names}) SELECT {values}"
        f" FROM (SELECT * FROM {table} WHERE {condition} ORDER BY {order} LIMIT $2) AS k,"
        " generate_series(1, $3::int) AS n"
        " ON CONFLICT DO NOTHING"
    )
    status = await conn.execute(sql, team.id, ROWS, COPIES)
    return int(status.rpartition(" ")[2])


def _varied(table: str, types: dict[str, str], unique: list[list[str]]) -> set[str]:
    """Return the columns whose values differ between copies: one of each unique index at least."""
    varied: set[str] = set()
    for columns in sorted(unique, key=lambda names: "id" not in names):
        own = [name for name in columns if name != "team_id" and types.get(name) in VARIED]
        if "id" in own:
            varied.add("id")
            if table in WITH_PARENT:
                varied.add(WITH_PARENT[table])
        elif own and not varied.intersection(own):
            varied.add(next((name for name in own if types[name] == "uuid"), own[0]))
    return varied
