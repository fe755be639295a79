"""Registering programs (RFC 7591; oauth.md 3): anybody may, and gets nothing by it but a name to ask people
under.

The limit counts each registration of the last 60 minutes: one place for each, which is free again an hour
after it was taken.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import uuid4

import asyncpg

from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.security.rate_limit import key_for
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.oauth.clients import client_queries, clients
from pillarbox.oauth.clients.client_queries import ClientRow
from pillarbox.oauth.clients.clients import NONE, Client
from pillarbox.oauth.failures import InvalidScope, TooManyRequests
from pillarbox.oauth.scopes import SUPPORTED, parsed

MOST_AN_HOUR: Final = 20
HOUR: Final = 3600.0


class NewClient(NamedTuple):
    """A new program with its secret, which is known nowhere else."""

    client: Client
    secret: str | None


class RegistrationLimit:
    """The registrations that one address may make within an hour."""

    def __init__(self, limits: SharedLimits, address: str) -> None:
        self._limits = limits
        client = client_of(address)
        self._keys = [key_for(f"oauth register {number} {client}") for number in range(MOST_AN_HOUR)]

    def check(self) -> None:
        """Raise TooManyRequests where none is free."""
        if wait := self._wait():
            raise TooManyRequests(wait)

    async def take(self) -> None:
        """Take one; TooManyRequests where others have just taken the last."""
        for key in self._keys:
            if (await self._limits.take(key, 1, HOUR)).allowed:
                return
        raise TooManyRequests(self._wait())

    def _wait(self) -> int:
        """Return after how many seconds a place is free; 0 where one is."""
        return min(self._limits.wait(key, 1) for key in self._keys)


def scopes_of(text: str | None) -> tuple[str, ...]:
    """Return the scopes that a program asks for; all of them where it names none."""
    if text is None:
        return SUPPORTED
    found = parsed(text)
    if not found or any(name not in SUPPORTED for name in found):
        raise InvalidScope(f"scope: only {' and '.join(SUPPORTED)} are supported")
    return found


async def register(pool: asyncpg.Pool, now: datetime, client: Client) -> NewClient:
    """Store a program under a new id, with a new secret where its method needs one."""
    row_id = uuid4()
    secret = None if client.auth_method == NONE else clients.new_secret()
    row = ClientRow(
        id=row_id,
        name=client.name,
        redirect_uris=list(client.redirect_uris),
        grant_types=list(client.grant_types),
        token_endpoint_auth_method=client.auth_method,
        scopes=list(client.scopes),
        client_uri=client.client_uri,
        logo_uri=client.logo_uri,
        secret_hash=None if secret is None else clients.hashed(secret),
        created_at=now,
    )
    await client_queries.add(pool, row)
    return NewClient(clients.named(client, str(row_id)), secret)
