"""Which names of hosts are there for links of tracked mail alone (TRK-05).

A team's domain may have a host for them. What reaches the program under this name gets links and pictures of
this team, and nothing else: not the API, no pages, no links of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from uuid import UUID

import asyncpg

from pillarbox.directory import domains as directory
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.kernel.postgres.time_limit import retrieve_exception, shared, unlimited

PREFIX = "/t/"
REMEMBERED_SECONDS = 5.0
MOST_REMEMBERED = 10_000
MOST_ASKING = 8
"""Names that are looked up at once; what else is asked for meanwhile counts as nobody's."""

LONGEST = 255


class TrackingHosts:
    """Knows the hosts, each for some seconds. `own` are names of the installation, and nobody else's."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, own: Collection[str]) -> None:
        self._pool = pool
        self._clock = clock
        self._own = frozenset(own)
        self._known: dict[bytes, tuple[float, UUID | None]] = {}
        self._asking: dict[bytes, asyncio.Task[UUID | None]] = {}

    async def serves(self, host: bytes | None, path: str) -> bool:
        """Return whether the path is there under this name."""
        return path.startswith(PREFIX) or await self.team_of(host) is None

    async def team_of(self, host: bytes | None) -> UUID | None:
        """Return whose links alone are there under this name; None for a name that is nobody's."""
        if host is None:
            return None
        known = self._known.get(host)
        if known is not None and known[0] > self._clock.boottime():
            return known[1]
        name = _name(host)
        if name is None or name in self._own:
            self._remember(host, None)
            return None
        asking = self._asking.get(host)
        if asking is None:
            if len(self._asking) >= MOST_ASKING:
                return known[1] if known is not None else None
            asking = self._asking[host] = asyncio.create_task(self._ask(host, name), context=unlimited())
            asking.add_done_callback(retrieve_exception)
        try:
            return await shared(asking)
        except TROUBLE:
            return known[1] if known is not None else None

    async def _ask(self, host: bytes, name: str) -> UUID | None:
        label, _, domain = name.partition(".")
        try:
            team_id = await directory.tracker(self._pool, domain, label)
            self._remember(host, team_id)
            return team_id
        finally:
            del self._asking[host]

    def _remember(self, host: bytes, team_id: UUID | None) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[host] = (self._clock.boottime() + REMEMBERED_SECONDS, team_id)


def _name(host: bytes) -> str | None:
    """Return the name in a `Host` header, in lower case; None for one that can be no team's. Blanks around it
    are none of it (RFC 9110, 5.5)."""
    host = host.strip(b" \t")
    if len(host) > LONGEST or host.startswith(b"[") or not host.isascii():
        return None
    name = host.decode("ascii").partition(":")[0].rstrip(".").lower()
    above = name.partition(".")[2]
    return name if "." in above and not above.replace(".", "").isdigit() else None
