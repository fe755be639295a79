"""Exchanging codes and refresh tokens (RFC 6749, 4.1.3 and 6; oauth.md 6).

A code and a refresh token are good once. Whoever presents one that was used has stolen it or was robbed: the
grant is revoked with all that came of it. Both are looked up under a lock, so of two parallel uses one is the
second.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, after_commit, transaction
from pillarbox.oauth import access_tokens, grants, token_queries
from pillarbox.oauth.clients import clients
from pillarbox.oauth.clients.client_authentication import DescribedClient
from pillarbox.oauth.clients.clients import Client
from pillarbox.oauth.failures import InvalidGrant, InvalidRequest, OAuthProblem, UnauthorizedClient
from pillarbox.oauth.grant_queries import Grant, GrantRef
from pillarbox.oauth.grants import Reason
from pillarbox.oauth.keys import SigningKeys, TokenSigningKey
from pillarbox.oauth.scopes import subset
from pillarbox.people.audit import Act, Actor, record

CODE_LIFETIME: Final = timedelta(minutes=10)
REFRESH_LIFETIME: Final = timedelta(days=60)
MOST_FAILURES: Final = 5

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)

Known = Client | DescribedClient


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """The tokens that a program gets."""

    access_token: str
    refresh_token: str | None
    scopes: tuple[str, ...]


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636, 4.2)."""
    return urlsafe_b64encode(sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode("ascii")


class Tokens:
    """Gives tokens for codes and refresh tokens. `grace`: how long after its use a refresh token that comes
    again is only refused; later its grant is revoked. A code used twice revokes at once. `forget` is called
    with the team of a grant that was revoked."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        keys: SigningKeys,
        issuer: str,
        grace: timedelta,
        forget: Callable[[UUID], None],
    ) -> None:
        self._pool = pool
        self._forget = forget
        self._keys = keys
        self._issuer = issuer
        self._grace = grace

    async def exchange(
        self, now: datetime, client: Known, caller: Actor, *, code: str, redirect_uri: str, verifier: str
    ) -> IssuedTokens:
        """Return the first tokens of a grant; raises an OAuthProblem."""
        if not _VERIFIER.fullmatch(verifier):
            raise InvalidRequest("code_verifier: must have 43 to 128 unreserved characters")
        key = await self._keys.signing()
        async with transaction(self._pool) as conn:
            found = await self._exchange(conn, now, client, caller, key, code, redirect_uri, verifier)
        # What a failure has written stays.
        if isinstance(found, OAuthProblem):
            raise found
        return found

    async def _exchange(
        self,
        conn: Connection,
        now: datetime,
        client: Known,
        caller: Actor,
        key: TokenSigningKey,
        code: str,
        redirect_uri: str,
        verifier: str,
    ) -> IssuedTokens | OAuthProblem:
        stored = await token_queries.lock_code(conn, hashed := clients.hashed(code))
        refused = InvalidGrant("the code is unknown, expired, used, or not for this request")
        if stored is None or stored.client_id != client.id:
            return refused
        if stored.used_at is not None:
            await self._revoke(conn, now, stored.ref, Reason.CODE_REUSE, caller)
            return refused
        if stored.expires_at <= now or stored.failures >= MOST_FAILURES:
            return refused
        is_right = hmac.compare_digest(stored.challenge, challenge_of(verifier))
        if not is_right or stored.redirect_uri != redirect_uri:
            await token_queries.count_failure(conn, hashed)
            return refused
        grant = await grants.lock_live(conn, stored.ref)
        if grant is None:
            return refused
        await token_queries.use_code(conn, hashed, now)
        return await self._issue(conn, now, key, grant, grant.scopes)

    async def refresh(
        self, now: datetime, client: Known, caller: Actor, *, token: str, scope: str | None
    ) -> IssuedTokens:
        """Return new tokens for a refresh token, which is used up; raise an OAuthProblem."""
        key = await self._keys.signing()
        async with transaction(self._pool) as conn:
            found = await self._refresh(conn, now, client, caller, key, token, scope)
        if isinstance(found, OAuthProblem):
            raise found
        return found

    async def _refresh(
        self,
        conn: Connection,
        now: datetime,
        client: Known,
        caller: Actor,
        key: TokenSigningKey,
        token: str,
        scope: str | None,
    ) -> IssuedTokens | OAuthProblem:
        stored = await token_queries.lock_refresh_token(conn, hashed := clients.hashed(token))
        refused = InvalidGrant("the refresh token is unknown, expired, used, or revoked")
        if stored is None or stored.client_id != client.id:
            return refused
        if stored.rotated_at is not None:
            if not self._is_forgiven(now - stored.rotated_at):
                await self._revoke(conn, now, stored.ref, Reason.REFRESH_TOKEN_REUSE, caller)
            return refused
        grant = None if stored.expires_at <= now else await grants.lock_live(conn, stored.ref)
        if grant is None:
            return refused
        if not _as_granted(grant).may_refresh:
            return UnauthorizedClient("the client is not registered for refresh_token")
        try:
            scopes = subset(scope, grant.scopes, "this grant")
        except OAuthProblem as beyond:
            return beyond
        await token_queries.use_refresh_token(conn, hashed, now)
        return await self._issue(conn, now, key, grant, scopes)

    def _is_forgiven(self, age: timedelta) -> bool:
        return bool(self._grace) and age <= self._grace

    async def _issue(
        self, conn: Connection, now: datetime, key: TokenSigningKey, grant: Grant, scopes: tuple[str, ...]
    ) -> IssuedTokens:
        refresh_token = None
        if _as_granted(grant).may_refresh:
            refresh_token = clients.new_secret()
            expires_at = now + REFRESH_LIFETIME
            await token_queries.add_refresh_token(
                conn, clients.hashed(refresh_token), grant.ref, grant.client_id, now, expires_at
            )
        await token_queries.mark_grant_used(conn, grant.ref, now)
        access_token = access_tokens.signed(
            key,
            now,
            issuer=self._issuer,
            person_id=grant.person_id,
            client_id=grant.client_id,
            scopes=scopes,
            team_id=grant.team_id,
            grant_id=grant.id,
        )
        return IssuedTokens(access_token, refresh_token, scopes)

    async def revoke(self, now: datetime, client: Known, caller: Actor, token: str) -> None:
        """Revoke the grant of a refresh token of this program; nothing for any other text (RFC 7009)."""
        async with transaction(self._pool) as conn:
            stored = await token_queries.find_refresh_token(conn, clients.hashed(token))
            if stored is not None and stored.client_id == client.id and stored.expires_at > now:
                await self._revoke(conn, now, stored.ref, Reason.BY_CLIENT, caller)

    async def _revoke(
        self, conn: Connection, now: datetime, ref: GrantRef, reason: Reason, caller: Actor
    ) -> None:
        """Revoke a grant, if it is live, and say so in the log of acts."""
        if await grants.revoke(conn, now, ref, reason):
            actor = replace(caller, grant_id=ref.id)
            details = {"reason": reason.value}
            await record(
                conn,
                now,
                Act.GRANT_REVOKED,
                team_id=ref.team_id,
                actor=actor,
                target=str(ref.id),
                details=details,
            )
            after_commit(conn, partial(self._forget, ref.team_id))


def _as_granted(grant: Grant) -> Client:
    return clients.from_snapshot(grant.client_id, grant.client)
