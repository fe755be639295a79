"""The table `processes`: who may hold leases. Every process of the installation records itself and updates
`seen_at` every few seconds. On one host a dead process is also detected before its leases run out.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.process import queries
from pillarbox.kernel.process.queries import SeenProcess

MOST_SHOWN: Final = 100


async def record_process(
    conn: Source, process: UUID, roles: str, now: datetime, *, route: str | None = None
) -> None:
    """Insert the row of this process, or update the time when it was last seen. `route` is where a process
    that delivers brings mail, without credentials."""
    pid = os.getpid()
    await queries.record_process(conn, process, boot_id(), pid, started(pid) or 0, roles, now, route)


async def seen_since(source: Source, since: datetime) -> list[SeenProcess]:
    """Return the processes that were seen after an instant, the latest first; not more than a page shows."""
    return await queries.seen_since(source, since, MOST_SHOWN)


def boot_id() -> str:
    """Return an id of this boot of this machine; the same in every process on it, and different on
    every other."""
    machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{machine}/{os.stat('/proc/self/ns/pid').st_ino}"


def started(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None where no such process runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])
