"""All checks of one installation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from pillarbox.delivery.settings import REMOTE_SMTP_PORT
from pillarbox.doctor import backups, clocks, machine, shared_state
from pillarbox.doctor.checks import Check
from pillarbox.doctor.endpoints import endpoints
from pillarbox.doctor.listeners import listening, return_path_check
from pillarbox.doctor.naming import naming
from pillarbox.doctor.outside import PROBED, Outside
from pillarbox.doctor.outward import outgoing
from pillarbox.doctor.own_certificate import certificate
from pillarbox.doctor.reputation import reputation_checks
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.settings.kinds import HostPort
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.storage.disk_space import Space, disks_of, space_of

# Across teams: the machine is looked at, not a team.
RECEIVES = "SELECT EXISTS (SELECT FROM domains WHERE receiving)"


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


async def examined(installation: CheckedInstallation, outside: Outside) -> list[Check]:
    """Everything that concerns the machine and not one domain."""
    settings = installation.settings
    # Where no server runs, it may be started with other values than the defaults.
    route = settings.route if installation.knows("route") else None
    kind = None if route is None else route.kind
    smtp = settings.smtp if installation.knows("smtp") else None
    receives: bool = await installation.pool.fetchval(RECEIVES)
    outgoing_check, names, listeners, return_path = await asyncio.gather(
        outgoing(outside, route, settings[REMOTE_SMTP_PORT], installation.probed),
        naming(outside, settings.hostname, kind),
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
