"""The whole examination."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from pillarbox.doctor import clocks, machine
from pillarbox.doctor.checks import Check
from pillarbox.doctor.listeners import listening, way_back
from pillarbox.doctor.naming import naming
from pillarbox.doctor.outside import PROBED, Outside
from pillarbox.doctor.outward import outgoing
from pillarbox.doctor.reputation import standing
from pillarbox.kernel.settings.kinds import HostPort
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.storage.disk_space import Space, disks_of, space_of

# Across teams: the machine is looked at, not a team.
RECEIVES = "SELECT EXISTS (SELECT FROM domains WHERE receiving)"


@dataclass(frozen=True, slots=True)
class CheckedInstallation:
    """What is examined. `doors` are those that the running server opened, `connections` how many its
    processes may take of the database's."""

    settings: Settings
    pool: asyncpg.Pool
    running: bool
    doors: Mapping[str, HostPort]
    connections: int
    probed: Sequence[str] = PROBED
    measure: Callable[[Path], Space | None] = space_of


async def examined(patient: CheckedInstallation, outside: Outside) -> list[Check]:
    """Everything that concerns the machine and not one domain."""
    settings = patient.settings
    kind = settings.route.kind
    receives: bool = await patient.pool.fetchval(RECEIVES)
    out, names, doors, back = await asyncio.gather(
        outgoing(outside, settings.route, settings.remote_smtp_port, patient.probed),
        naming(outside, settings.hostname, kind),
        listening(outside, patient.doors, running=patient.running),
        way_back(outside, settings.hostname, kind, settings.smtp, receives=receives),
    )
    return [
        out,
        *names,
        back,
        *doors,
        *await standing(patient.pool, outside.clock.now()),
        await machine.clock(patient.pool, outside.clock),
        await clocks.jumps(patient.pool),
        await clocks.future(patient.pool, outside.clock.now()),
        *machine.disk(disks_of(settings.data, settings.blobs), patient.measure),
        *await machine.database(patient.pool, patient.connections),
    ]
