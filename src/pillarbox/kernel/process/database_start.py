"""The database at a start: reached, found fit, migrated, and compared with what lies outside of it.

All that is compared comes before anything is written down, so a start that is refused changes nothing but the
schema.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import asyncpg

from pillarbox.kernel.observability import log
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.postgres.database import TROUBLE, Connection
from pillarbox.kernel.postgres.migrations import migrate, server_number
from pillarbox.kernel.postgres.migrations import migrations_in as known_migrations
from pillarbox.kernel.postgres.pooler import refuse_transaction_mode
from pillarbox.kernel.process import supervisor_metrics
from pillarbox.kernel.process.workers import StartError
from pillarbox.kernel.security.ring_check import established, refuse_ring
from pillarbox.kernel.security.sealed_values import Columns, known_again
from pillarbox.kernel.settings.settings import ConfigError, Settings
from pillarbox.kernel.storage.store_check import refuse_other_store

DATABASE_WAIT = 30.0
DATABASE_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The secrets that the first start prints once: the API key of the first team, and the token with which
    its owner sets up an account."""

    key: str = field(repr=False)
    set_up: str | None = field(default=None, repr=False)


FirstTeam = Callable[[Connection, Settings], Awaitable[FirstStart | None]]
"""Makes the first team if there is none; what to print once, or None."""

WRONG_ACCESS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)

logger = log.get("supervisor")


async def prepare(
    url: str, settings: Settings, first_team: FirstTeam, sealed: Columns, is_named: bool
) -> tuple[Settings, FirstStart | None]:
    """Prepare migrations, key ring, blob store and first team. Return the settings with the key ring, and the
    secrets of the first team if it was made now. `is_named`: the database is not the embedded one."""
    conn = await connect_patiently(url)
    try:
        if is_named:
            await refuse_unfit_database(conn, url, settings)
        supervisor_metrics.found_database(await server_number(conn))
        await migrate_and_say(conn, sealed)
        await refuse_ring(conn, settings)
        await refuse_other_store(conn, settings)
        settings = settings.replacing(secret_key=await established(conn, settings))
        async with conn.transaction():
            return settings, await first_team(conn, settings)
    except TROUBLE as error:
        logger.debug("database.refused", trouble=repr(error))
        raise StartError(f"The database cannot be used: {reason_of(error)}.{remedy(error)}") from None
    finally:
        # Abruptly: a database that hangs would never confirm a graceful end.
        conn.terminate()


async def refuse_unfit_database(conn: Connection, url: str, settings: Settings) -> None:
    """Refuse a named database that does not give each of our connections a session, or has not enough
    of them."""
    needed = connection_limits.of_machine(settings)
    try:
        is_pooled = await refuse_transaction_mode(url)
    except TROUBLE as error:
        raise StartError(f"The database cannot be reached: {reason_of(error)}.") from None
    if is_pooled:
        logger.info("database.pooled", needed=needed)
    limits = await connection_limits.limits_of(conn)
    if complaint := connection_limits.too_few(settings, limits):
        raise StartError(complaint)
    if limits.available - limits.others < needed:
        logger.warning(
            "database.connections_short", needed=needed, available=limits.available, others=limits.others
        )


async def migrate_and_say(conn: Connection, sealed: Columns) -> None:
    """Bring the schema to this release. Where nothing was to be done, the keys that the database needs are
    known, or found again."""
    if done := await migrate(conn, known_migrations()):
        # A new database gets them all; after an upgrade the operator wants to know.
        write = logger.debug if done[0] == 1 else logger.info
        write("schema.migrated", first=done[0], last=done[-1])
    if (not done or done[0] > 1) and (lost := await known_again(conn, sealed)):
        logger.warning("key_ring.known_again", key_ids=lost)


async def connect_patiently(url: str) -> asyncpg.Connection:
    """Return a connection; a database that is not up yet is waited for, a wrong name or password is not."""
    deadline, told = asyncio.get_running_loop().time() + DATABASE_WAIT, ""
    while True:
        try:
            return await asyncpg.connect(
                url, timeout=10, server_settings={"application_name": "pillarbox supervisor"}
            )
        except WRONG_ACCESS as error:
            raise StartError(f"The database refuses the connection: {error}.") from None
        except (ValueError, asyncpg.InterfaceError) as error:
            raise ConfigError(f"The database URL cannot be used: {error}.") from None
        except TROUBLE as error:
            if asyncio.get_running_loop().time() > deadline:
                raise StartError(
                    f"The database of --database-url cannot be reached: {reason_of(error)}."
                ) from None
            if reason_of(error) != told:
                told = reason_of(error)
                logger.warning("database.waiting", reason=told, seconds=int(DATABASE_WAIT))
        await asyncio.sleep(DATABASE_PAUSE)


def remedy(error: BaseException) -> str:
    """Return the remedy for a database that cannot be prepared, a blank before it; "" where none is known."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return " It is a standby, or read-only: --database-url must lead to the primary."
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return " The role of --database-url must own the database: ALTER DATABASE … OWNER TO …."
    return ""


def reason_of(error: BaseException) -> str:
    """Return the system's words for the error, without numbers; else its text or class."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
