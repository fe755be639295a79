"""Who may hold leases: every process of the installation enters itself in `processes` and says every few
seconds that it lives. On one host a process can also be seen to be dead, before its leases run out.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from uuid import UUID

from pillarbox.kernel.postgres.database import Source

# Across teams: processes belong to the installation.
ENROLL = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
"""


async def enroll(conn: Source, process: UUID, roles: str, now: datetime) -> None:
    """Enter this process, or say that it is still alive."""
    pid = os.getpid()
    await conn.execute(ENROLL, process, boot_id(), pid, started(pid) or 0, roles, now)


def boot_id() -> str:
    """Names this machine since its last start; the same in every process on it, and on no other."""
    machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{machine}/{os.stat('/proc/self/ns/pid').st_ino}"


def started(pid: int) -> int | None:
    """When a process started, in ticks since boot; None where no such process lives."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])
