"""Registering programs (RFC 7591; oauth.md 3): anybody may, and gets nothing by it but a name to ask people
under.

The limit counts each registration of the last 60 minutes: one place for each, which is free again an hour
after it was taken.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

import asyncpg

from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.security.rate_limit import key_for
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.oauth.clients import client_metadata, client_queries, clients
from pillarbox.oauth.clients.client_queries import ClientRow
from pillarbox.oauth.clients.clients import METHODS, NONE, Client
from pillarbox.oauth.failures import InvalidRequest, InvalidScope, TooManyRequests
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
        """After how many seconds one is free; 0 where one is."""
        return min(self._limits.wait(key, 1) for key in self._keys)


def wanted(document: Any) -> Client:
    """The program that a body describes, without an id; raises the first failure of the contract's order."""
    if not isinstance(document, dict):
        raise InvalidRequest("the body must be a JSON object")
    name = client_metadata.name_of(document)
    if name is None:
        raise InvalidRequest("client_name: is missing")
    uris = client_metadata.listed_redirects(document)
    grant_types = client_metadata.grant_types_of(document)
    client_metadata.check_response_types(document)
    if not isinstance(document.get("scope", ""), str | None):
        raise InvalidRequest("scope: must be a text")
    method = document.get("token_endpoint_auth_method")
    if method is not None and method not in METHODS:
        raise InvalidRequest(f"token_endpoint_auth_method: must be one of {', '.join(METHODS)}")
    client_uri = client_metadata.url_of(document, "client_uri", "http", "https")
    logo_uri = client_metadata.url_of(document, "logo_uri", "https")
    client_metadata.refuse_redirects(uris)
    scopes = _scopes(document.get("scope"))
    return Client("", name, uris, grant_types, method or NONE, scopes, client_uri, logo_uri)


def _scopes(text: str | None) -> tuple[str, ...]:
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
        row_id,
        client.name,
        list(client.redirect_uris),
        list(client.grant_types),
        client.auth_method,
        list(client.scopes),
        client.client_uri,
        client.logo_uri,
        None if secret is None else clients.hashed(secret),
        now,
    )
    await client_queries.add(pool, row)
    return NewClient(clients.named(client, str(row_id)), secret)
