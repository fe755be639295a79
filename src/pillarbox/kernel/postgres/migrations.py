"""Migrations: numbered plain SQL, forward only, one transaction each, under an advisory lock.

A migration that was applied never changes again: its checksum is kept, and a different one stops the
start. A database that a newer release has migrated is refused too, unless the newer migrations say that this
release goes on with them (`-- compatible since: N`, kept in the table): then the nodes of an installation can
be upgraded one by one (docs/decisions/0051).

A migration waits for its locks `LOCK_SECONDS` at most, and is tried again: a session that waits for a lock on
a busy table stops all sessions behind it. One whose statements are all `… CONCURRENTLY` runs outside a
transaction.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import asyncpg

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, begin_session
from pillarbox.kernel.postgres.pooler import refuse_transaction_mode

log = get("database")

FOLDER = Path(__file__).parents[2] / "schema" / "migrations"
FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
LOCK = 0x70696C6C_61726278
OLDEST_SERVER = 140000
COMPATIBLE = re.compile(r"(?m)^-- compatible since: (\d+)$")

LOCK_SECONDS = 3
LOCK_TRIES = 10
LOCK_POLL = 0.1
LOCK_PAUSE = 1.0
"""Long enough for autovacuum to give way (deadlock_timeout is one second), too short to stop requests."""

SAY_AFTER = 2.0
SAY_EVERY = 30.0

HOLDER = """
    SELECT host(a.client_addr) AS client, a.pid AS session, a.application_name AS application,
           extract(epoch FROM now() - a.backend_start)::bigint AS connected_seconds,
           left(a.query, 120) AS statement
      FROM pg_locks l
      JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND l.classid::bigint = $1::bigint AND l.objid::bigint = $2::bigint
"""

TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        version          integer     NOT NULL PRIMARY KEY,
        name             text        NOT NULL,
        checksum         text        NOT NULL,
        applied_at       timestamptz NOT NULL DEFAULT now(),
        compatible_since integer
    )
"""

# Releases before 0018 made the table without it.
HAS_COLUMN = """
    SELECT EXISTS (SELECT FROM pg_attribute
                    WHERE attrelid = 'schema_migrations'::regclass AND attname = 'compatible_since')
"""
ADD_COLUMN = "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS compatible_since integer"

RECORD = """
    INSERT INTO schema_migrations (version, name, checksum, compatible_since) VALUES ($1, $2, $3, $4)
"""

APPLIED = """
    SELECT m.version, m.name, m.checksum, m.applied_at,
           (to_jsonb(m) ->> 'compatible_since')::integer AS compatible_since
      FROM schema_migrations m
     ORDER BY m.version
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

    @property
    def compatible_since(self) -> int:
        """The oldest schema version whose release can go on working with the schema after this migration."""
        found = COMPATIBLE.search(self.sql)
        return int(found[1]) if found else self.version

    @property
    def is_concurrent(self) -> bool:
        """Whether it builds indexes beside the writers, which no transaction allows."""
        return any(" CONCURRENTLY " in statement for statement in statements_of(self.sql))


class MigrationRow(NamedTuple):
    """A row of `schema_migrations`; `compatible_since` is None where an older release has written it."""

    version: int
    name: str
    checksum: str
    applied_at: datetime
    compatible_since: int | None


def statements_of(sql: str) -> list[str]:
    """Return the statements of a migration without comments, with single blanks; bodies in $$ stay whole."""
    bare = re.sub(r"(?m)--.*$", "", sql)
    parts: list[str] = [""]
    for piece in re.split(r"(\$\$.*?\$\$)", bare, flags=re.DOTALL):
        if piece.startswith("$$"):
            parts[-1] += piece
            continue
        first, *others = piece.split(";")
        parts[-1] += first
        parts += others
    return [text for part in parts if (text := " ".join(part.split()))]


def migrations_in(folder: Path = FOLDER) -> list[Migration]:
    """Return the migrations in order; their numbers are 1, 2, 3 … without a gap."""
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
    """Raise MigrationError unless the database at `url` has this release's schema, or a newer one that fits;
    raise PoolerError where it cannot be reached properly."""
    await refuse_transaction_mode(url)
    conn = await asyncpg.connect(
        url,
        timeout=15,
        command_timeout=15,
        server_settings={"application_name": "pillarbox migrate"},
    )
    try:
        if not await has_table(conn, "schema_migrations"):
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
    await wait_for_lock(conn)
    try:
        await conn.execute("SET client_min_messages = warning")
        await begin_session(conn)
        await refuse_other_encoding(conn)
        await conn.execute(TABLE)
        if not await conn.fetchval(HAS_COLUMN):
            await conn.execute(ADD_COLUMN)
        pending = await pending_of(conn, migrations)
        for migration in pending:
            await apply_patiently(conn, migration)
        return [migration.version for migration in pending]
    finally:
        await conn.execute("SELECT pg_advisory_unlock($1)", LOCK)


async def wait_for_lock(conn: Connection) -> None:
    """Take the lock of migrations. While another process has it, a line names that process, soon and then
    every half minute: it may build an index for hours, or hang."""
    waited, say_at = 0.0, SAY_AFTER
    # Not in one statement that waits: an index that is built beside the writers would wait for it in turn.
    while not await conn.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
        if waited >= say_at:
            say_at += SAY_EVERY
            if holder := await conn.fetchrow(HOLDER, LOCK >> 32, LOCK & 0xFFFFFFFF):
                log.warning(
                    "schema.waiting",
                    reason="another server migrates the database",
                    seconds=int(waited),
                    **{name: value for name, value in holder.items() if value is not None},
                )
        await asyncio.sleep(LOCK_POLL)
        waited += LOCK_POLL


async def server_number(conn: Connection) -> int:
    """Return the version of the server: 180006 is 18.6."""
    return int(await conn.fetchval("SELECT current_setting('server_version_num')"))


async def refuse_old_server(conn: Connection) -> None:
    """Refuse servers older than PostgreSQL 14, the oldest that has what the statements use."""
    number = await server_number(conn)
    if number < OLDEST_SERVER:
        raise MigrationError(f"PostgreSQL {number // 10000} is too old; Pillarbox needs version 14 or newer.")


async def refuse_other_encoding(conn: Connection) -> None:
    """Refuse a new database whose encoding cannot hold every text; one that is in use stays as it is."""
    encoding = await conn.fetchval("SELECT current_setting('server_encoding')")
    if encoding != "UTF8" and not await has_table(conn, "schema_migrations"):
        raise MigrationError(
            f"The database has the encoding {encoding}, which cannot hold every text; make it anew: CREATE "
            "DATABASE … ENCODING 'UTF8' TEMPLATE template0."
        )


async def has_table(conn: Connection, table: str) -> bool:
    """Tell whether the database has a table of this name."""
    found: bool = await conn.fetchval("SELECT to_regclass($1) IS NOT NULL", table)
    return found


async def applied_in(conn: Connection) -> list[MigrationRow]:
    """Return the migrations that were applied, in order; works with the table of an older release too."""
    return [MigrationRow(**row) for row in await conn.fetch(APPLIED)]


async def pending_of(conn: Connection, migrations: list[Migration]) -> list[Migration]:
    """Return the migrations to apply; raises where those already applied do not fit this release."""
    applied = await applied_in(conn)
    refuse_unknown(applied, migrations)
    return migrations[len(applied) :]


def refuse_unknown(applied: Sequence[MigrationRow], migrations: Sequence[Migration]) -> None:
    """Raise MigrationError where an applied migration was changed, or a newer one does not go with
    this release."""
    known = {migration.version: migration for migration in migrations}
    for row in applied:
        migration = known.get(row.version)
        if migration is None:
            if row.compatible_since is None or row.compatible_since > len(migrations):
                raise MigrationError(
                    f"The database has schema version {applied[-1].version}, but this release knows only "
                    f"version {len(migrations)}; start the newer release."
                )
        elif migration.checksum != row.checksum:
            raise MigrationError(
                f"The migration {migration.version:04}_{migration.name} was changed after it was applied."
            )


async def apply_patiently(conn: Connection, migration: Migration) -> None:
    """Apply a migration; where it does not get its locks in time it lets the others go on and tries again."""
    for left in reversed(range(LOCK_TRIES)):
        try:
            await apply(conn, migration)
            return
        except asyncpg.LockNotAvailableError:
            if left == LOCK_TRIES - 1:
                log.warning(
                    "schema.waiting", reason="long transactions hold locks", migration=migration.version
                )
            if not left:
                raise MigrationError(
                    f"The migration {migration.version:04}_{migration.name} did not get its locks: something "
                    "works in long transactions on this database; try again when that is over."
                ) from None
            await asyncio.sleep(LOCK_PAUSE)


async def apply(conn: Connection, migration: Migration, *, alone: bool = False) -> None:
    """Run one migration and remember it, both or neither. `alone`: nobody else uses this database, and it
    may be in a transaction."""
    try:
        if migration.is_concurrent and not alone:
            await apply_outside(conn, migration)
            return
        async with conn.transaction():
            await conn.execute(f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}")
            await conn.execute(migration.sql.replace(" CONCURRENTLY ", " "))
            await record(conn, migration)
    except asyncpg.LockNotAvailableError:
        raise
    except asyncpg.PostgresError as error:
        raise MigrationError(
            f"The migration {migration.version:04}_{migration.name} failed: {error}."
        ) from error


async def apply_outside(conn: Connection, migration: Migration) -> None:
    """Apply the migration statement by statement. What an interrupted run left behind, its own first
    statement drops."""
    for statement in statements_of(migration.sql):
        await conn.execute(statement)
    await record(conn, migration)


async def record(conn: Connection, migration: Migration) -> None:
    await conn.execute(
        RECORD, migration.version, migration.name, migration.checksum, migration.compatible_since
    )
