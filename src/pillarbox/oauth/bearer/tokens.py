"""Which caller an access token means (oauth.md 1).

The signature and the claims of a token are checked once in a while by each process, and remembered with the
hash of the token. Whether its grant is live is asked at most a second before (docs/decisions/0110).
"""

from __future__ import annotations

from collections.abc import Set
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.api_keys.credentials import LastUsed, Write
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.security.authentication import Caller, Credential, InboxRight, Permission, TokenScope
from pillarbox.kernel.security.remembered import SharedCache
from pillarbox.oauth import access_tokens, prometheus
from pillarbox.oauth.access_tokens import AccessToken
from pillarbox.oauth.bearer import queries
from pillarbox.oauth.bearer.queries import LiveGrant
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.oauth.keys import SigningKeys
from pillarbox.oauth.scopes import INBOX
from pillarbox.people.roles import TeamAct, TeamRole, may_do

VERIFIED_SECONDS: Final = 60.0
"""How long a verified signature is remembered: after that a key that was withdrawn counts no more."""

MOST_VERIFIED: Final = 10_000
SCOPES: Final = {scope.value: scope for scope in TokenScope}


class VerifiedToken(NamedTuple):
    """A token whose signature and claims are right, until when that need not be checked again, and what it
    asks for."""

    token: AccessToken
    until: float
    wanted: TokenClaims


class TokenClaims(NamedTuple):
    """The claims of a token: a grant, with these scopes, for this person and program."""

    ref: GrantRef
    person_id: UUID
    client_id: str
    scopes: frozenset[TokenScope]
    rights: frozenset[InboxRight] = frozenset()


class GrantsLastUsed(LastUsed):
    """When each grant was last used."""

    write: Write = staticmethod(queries.set_last_used)
    loop = "oauth.last_used"


class BearerTokens:
    """Finds callers by their access token."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, keys: SigningKeys, issuer: str, last_used: GrantsLastUsed
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._keys = keys
        self._issuer = issuer
        self._last_used = last_used
        self._verified: dict[bytes, VerifiedToken] = {}
        self._live: SharedCache[TokenClaims, Credential] = SharedCache(clock, self._ask)

    async def find(self, token: str) -> Credential | None:
        found = await self._find(token)
        if found is None:
            prometheus.ACCESS_TOKENS.add(1, (prometheus.REFUSED,))
        return found

    async def _find(self, token: str) -> Credential | None:
        name = sha256(token.encode("ascii")).digest()
        verified = self._verified.get(name)
        if verified is None or verified.until <= self._clock.boottime():
            verified = await self._verify(name, token)
        if verified is None or verified.token.expires_at <= self._clock.now():
            return None
        return await self._live.find(verified.wanted)

    def used(self, caller: Caller) -> None:
        if caller.grant_id is not None:
            self._last_used.touch(caller.team_id, caller.grant_id)

    def forget(self, team_id: UUID) -> None:
        """Ask the database again for every grant of the team; call it after the commit of a change."""
        self._live.forget(lambda wanted, _: wanted.ref.team_id == team_id)

    async def _verify(self, name: bytes, token: str) -> VerifiedToken | None:
        found = await access_tokens.verify(self._keys, token, self._clock.now(), issuer=self._issuer)
        if found is None:
            self._verified.pop(name, None)
            return None
        prometheus.ACCESS_TOKENS.add(1, (prometheus.VERIFIED,))
        if len(self._verified) >= MOST_VERIFIED:
            self._verified.clear()
        scopes = frozenset(SCOPES[scope] for scope in found.scopes if scope in SCOPES)
        rights = frozenset(INBOX[scope] for scope in found.scopes if scope in INBOX)
        wanted = TokenClaims(
            ref=GrantRef(found.team_id, found.grant_id),
            person_id=found.person_id,
            client_id=found.client_id,
            scopes=scopes,
            rights=rights,
        )
        made = VerifiedToken(found, self._clock.boottime() + VERIFIED_SECONDS, wanted)
        self._verified[name] = made
        return made

    async def _ask(self, token_claims: TokenClaims) -> Credential | None:
        row = await queries.live(self._pool, *token_claims.ref)
        return None if row is None else credential(token_claims, row)


def credential(token_claims: TokenClaims, row: LiveGrant) -> Credential | None:
    """Return the credential of a token under its grant; None where it is another person's or program's, or
    where the person's role does not let programs act any more."""
    if row.person_id != token_claims.person_id or row.client_id != token_claims.client_id:
        return None
    if not may_do(TeamRole(row.role), TeamAct.LET_PROGRAM_ACT):
        return None
    scopes: Set[TokenScope] = token_claims.scopes & {SCOPES[scope] for scope in row.scopes if scope in SCOPES}
    permission = Permission.FULL if TokenScope.FULL in scopes else Permission.SENDING
    rights: Set[InboxRight] = frozenset()
    if row.inbox_id is not None:
        permission, scopes = Permission.INBOX, frozenset()
        rights = token_claims.rights & {INBOX[scope] for scope in row.scopes if scope in INBOX}
    caller = Caller(
        team_id=token_claims.ref.team_id,
        team_number=row.team_number,
        key_id=None,
        permission=permission,
        inbox_id=row.inbox_id,
        inbox_address=row.inbox_address,
        inbox_rights=frozenset(rights),
        rate_limit=row.rate_limit,
        daily_quota=row.daily_quota,
        monthly_quota=row.monthly_quota,
        log_days=row.log_days,
        metrics_days=row.metrics_days,
        scopes=frozenset(scopes),
        grant_id=token_claims.ref.id,
        person_id=row.person_id,
    )
    return Credential(caller, "active", row.team_status)
