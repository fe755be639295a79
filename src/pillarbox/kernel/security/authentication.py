"""Authenticates callers by bearer token, with the answers of conventions section 3 in the order of its rows.

A token is an API key or an access token of OAuth (oauth.md 1). The rights of a key are its `Permission`,
those of an access token its `TokenScope`s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Protocol
from uuid import UUID

from pillarbox.kernel.security.secrets import hash_api_key
from pillarbox.kernel.wire.problems import Problem

REALM = 'Bearer realm="pillarbox"'
CHALLENGE = {"www-authenticate": REALM}
API_KEY_PREFIX = "re_"
LONGEST_KEY = 256
LONGEST_ACCESS_TOKEN = 4096
PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource"

_PART = r"[A-Za-z0-9_-]+={0,2}"
# The last part of a token without a signature is empty.
_ACCESS_TOKEN = re.compile(rf"{_PART}\.{_PART}\.(?:{_PART})?", re.ASCII)


class Access(Enum):
    """The access that a route demands of its caller."""

    PUBLIC = "public"
    ANY = "any"
    SENDING = "sending"
    FULL = "full"


class Permission(Enum):
    """The permission that a credential gives its caller."""

    FULL = "full_access"
    SENDING = "sending_access"
    INBOX = "inbox_access"


class InboxRight(Enum):
    """A right of a key for one inbox; each such key has one or more."""

    READ = "read"
    LABEL = "label"
    DRAFT = "draft"
    SEND = "send"


class TokenScope(Enum):
    """A right that somebody has granted to a program, the one that allows more first; an access token has one
    or both."""

    FULL = "full_access"
    SEND = "emails:send"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated credential with the facts of its team that every request needs. A limit or a number
    of days that is None is the installation's, a quota that is None is none.

    `person_id` is the person for whom the credential acts: an API key without one is the team's own.
    `grant_id` is the grant that it ends with: an access token's, or that of the program which made the key.
    Access tokens alone have `scopes`. A key for one inbox has `inbox_id`, the address of the inbox, and
    `inbox_rights`.
    """

    team_id: UUID
    team_number: int
    key_id: UUID | None
    permission: Permission
    domain_id: UUID | None = None
    rate_limit: int | None = None
    daily_quota: int | None = None
    monthly_quota: int | None = None
    log_days: int | None = None
    metrics_days: int | None = None
    scopes: frozenset[TokenScope] | None = None
    grant_id: UUID | None = None
    person_id: UUID | None = None
    inbox_id: UUID | None = None
    inbox_address: str | None = None
    inbox_rights: frozenset[InboxRight] = frozenset()

    @property
    def is_metered(self) -> bool:
        """True when the team has a quota."""
        return self.daily_quota is not None or self.monthly_quota is not None

    def may(self, needs: Access) -> bool:
        """Return whether an API key for the whole team is enough for a route of that kind."""
        if self.permission is Permission.INBOX or self.inbox_id is not None:
            return False
        return needs is not Access.FULL or self.permission is Permission.FULL

    def has(self, scope: TokenScope) -> bool:
        """Return whether the caller has that scope, as every API key does and an access token with one that
        allows more."""
        return self.scopes is None or scope in self.scopes or TokenScope.FULL in self.scopes


@dataclass(frozen=True, slots=True)
class Credential:
    """The meaning of a token, whether or not it may be used now. An access token that is found is active."""

    caller: Caller
    key_status: str
    team_status: str


class CredentialLookup(Protocol):
    """Looks credentials up; nothing it answers is older than one second."""

    async def find(self, token_hash: bytes) -> Credential | None:
        """Return the credential whose token has this SHA-256."""
        ...

    def used(self, caller: Caller) -> None:
        """Note that the credential was used now; cheap, written later."""
        ...


class AccessTokens(Protocol):
    """Looks access tokens up. The grant was read within the last second, the signature within a minute."""

    async def find(self, token: str) -> Credential | None:
        """Return the credential of an access token; None unless signature, claims and time are right and its
        grant is live."""
        ...

    def used(self, caller: Caller) -> None:
        """Note that the grant was used now; cheap, written later."""
        ...


class NoAccessTokens:
    """Where no access tokens are issued, none is valid."""

    async def find(self, token: str) -> Credential | None:
        return None

    def used(self, caller: Caller) -> None:
        return None


class Challenges:
    """The `WWW-Authenticate` values for clients without a credential or with a wrong one: they tell where to
    get one (RFC 6750 3, RFC 9728 5.1). `resource` is the path of what is protected, where that is not the
    whole API."""

    def __init__(self, issuer: str = "", resource: str = "") -> None:
        metadata = f', resource_metadata="{issuer}{PROTECTED_RESOURCE}{resource}"' if issuer else ""
        self.missing = REALM + metadata
        self.invalid = f'{REALM}, error="invalid_token"{metadata}'
        self.insufficient = f'{REALM}, error="insufficient_scope", scope="{TokenScope.FULL.value}"{metadata}'


class MissingApiKey(Problem):
    status, name = 401, "missing_api_key"

    def __init__(self, challenge: str) -> None:
        super().__init__(
            "Missing API key in the authorization header. Use `Authorization: Bearer re_…`.",
            {"www-authenticate": challenge},
        )


class InvalidApiKey(Problem):
    status, name = 403, "invalid_api_key"

    def __init__(self) -> None:
        super().__init__("API key is invalid")


class InvalidToken(Problem):
    status, name = 401, "invalid_token"

    def __init__(self, challenge: str) -> None:
        super().__init__(
            "The access token is invalid, has expired or was revoked.", {"www-authenticate": challenge}
        )


class InsufficientScope(Problem):
    """The name is the one of contract decision 2, the challenge that of RFC 6750."""

    status, name = 403, "invalid_permission"

    def __init__(self, challenge: str) -> None:
        super().__init__(
            "The access token does not have the scope that this endpoint needs: `full_access`.",
            {"www-authenticate": challenge},
        )


class SuspendedApiKey(Problem):
    status, name = 403, "suspended_api_key"

    def __init__(self) -> None:
        super().__init__("This API key is suspended.")


class InactiveApiKey(Problem):
    status, name = 403, "restricted_api_key"

    def __init__(self) -> None:
        super().__init__("This API key is not active.")


class SendingOnly(Problem):
    status, name = 401, "restricted_api_key"

    def __init__(self) -> None:
        super().__init__("This API key is restricted to only send emails.", CHALLENGE)


class InboxKeyMayNot(Problem):
    """The key is for one inbox, and this is something else, or needs a right that the key does not have."""

    status, name = 403, "invalid_permission"

    def __init__(self) -> None:
        super().__init__("This API key or token is for one inbox, and its rights do not allow this.")


class TeamBlocked(Problem):
    status, name = 451, "security_error"

    def __init__(self) -> None:
        super().__init__("The request was refused for security reasons.")


FAILURES = (MissingApiKey, InvalidApiKey, InvalidToken)
"""Outcomes that count against the client's address (conventions section 7)."""


class Authenticator:
    """Finds the caller behind an Authorization header."""

    def __init__(
        self, credentials: CredentialLookup, access_tokens: AccessTokens, challenges: Challenges
    ) -> None:
        self._credentials = credentials
        self._access_tokens = access_tokens
        self._challenges = challenges

    async def caller(self, authorization: bytes | None) -> Caller:
        """Return the caller; raise the first refusal that applies, in the order of the contract's table."""
        token = bearer_token(authorization)
        if token is None:
            raise MissingApiKey(self._challenges.missing)
        if token.startswith(API_KEY_PREFIX):
            found = None if len(token) > LONGEST_KEY else await self._credentials.find(hash_api_key(token))
            if found is None:
                raise InvalidApiKey
        elif _ACCESS_TOKEN.fullmatch(token):
            short = len(token) <= LONGEST_ACCESS_TOKEN
            found = await self._access_tokens.find(token) if short else None
            if found is None:
                raise InvalidToken(self._challenges.invalid)
        else:
            raise InvalidApiKey
        return usable(found)

    def used(self, caller: Caller) -> None:
        """Note that the credential was used now; cheap, written later."""
        if caller.key_id is not None:
            self._credentials.used(caller)
        else:
            self._access_tokens.used(caller)

    def check(self, caller: Caller, needs: Access, scope: TokenScope) -> None:
        """Raise where the credential is not enough for a route that needs this of keys and that of tokens
        (rows 5 and 7)."""
        if caller.scopes is not None:
            if not caller.has(scope):
                raise InsufficientScope(self._challenges.insufficient)
        elif not caller.may(needs):
            raise SendingOnly


def bearer_token(authorization: bytes | None) -> str | None:
    """Return the token of an Authorization header; None where it has none."""
    if authorization is None:
        return None
    scheme, _, token = authorization.decode("latin-1").strip().partition(" ")
    token = token.strip()
    return token if token and scheme.lower() == "bearer" else None


def usable(credential: Credential) -> Caller:
    """Return the caller, unless the key or its team may not be used now (rows 3, 4 and 9)."""
    if credential.key_status == "suspended":
        raise SuspendedApiKey
    if credential.key_status == "inactive" or credential.team_status == "disabled":
        raise InactiveApiKey
    if credential.team_status == "blocked":
        raise TeamBlocked
    return credential.caller
