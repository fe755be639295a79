"""Migrations: numbered plain SQL, forward only, one transaction each, under an advisory lock.

A migration that was applied never changes again: its checksum is kept, and a different one stops the
start. So does a database that a newer release has migrated.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.pooler import refuse_transaction_mode

FOLDER = Path(__file__).parents[2] / "schema" / "migrations"
FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
LOCK = 0x70696C6C_61726278
OLDEST_SERVER = 140000

TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        version    integer     NOT NULL PRIMARY KEY,
        name       text        NOT NULL,
        checksum   text        NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


class MigrationError(Exception):
    """The schema and this release do not fit; the message is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `schema/migrations`."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations_in(folder: Path = FOLDER) -> list[Migration]:
    """The migrations in order; their numbers are 1, 2, 3 … without a gap."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = FILE_NAME.fullmatch(path.name)
        if match is None:
            raise MigrationError(f"The migration {path.name} is not named NNNN_name.sql.")
        found.append(Migration(int(match[1]), match[2], path.read_text(encoding="utf-8")))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise MigrationError("The migrations are not numbered 0001, 0002, 0003 … without a gap.")
    return found


async def migrate_url(url: str) -> list[int]:
    """Bring the database at `url` to this release; the versions that were applied now."""
    conn = await asyncpg.connect(url, timeout=15, server_settings={"application_name": "pillarbox migrate"})
    try:
        return await migrate(conn, migrations_in())
    finally:
        await conn.close()


async def refuse_unmigrated_url(url: str) -> None:
    """MigrationError unless the database at `url` has exactly this release's schema; PoolerError where it
    cannot be reached properly."""
    await refuse_transaction_mode(url)
    conn = await asyncpg.connect(
        url,
        timeout=15,
        command_timeout=15,
        server_settings={"application_name": "pillarbox migrate"},
    )
    try:
        if not await conn.fetchval("SELECT to_regclass('schema_migrations') IS NOT NULL"):
            raise MigrationError("The database has no schema yet; start `pillarbox serve` once.")
        if await pending_of(conn, migrations_in()):
            raise MigrationError(
                "The database has an older schema; start `pillarbox serve` of this release once."
            )
    finally:
        # Abruptly: a hanging database would never confirm a graceful close.
        conn.terminate()


async def migrate(conn: Connection, migrations: list[Migration]) -> list[int]:
    """Apply what is missing, one process at a time; raise MigrationError if the schema does not fit."""
    await refuse_old_server(conn)
    await conn.execute("SELECT pg_advisory_lock($1)", LOCK)
    try:
        await conn.execute("SET client_min_messages = warning")
        await conn.execute(TABLE)
        pending = await pending_of(conn, migrations)
        for migration in pending:
            await apply(conn, migration)
        return [migration.version for migration in pending]
    finally:
        await conn.execute("SELECT pg_advisory_unlock($1)", LOCK)


async def refuse_old_server(conn: Connection) -> None:
    """PostgreSQL 14 is the oldest server that has what the statements use."""
    number = int(await conn.fetchval("SELECT current_setting('server_version_num')"))
    if number < OLDEST_SERVER:
        raise MigrationError(f"PostgreSQL {number // 10000} is too old; Pillarbox needs version 14 or newer.")


async def pending_of(conn: Connection, migrations: list[Migration]) -> list[Migration]:
    """What is still to be applied, after comparing what was applied with what this release knows."""
    known = {migration.version: migration for migration in migrations}
    applied = await conn.fetch("SELECT version, checksum FROM schema_migrations ORDER BY version")
    for row in applied:
        migration = known.get(row["version"])
        if migration is None:
            raise MigrationError(
                f"The database has schema version {applied[-1]['version']}, but this release knows only "
                f"version {len(migrations)}; start the newer release."
            )
        if migration.checksum != row["checksum"]:
            raise MigrationError(
                f"The migration {migration.version:04}_{migration.name} was changed after it was applied."
            )
    return migrations[len(applied) :]


async def apply(conn: Connection, migration: Migration) -> None:
    """Run one migration and remember it, both or neither."""
    try:
        async with conn.transaction():
            await conn.execute(migration.sql)
            await conn.execute(
                "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
                migration.version,
                migration.name,
                migration.checksum,
            )
    except asyncpg.PostgresError as error:
        raise MigrationError(
            f"The migration {migration.version:04}_{migration.name} failed: {error}."
        ) from error
