"""All checks of one installation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import asyncpg

from pillarbox.delivery.settings import REMOTE_SMTP_PORT
from pillarbox.doctor import backups, clocks, machine, shared_state
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.listeners import listening, return_path_check
from pillarbox.doctor.naming import naming
from pillarbox.doctor.outside import PROBED, OutsideWorld
from pillarbox.doctor.outward import EffectiveRoute, outgoing
from pillarbox.doctor.own_certificate import certificate
from pillarbox.doctor.reputation import reputation_checks
from pillarbox.kernel.process.process_table import boot_id
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import HostPort, ProcessRole
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.storage.disk_space import Space, disks_of, space_of

NAME: Final = "webhooks"
TITLE: Final = "Webhooks reach their endpoints"
MOST_SHOWN: Final = 20
STEP: Final = (
    "Tell the team, or mend the endpoint: `GET /webhooks/{id}/deliveries` shows its answers, and what failed "
    "can be replayed."
)

# Across teams: the operator wants to know of all endpoints that are away.
FAILING = """
    SELECT t.name AS team, w.id, w.endpoint, w.status, w.failing_since, w.last_status_code
      FROM webhooks w
      JOIN teams t ON t.id = w.team_id
     WHERE w.kind = 'endpoint' AND w.failing_since IS NOT NULL
     ORDER BY w.failing_since, w.id
     LIMIT $1
"""
COUNT = "SELECT count(*) FROM webhooks WHERE kind = 'endpoint' AND status = 'enabled'"


async def endpoints(pool: asyncpg.Pool, now: datetime) -> list[Check]:
    """A warning for each endpoint that fails, or was disabled because it did."""
    rows = await pool.fetch(FAILING, MOST_SHOWN)
    if not rows:
        enabled = await pool.fetchval(COUNT)
        if not enabled:
            return [Check(NAME, Level.SKIPPED, TITLE, "there is none")]
        return [Check(NAME, Level.OK, TITLE, f"none of {enabled} fails")]
    return [_check(row, now) for row in rows]


def _check(row: asyncpg.Record, now: datetime) -> Check:
    hours = int((now - row["failing_since"]).total_seconds() // 3600)
    code = row["last_status_code"]
    answer = "without an answer" if code is None else f"last with {code}"
    place = f"{row['endpoint']} of {row['team']}"
    if row["status"] == "disabled":
        found = f"{place} was disabled: it failed since {row['failing_since']:%Y-%m-%d}, {answer}"
        return Check(f"{NAME}.disabled", Level.WARNING, TITLE, found, None, STEP)
    return Check(
        f"{NAME}.failing", Level.WARNING, TITLE, f"{place} fails for {hours} h, {answer}", None, STEP
    )


# Across teams: the machine is looked at, not a team.
RECEIVES = "SELECT EXISTS (SELECT FROM domains WHERE receiving)"


# Across teams: processes belong to the installation.
ROUTES = """
    SELECT DISTINCT host, route
      FROM processes
     WHERE roles LIKE '%delivery%' AND route IS NOT NULL AND seen_at > $1
     ORDER BY host, route
"""
ALIVE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class CheckedInstallation:
    """What is checked. `listeners` are those that the running server opened, `connections` how many its
    processes may take of the database's."""

    settings: Settings
    pool: asyncpg.Pool
    running: bool
    listeners: Mapping[str, HostPort]
    connections: int
    probed: Sequence[str] = PROBED
    measure: Callable[[Path], Space | None] = space_of
    sealed: Sequence[SealedColumn] = ()

    def knows(self, setting: str) -> bool:
        """Whether the value of a setting is the server's, or was given to the command."""
        return self.running or setting in self.settings.given


async def effective_route(installation: CheckedInstallation, now: datetime) -> EffectiveRoute:
    """The route by which the mail of this installation leaves: that of the processes that deliver now, else
    that which the command was told."""
    settings = installation.settings
    if installation.running and ProcessRole.DELIVERY in settings.roles:
        return EffectiveRoute(settings.route)
    rows = await installation.pool.fetch(ROUTES, now - ALIVE)
    for row in sorted(rows, key=lambda row: row["host"] != boot_id()):
        return EffectiveRoute(kinds.route(row["route"]), row["host"] != boot_id())
    return EffectiveRoute(settings.route if installation.knows("route") else None)


async def examined(installation: CheckedInstallation, outside: OutsideWorld) -> list[Check]:
    """Everything that concerns the machine and not one domain."""
    settings = installation.settings
    # Where no server runs, it may be started with other values than the defaults.
    used = await effective_route(installation, outside.clock.now())
    kind = None if used.route is None else used.route.kind
    smtp = settings.smtp if installation.knows("smtp") else None
    receives: bool = await installation.pool.fetchval(RECEIVES)
    outgoing_check, names, listeners, return_path = await asyncio.gather(
        outgoing(outside, used, settings[REMOTE_SMTP_PORT], installation.probed),
        naming(outside, settings.hostname, None if used.is_elsewhere else kind),
        listening(outside, installation.listeners, running=installation.running),
        return_path_check(outside, settings.hostname, kind, smtp, receives=receives),
    )
    return [
        outgoing_check,
        *names,
        return_path,
        *listeners,
        await certificate(settings, outside.clock.now(), is_known=installation.knows("tls_cert")),
        *await endpoints(installation.pool, outside.clock.now()),
        *await reputation_checks(installation.pool, outside.clock.now()),
        await machine.clock(installation.pool, outside.clock),
        await clocks.jumps(installation.pool),
        await clocks.future(installation.pool, outside.clock.now()),
        await backups.age(installation.pool, outside.clock.now()),
        await backups.put_aside(installation.pool),
        *await shared_state.key_ring(installation.pool, settings, installation.sealed),
        await shared_state.blob_store(installation.pool, settings),
        machine.interpreter(),
        *machine.disk(disks_of(settings.data, settings.blobs), installation.measure),
        *await machine.database(installation.pool, installation.connections),
    ]
