"""How many database connections this machine may use, and whether the database has them.

Each process has two pools of fixed size, one connection for each channel that it listens on, and one that
`/health` asks on. It listens to inboxes from the first request on that waits. Where the database has fewer,
processes fail under load only, when mail waits: so a start compares the numbers. `COMMANDS` connections stay
free for `pillarbox …` commands and the operator.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.settings.kinds import ProcessRole, RouteKind
from pillarbox.kernel.settings.settings import Settings

REQUESTS: Final = 16
ENGINE: Final = 10
"""The most connections of the two pools of a process (docs/decisions/0035)."""

COMMANDS: Final = 3
"""The connections of a running command, and one for a person."""

# A superuser may use reserved connections too, and the other limits do not hold for it; -1 is no limit.
LIMITS: Final = """
    SELECT current_setting('max_connections')::int AS server,
           CASE WHEN r.rolsuper THEN 0
                ELSE current_setting('superuser_reserved_connections')::int
                   + coalesce(current_setting('reserved_connections', true), '0')::int END AS reserved,
           CASE WHEN NOT r.rolsuper THEN nullif(r.rolconnlimit, -1) END AS role,
           CASE WHEN NOT r.rolsuper THEN nullif(d.datconnlimit, -1) END AS database,
           (SELECT count(*) FROM pg_stat_activity a
             WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
               AND a.application_name NOT LIKE 'pillarbox%')::int AS others
      FROM pg_roles r, pg_database d
     WHERE r.rolname = current_user AND d.datname = current_database()
"""


class ConnectionCounts(NamedTuple):
    """The connections that the database allows: in all (`server`), `reserved` for privileged roles, and the
    limits of our role and of the database (None: unlimited). `others` are connections of other programs now.
    """

    server: int
    reserved: int
    role: int | None
    database: int | None
    others: int

    @property
    def available(self) -> int:
        """How many connections we may have at the most."""
        limits = (self.server - self.reserved, self.role, self.database)
        return min(limit for limit in limits if limit is not None)

    @property
    def smallest(self) -> str:
        """Which of the limits that is, and how it is raised."""
        if self.role == self.available:
            return "the role's limit: ALTER ROLE … CONNECTION LIMIT"
        if self.database == self.available:
            return "the database's limit: ALTER DATABASE … CONNECTION LIMIT"
        return f"max_connections = {self.server}, of which {self.reserved} are reserved"


def of_process(settings: Settings) -> int:
    """Return the most connections of one process."""
    roles = settings.roles
    listening = [
        ProcessRole.DELIVERY in roles,
        ProcessRole.WEBHOOKS in roles,
        ProcessRole.API in roles,
        settings.route.kind is RouteKind.CAPTURE,
    ]
    return REQUESTS + ENGINE + sum(listening) + (ProcessRole.API in roles)


def of_machine(settings: Settings) -> int:
    """Return the most connections of all processes and of commands beside them."""
    return settings.processes * of_process(settings) + COMMANDS


async def limits_of(conn: Connection) -> ConnectionCounts:
    row = await conn.fetchrow(LIMITS)
    assert row is not None
    return ConnectionCounts(*row)


def too_few(settings: Settings, limits: ConnectionCounts) -> str | None:
    """Return one sentence for the operator where the database has fewer connections than this machine
    may use."""
    wanted = of_machine(settings)
    if limits.available >= wanted:
        return None
    return (
        f"The database allows {limits.available} connections ({limits.smallest}), but this machine needs "
        f"{wanted}: {of_process(settings)} for each of {settings.processes} processes and {COMMANDS} for "
        "commands. Raise the limit, or run fewer processes with --processes."
    )
