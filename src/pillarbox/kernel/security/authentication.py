"""Who is calling: the bearer token and the answers of conventions section 3, in the order of its rows."""

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

_PART = r"[A-Za-z0-9_-]+={0,2}"
_ACCESS_TOKEN = re.compile(rf"{_PART}\.{_PART}\.{_PART}", re.ASCII)


class Access(Enum):
    """What a route asks of its caller."""

    PUBLIC = "public"
    ANY = "any"
    SENDING = "sending"
    FULL = "full"


class Permission(Enum):
    """What a credential may do."""

    FULL = "full_access"
    SENDING = "sending_access"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated credential with the facts of its team that every request needs. A limit or a number
    of days that is None is the installation's, a quota that is None is none."""

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

    @property
    def is_metered(self) -> bool:
        """True when the team has a quota."""
        return self.daily_quota is not None or self.monthly_quota is not None

    def may(self, needs: Access) -> bool:
        """True when the credential is enough for a route of that kind."""
        return needs is not Access.FULL or self.permission is Permission.FULL


@dataclass(frozen=True, slots=True)
class Credential:
    """What a token means, whether or not it may be used now."""

    caller: Caller
    key_status: str
    team_status: str


class Credentials(Protocol):
    """Looks credentials up; nothing it answers is older than one second."""

    async def find(self, token_hash: bytes) -> Credential | None:
        """The credential whose token has this SHA-256."""
        ...

    def used(self, caller: Caller) -> None:
        """Note that the credential was used now; cheap, written later."""
        ...


class MissingApiKey(Problem):
    status, name = 401, "missing_api_key"

    def __init__(self) -> None:
        super().__init__(
            "Missing API key in the authorization header. Use `Authorization: Bearer re_…`.", CHALLENGE
        )


class InvalidApiKey(Problem):
    status, name = 403, "invalid_api_key"

    def __init__(self) -> None:
        super().__init__("API key is invalid")


class InvalidToken(Problem):
    status, name = 401, "invalid_token"

    def __init__(self) -> None:
        super().__init__(
            "The access token is invalid or has expired.",
            {"www-authenticate": f'{REALM}, error="invalid_token"'},
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


class TeamBlocked(Problem):
    status, name = 451, "security_error"

    def __init__(self) -> None:
        super().__init__("The request was refused for security reasons.")


FAILURES = (MissingApiKey, InvalidApiKey, InvalidToken)
"""Outcomes that count against the client's address (conventions section 7)."""


def bearer_token(authorization: bytes | None) -> str:
    """The token of an Authorization header, or row 1."""
    if authorization is None:
        raise MissingApiKey
    scheme, _, token = authorization.decode("latin-1").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise MissingApiKey
    return token


async def authenticate(authorization: bytes | None, credentials: Credentials) -> Caller:
    """The caller behind an Authorization header; raises the first row that applies."""
    token = bearer_token(authorization)
    if not token.startswith(API_KEY_PREFIX):
        raise InvalidToken if _ACCESS_TOKEN.fullmatch(token) else InvalidApiKey
    found = None if len(token) > LONGEST_KEY else await credentials.find(hash_api_key(token))
    if found is None:
        raise InvalidApiKey
    return usable(found)


def usable(found: Credential) -> Caller:
    """The caller, unless the key or its team may not be used now (rows 3, 4 and 9)."""
    if found.key_status == "suspended":
        raise SuspendedApiKey
    if found.key_status == "inactive" or found.team_status == "disabled":
        raise InactiveApiKey
    if found.team_status == "blocked":
        raise TeamBlocked
    return found.caller
