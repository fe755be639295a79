"""Limits of one client over all SMTP listeners (SMTP-10, SMTP-21).

A client is an IPv4 address or an IPv6 network of 64 bits. Its new connections and failed logins are counted
in memory that the processes of this host share. Each process counts its own open sessions and writes the
counts to shared memory; those of a dead process expire in seconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.smtp import prometheus

MINUTE = 60.0
MOST_LOGIN_FAILURES = 5
FAILURE_WINDOW = 600.0
SHARED_SECONDS = 10.0
SHARE_EVERY = 3.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one client; None is no limit. `sessions` of all clients are this process's share."""

    sessions: int
    per_client: int | None
    new_per_minute: int | None


class Clients:
    """Counts the sessions of this process by client."""

    def __init__(
        self, windows: Windows, clock: Clock, allowance: Allowance, *, index: int = 0, count: int = 1
    ) -> None:
        self._windows = windows
        self._clock = clock
        self._allowance = allowance
        self._index = index
        self._count = count
        self._held: Counter[str] = Counter()
        self._total = 0

    @property
    def total(self) -> int:
        """Sessions of this process."""
        return self._total

    def admit(self, peer: str) -> bool:
        """Take one more session of this client, or refuse it."""
        is_admitted = self._admit(client_of(peer))
        prometheus.CONNECTIONS.add(1, ("accepted" if is_admitted else "refused",))
        return is_admitted

    def _admit(self, client: str) -> bool:
        rate = self._allowance.new_per_minute
        if rate is not None and not self._windows.take(key_for(f"smtp new {client}"), rate, MINUTE).allowed:
            return False
        if self._total >= self._allowance.sessions:
            return False
        most = self._allowance.per_client
        if most is not None and self._held[client] + self._sessions_elsewhere(client) >= most:
            return False
        self._total += 1
        self._change(client, 1)
        return True

    def left(self, peer: str) -> None:
        """Note that a session that was admitted is over."""
        self._total -= 1
        self._change(client_of(peer), -1)

    def may_login(self, peer: str) -> bool:
        """Return False while this client has failed too often."""
        return not self._windows.is_spent(_failures_key(peer), MOST_LOGIN_FAILURES)

    def login_failed(self, peer: str) -> None:
        """Note one more failure of this client."""
        self._windows.take(_failures_key(peer), MOST_LOGIN_FAILURES, FAILURE_WINDOW)

    async def keep_sharing(self) -> None:
        """Write the counts to shared memory again and again, for ever."""
        failures = LoopFailures("smtp.share_clients")
        while True:
            await self._clock.sleep(max(SHARE_EVERY, failures.pause))
            await failures.attempt(self._share_all())

    async def _share_all(self) -> None:
        for client in tuple(self._held):
            self._share(client)
            await asyncio.sleep(0)

    def _change(self, client: str, by: int) -> None:
        self._held[client] += by
        self._share(client)
        if not self._held[client]:
            del self._held[client]

    def _share(self, client: str) -> None:
        if self._count > 1 and self._allowance.per_client is not None:
            self._windows.show(_sessions(client, self._index), self._held[client], SHARED_SECONDS)

    def _sessions_elsewhere(self, client: str) -> int:
        others = (index for index in range(self._count) if index != self._index)
        return sum(self._windows.shown(_sessions(client, index)) for index in others)


def _failures_key(peer: str) -> bytes:
    return key_for(f"smtp login {client_of(peer)}")


def _sessions(client: str, index: int) -> bytes:
    return key_for(f"smtp sessions {index} {client}")
