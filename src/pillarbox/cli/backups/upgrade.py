"""`pillarbox upgrade --check`: what this release would do to the database of the installation."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import asyncpg
import typer

from pillarbox import __version__
from pillarbox.cli.backups import queries
from pillarbox.cli.backups.database import PgBin, perform, unmigrated_database
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.observability.queries import last_backup
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.migration_rules import MEANINGS, hazards, tables_of
from pillarbox.kernel.postgres.migrations import (
    Migration,
    MigrationError,
    MigrationRow,
    applied_in,
    has_table,
    migrations_in,
    refuse_old_server,
    refuse_unknown,
)
from pillarbox.kernel.process.supervisor import postgres_folder
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.terminal.answers import Json, counted, instant, say, show_json, show_table, span
from pillarbox.kernel.terminal.connect import Data, DatabaseUrl

READY, NOT_READY = 0, 1
FRESH = timedelta(days=1)
SPACE_PART = 10
"""A tenth of the database's size should be free: new columns and indexes, and the log of writing them."""

LEAST_SPACE = 1024**3


Check = Annotated[bool, typer.Option("--check", help="Say what the upgrade would do; change nothing.")]


class LockedTable(NamedTuple):
    """A table that a pending migration locks."""

    table: str
    rows: int
    octets: int
    migrations: list[int]


class Review(NamedTuple):
    """The effects of an upgrade, seen beforehand. `reasons` speak against doing it now, `advice` does not."""

    schema: int
    knows: int
    pending: list[Migration]
    locked_tables: list[LockedTable]
    octets: int
    free: int | None
    last_backup: datetime | None
    reasons: list[str]
    advice: list[str]


def command(
    check: Check = False,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
    pg_bin: PgBin = None,
) -> None:
    """With --check: say what this release would do to the database.

    That is: pending migrations, whether the previous release may run meanwhile, what they lock, space, and
    the age of the last backup. The upgrade itself is the start of the new release. Status 0: ready; 1:
    something is in the way.
    """
    if not check:
        raise typer.BadParameter("only --check is there: `pillarbox serve` of the new release upgrades")

    async def work(settings: Settings) -> int:
        async with unmigrated_database(settings) as (found, _):
            conn = await asyncpg.connect(found.database_url, timeout=15)
            try:
                # The folder of an embedded database; with a named one there is none, or an old one.
                folder = postgres_folder(found) if settings.database_url is None else None
                folder = folder if folder is not None and folder.is_dir() else None
                review = await examined(conn, folder, SystemClock().now())
            finally:
                await conn.close()
        if json:
            show_json(shape(review))
        else:
            show(review)
        return NOT_READY if review.reasons else READY

    perform(work, data=data, database_url=database_url, pg_bin=pg_bin)


async def examined(
    conn: Connection, folder: Path | None, now: datetime, known: Sequence[Migration] | None = None
) -> Review:
    """Return the effects of applying these migrations to the database. `folder` is that of the embedded
    database, whose disk must have room."""
    migrations = list(migrations_in() if known is None else known)
    applied: list[MigrationRow] = await applied_in(conn) if await has_table(conn, "schema_migrations") else []
    pending = migrations[len(applied) :]
    reasons, advice = [], []
    try:
        await refuse_old_server(conn)
        refuse_unknown(applied, migrations)
    except MigrationError as problem:
        reasons.append(str(problem))
    schema = applied[-1].version if applied else 0
    reasons += [sentence for migration in pending for sentence in unsafe(migration, schema)]
    advice += [sentence for migration in pending for sentence in accepted(migration)]
    if schema > len(migrations) and not reasons:
        advice.append(
            "A newer release has upgraded the database; this one goes on with it. Start the newer one."
        )
    locked_tables = await tables(conn, pending)
    octets = await queries.database_size(conn)
    free = None if folder is None else shutil.disk_usage(folder).free
    if free is not None and pending and free < (needed := max(LEAST_SPACE, octets // SPACE_PART)):
        reasons.append(f"Only {mb(free)} are free on the database's disk; {mb(needed)} should be.")
    if pending and (long := await queries.long_transactions(conn)):
        advice.append(
            f"{counted(long, 'transaction has', 'transactions have')} been open for over a minute; a "
            "migration may have to wait for it."
        )
    last: datetime | None = None
    if await has_table(conn, "backups"):
        last = await last_backup(conn)
    if pending and last is None:
        advice.append("The database knows of no backup: make one with `pillarbox backup TARGET`.")
    elif pending and last is not None and now - last > FRESH:
        reasons.append(f"The last backup is {span(now - last)} old; make one with `pillarbox backup TARGET`.")
    return Review(
        schema=schema,
        knows=len(migrations),
        pending=pending,
        locked_tables=locked_tables,
        octets=octets,
        free=free,
        last_backup=last,
        reasons=reasons,
        advice=advice,
    )


def unsafe(migration: Migration, schema: int) -> list[str]:
    """Return why a migration must not run while the previous release does, a sentence each."""
    found = [
        f"The migration {migration.version:04}_{migration.name} {MEANINGS[hazard.kind]}: {hazard.statement}"
        for hazard in hazards(migration)
        if hazard.reason is None
    ]
    if migration.compatible_since > schema:
        found.append(
            f"The migration {migration.version:04}_{migration.name} does not go with the release that runs "
            "now: stop all nodes first."
        )
    return found


def accepted(migration: Migration) -> list[str]:
    """Return a sentence for each hazard that the migration accepts, with its reason."""
    return [
        f"The migration {migration.version:04}_{migration.name} {MEANINGS[hazard.kind]}: {hazard.reason}"
        for hazard in hazards(migration)
        if hazard.reason is not None
    ]


async def tables(conn: Connection, pending: Sequence[Migration]) -> list[LockedTable]:
    """Return the tables that are locked, with the database's estimate of their rows."""
    named: dict[str, list[int]] = {}
    for migration in pending:
        for table in tables_of(migration):
            named.setdefault(table, []).append(migration.version)
    found = []
    for table, versions in sorted(named.items()):
        size = await queries.table_size(conn, table)
        if size is not None:
            found.append(LockedTable(table, size.rows, size.octets, versions))
    return found


def show(review: Review) -> None:
    say(f"This is Pillarbox {__version__}; it knows schema version {review.knows}.")
    say(f"The database has schema version {review.schema} and {mb(review.octets)}.")
    if review.free is not None:
        say(f"{mb(review.free)} are free on its disk.")
    say(
        "No backup is known."
        if review.last_backup is None
        else f"Last backup: {instant(review.last_backup)}."
    )
    if review.pending:
        say()
        say(f"{counted(len(review.pending), 'migration is', 'migrations are')} pending:")
        for migration in review.pending:
            say(
                f"  {migration.version:04}_{migration.name} (goes with releases from schema "
                f"{migration.compatible_since} on)"
            )
    else:
        say("No migration is pending.")
    if review.locked_tables:
        say("They lock, each for an instant unless said otherwise below:")
        show_table(
            ("Table", "Rows (estimated)", "Size", "Migrations"),
            [
                (t.table, f"{t.rows:,}", mb(t.octets), ", ".join(map(str, t.migrations)))
                for t in review.locked_tables
            ],
        )
    for sentence in review.advice:
        say(f"NOTE: {sentence}")
    for sentence in review.reasons:
        say(f"IN THE WAY: {sentence}")
    if not review.reasons:
        say("Ready: start the new release, node by node." if review.pending else "Nothing is to be done.")


def shape(review: Review) -> dict[str, object]:
    return {
        "object": "upgrade_review",
        "program": __version__,
        "ready": not review.reasons,
        "schema_version": review.schema,
        "known_version": review.knows,
        "pending": [
            {"version": m.version, "name": m.name, "compatible_since": m.compatible_since}
            for m in review.pending
        ],
        "tables": [table._asdict() for table in review.locked_tables],
        "database_octets": review.octets,
        "free_octets": review.free,
        "last_backup": review.last_backup,
        "reasons": review.reasons,
        "notes": review.advice,
    }


def mb(octets: int) -> str:
    return f"{octets / 1_000_000:,.0f} MB"
