"""SQL about all rows of one team, whichever slice they belong to: copying them and removing them.

The tables are those of the catalogue that have a `team_id`; so a table that is new is copied and removed as
well. Names come from the catalogue and are quoted by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source

MADE_BY_TRIGGERS: Final = ("rollup_versions",)
"""Tables whose rows are written with those of another table."""

OF_THE_MOMENT: Final = ("person_sessions", "processes")
"""Tables with a `team_id` whose rows belong to somebody else."""


class TeamTable(NamedTuple):
    """A table with rows of teams; `columns` are those that are stored as they are given."""

    name: str
    columns: list[str]


class MarkedTeam(NamedTuple):
    """A team whose id ends with the mark."""

    id: UUID
    name: str
    email: str
    created_at: datetime


async def marked_team(source: Source, mark: bytes) -> MarkedTeam | None:
    """Return the team whose id has these last eight octets."""
    row = await source.fetchrow(
        """
        SELECT id, name, email, created_at FROM teams
         WHERE substring(uuid_send(id) FROM 9) = $1
        """,
        mark,
    )
    return MarkedTeam(*row) if row else None


async def is_in_use(source: Source) -> bool:
    """Return whether the installation has several teams, or any mail."""
    return bool(
        await source.fetchval(
            """
            SELECT (SELECT count(*) FROM teams) > 1
                OR EXISTS (SELECT FROM emails)
                OR EXISTS (SELECT FROM received_emails)
            """
        )
    )


async def next_number(source: Source) -> int:
    """Return a number that no team has or will have."""
    return int(await source.fetchval("SELECT nextval(pg_get_serial_sequence('teams', 'number'))"))


async def set_next_number(source: Source, number: int) -> None:
    """Give the next team this number."""
    await source.execute("SELECT setval(pg_get_serial_sequence('teams', 'number'), $1, false)", number)


async def tables(source: Source) -> list[TeamTable]:
    """Return the tables with rows of teams, those that others refer to first."""
    rows = await source.fetch(
        """
        SELECT t.relname AS name,
               array_agg(a.attname::text ORDER BY a.attnum)
                   FILTER (WHERE a.attgenerated = '' AND a.attidentity = '') AS columns
          FROM pg_class t
          JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace AND t.relname <> ALL ($1)
         GROUP BY t.oid, t.relname
        HAVING bool_or(a.attname = 'team_id')
         ORDER BY EXISTS (SELECT FROM pg_constraint c WHERE c.conrelid = t.oid AND c.contype = 'f'), t.relname
        """,
        [*MADE_BY_TRIGGERS, *OF_THE_MOMENT],
    )
    return [TeamTable(row["name"], row["columns"]) for row in rows]


async def copy(source: Connection, target: Connection, table: TeamTable, team_id: UUID) -> int:
    """Copy the team's rows of one table; returns how many there were."""
    rows = BytesIO()
    columns = ", ".join(f'"{column}"' for column in table.columns)
    statement = f'SELECT {columns} FROM "{table.name}" WHERE team_id = $1'  # noqa: S608 - of the catalogue
    copied = await source.copy_from_query(statement, team_id, output=rows)
    count = int(copied.split()[-1])
    if count:
        rows.seek(0)
        await target.copy_to_table(table.name, source=rows, columns=table.columns)
    return count


async def copy_team(source: Connection, target: Connection, team_id: UUID) -> None:
    """Copy the row of the team itself."""
    rows = BytesIO()
    columns = ("id", "number", "name", "email", "status", "created_at")
    await source.copy_from_query(
        "SELECT id, number, name, email, status, created_at FROM teams WHERE id = $1", team_id, output=rows
    )
    rows.seek(0)
    await target.copy_to_table("teams", source=rows, columns=columns)


async def copy_people(source: Connection, target: Connection) -> None:
    """Copy the accounts."""
    rows = BytesIO()
    columns = ("id", "email", "email_key", "name", "password", "password_changed_at", "created_at")
    await source.copy_from_query(
        "SELECT id, email, email_key, name, password, password_changed_at, created_at FROM people",
        output=rows,
    )
    rows.seek(0)
    await target.copy_to_table("people", source=rows, columns=columns)


async def blobs(source: Source, team_id: UUID) -> list[str]:
    """Return the keys of the blobs that rows of the team name."""
    rows = await source.fetch(
        """
        SELECT blob FROM attachments WHERE team_id = $1 AND blob IS NOT NULL
         UNION
        SELECT blob FROM captured WHERE team_id = $1 AND blob IS NOT NULL
         UNION
        SELECT blob FROM received_sources WHERE team_id = $1 AND blob IS NOT NULL
         UNION
        SELECT blob FROM contact_imports WHERE team_id = $1 AND blob IS NOT NULL
         UNION
        SELECT blob FROM inbox_draft_attachments WHERE team_id = $1 AND blob IS NOT NULL
        """,
        team_id,
    )
    return [row["blob"] for row in rows]


async def remove(conn: Connection, name: str, team_id: UUID) -> int:
    """Remove the team's rows of one table; returns how many there were."""
    removed = await conn.execute(f'DELETE FROM "{name}" WHERE team_id = $1', team_id)  # noqa: S608
    return int(removed.split()[-1])


async def let_audit_entries_go(conn: Connection) -> None:
    """Let this transaction remove entries of the log of acts, and nobody else: it holds the table."""
    await conn.execute("ALTER TABLE audit_entries DISABLE TRIGGER audit_entry_stays")


async def keep_audit_entries(conn: Connection) -> None:
    """Refuse to remove entries again."""
    await conn.execute("ALTER TABLE audit_entries ENABLE TRIGGER audit_entry_stays")


async def remove_team(conn: Connection, team_id: UUID) -> None:
    """Remove the team's own row, and the choice of it from sessions of people of other teams."""
    await conn.execute("UPDATE person_sessions SET team_id = NULL WHERE team_id = $1", team_id)
    await conn.execute("DELETE FROM teams WHERE id = $1", team_id)


async def marked_people(source: Source, mark: bytes) -> list[UUID]:
    """Return the accounts whose ids have these last eight octets, and that are members of no team."""
    rows = await source.fetch(
        """
        SELECT p.id FROM people p
         WHERE substring(uuid_send(p.id) FROM 9) = $1
           AND NOT EXISTS (SELECT FROM team_members m WHERE m.person_id = p.id)
        """,
        mark,
    )
    return [row["id"] for row in rows]


async def remove_people(conn: Connection, people: Sequence[UUID]) -> None:
    """Remove accounts with their sessions, links, factors and subjects of providers."""
    await conn.execute(
        """
        WITH sessions AS (DELETE FROM person_sessions WHERE person_id = ANY ($1)),
             passkeys AS (DELETE FROM person_passkeys WHERE person_id = ANY ($1)),
             challenges AS (DELETE FROM person_challenges WHERE person_id = ANY ($1)),
             codes AS (DELETE FROM person_recovery_codes WHERE person_id = ANY ($1)),
             links AS (DELETE FROM person_links WHERE person_id = ANY ($1)),
             subjects AS (DELETE FROM person_openid_links WHERE person_id = ANY ($1)),
             changes AS (DELETE FROM person_address_changes WHERE person_id = ANY ($1))
        DELETE FROM people WHERE id = ANY ($1)
        """,
        people,
    )
