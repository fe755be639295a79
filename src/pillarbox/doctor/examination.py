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
from pillarbox.doctor import backups, clocks, machine, queries, shared_state
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.listeners import listening, return_path_check
from pillarbox.doctor.login_provider import login_provider, login_team
from pillarbox.doctor.naming import naming
from pillarbox.doctor.outside import PROBED, OutsideWorld
from pillarbox.doctor.outward import EffectiveRoute, outgoing
from pillarbox.doctor.own_certificate import certificate
from pillarbox.doctor.queries import FailingEndpoint
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


async def endpoints(pool: asyncpg.Pool, now: datetime) -> list[Check]:
    """Return a warning for each endpoint that fails, or was disabled because it did."""
    failing = await queries.failing_endpoints(pool, MOST_SHOWN)
    if not failing:
        enabled = await queries.enabled_endpoints(pool)
        if not enabled:
            return [Check(NAME, Level.SKIPPED, TITLE, "there is none")]
        return [Check(NAME, Level.OK, TITLE, f"none of {enabled} fails")]
    return [_check(endpoint, now) for endpoint in failing]


def _check(failing: FailingEndpoint, now: datetime) -> Check:
    hours = int((now - failing.failing_since).total_seconds() // 3600)
    code = failing.last_status_code
    answer = "without an answer" if code is None else f"last with {code}"
    place = f"{failing.endpoint} of {failing.team}"
    if failing.status == "disabled":
        found = f"{place} was disabled: it failed since {failing.failing_since:%Y-%m-%d}, {answer}"
        return Check(
            name=f"{NAME}.disabled", level=Level.WARNING, title=TITLE, found=found, expected=None, step=STEP
        )
    return Check(
        name=f"{NAME}.failing",
        level=Level.WARNING,
        title=TITLE,
        found=f"{place} fails for {hours} h, {answer}",
        expected=None,
        step=STEP,
    )


ALIVE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class CheckedInstallation:
    """The installation that is examined. `listeners` are those that the running server opened; `connections`
    is how many of the database's its processes may take."""

    settings: Settings
    pool: asyncpg.Pool
    running: bool
    listeners: Mapping[str, HostPort]
    connections: int
    probed: Sequence[str] = PROBED
    measure: Callable[[Path], Space | None] = space_of
    sealed: Sequence[SealedColumn] = ()

    def knows(self, setting: str) -> bool:
        """Return whether the value of a setting is the server's, or was given to the command."""
        return self.running or setting in self.settings.given


async def effective_route(installation: CheckedInstallation, now: datetime) -> EffectiveRoute:
    """Return the route by which the mail of this installation leaves: that of the processes that deliver now,
    else that which the command was told."""
    settings = installation.settings
    if installation.running and ProcessRole.DELIVERY in settings.roles:
        return EffectiveRoute(settings.route)
    processes = await queries.delivering_processes(installation.pool, now - ALIVE)
    for process in sorted(processes, key=lambda process: process.host != boot_id()):
        return EffectiveRoute(kinds.route(process.route), process.host != boot_id())
    return EffectiveRoute(settings.route if installation.knows("route") else None)


async def examined(installation: CheckedInstallation, outside: OutsideWorld) -> list[Check]:
    """Return the checks of the installation that do not concern a single domain."""
    settings = installation.settings
    # Where no server runs, it may be started with other values than the defaults.
    used = await effective_route(installation, outside.clock.now())
    kind = None if used.route is None else used.route.kind
    smtp = settings.smtp if installation.knows("smtp") else None
    receives = await queries.is_receiving(installation.pool)
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
        *await login_provider(settings, outside.provider, outside.clock.now()),
        *await login_team(settings, installation.pool),
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
