"""The `state` of a login: sealed, for one browser, for ten minutes (RFC 9700, 2.1 and 4.7).

A cookie holds a random token. The state names what was begun and opens with that token alone. The `nonce`
and the verifier of PKCE are derived from both, so nothing of a login that only began is stored. An answer
counts once: `openid_queries.use_state`.
"""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from pillarbox.kernel.security.secrets import KeyRing, KeyRingError

LASTS: Final = timedelta(minutes=10)
CLOCKS_DIFFER: Final = 60.0
"""Seconds by which the clock of the provider may be behind."""

LONGEST_STATE: Final = 2000
LONGEST_PATH: Final = 500
"""A longer way back is forgotten: the state travels in addresses."""

_BROWSER: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class LoginPurpose(Enum):
    """The purpose of asking the provider."""

    LOGIN = "login"
    CONFIRM = "confirm"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True)
class LoginState:
    """A login that began in this browser. `person_id` is who was logged in, for all but `LOGIN`."""

    purpose: LoginPurpose
    to: str | None
    person_id: UUID | None
    began_at: datetime

    @property
    def ends_at(self) -> datetime:
        return self.began_at + LASTS


@dataclass(frozen=True, slots=True)
class PendingJoin:
    """A subject that is joined to the person once their password is given."""

    person_id: UUID
    subject: str
    email: str
    to: str | None


def is_browser_token(text: str | None) -> bool:
    """Return whether this may be the token of a browser."""
    return text is not None and _BROWSER.fullmatch(text) is not None


def seal_state(ring: KeyRing, browser: str, state: LoginState) -> str:
    """Return the state as the provider sends it back."""
    to = state.to if state.to is not None and len(state.to) <= LONGEST_PATH else None
    person = None if state.person_id is None else str(state.person_id)
    fields = {"at": state.began_at.timestamp(), "for": state.purpose.value, "to": to, "person": person}
    return _sealed(ring, fields, _state_context(browser))


def open_state(ring: KeyRing, browser: str, text: str, now: datetime) -> LoginState | None:
    """Return the login that began in this browser; None for any other, and for one that is too old."""
    fields = _opened(ring, text, _state_context(browser))
    if fields is None:
        return None
    person = None if fields["person"] is None else UUID(fields["person"])
    began_at = datetime.fromtimestamp(fields["at"], UTC)
    found = LoginState(LoginPurpose(fields["for"]), fields["to"], person, began_at)
    return found if now < found.ends_at else None


def seal_join(ring: KeyRing, browser: str, join: PendingJoin, now: datetime) -> str:
    """Return what the browser keeps until the password is given."""
    fields = {
        "until": (now + LASTS).timestamp(),
        "person": str(join.person_id),
        "subject": join.subject,
        "email": join.email,
        "to": join.to,
    }
    return _sealed(ring, fields, _join_context(browser))


def open_join(ring: KeyRing, browser: str, text: str, now: datetime) -> PendingJoin | None:
    """Return what waits for the password; None for another browser's, and for one that is too old."""
    fields = _opened(ring, text, _join_context(browser))
    if fields is None or fields["until"] <= now.timestamp():
        return None
    return PendingJoin(UUID(fields["person"]), fields["subject"], fields["email"], fields["to"])


def nonce_of(browser: str, state: str) -> str:
    """Return the nonce that the ID token of this login must have."""
    return _derived(browser, "nonce", state)


def verifier_of(browser: str, state: str) -> str:
    """Return the code verifier of PKCE (RFC 7636, 4.1): 43 characters of 256 bits."""
    return _derived(browser, "verifier", state)


def challenge_of(verifier: str) -> str:
    """Return the challenge S256 of a verifier (RFC 7636, 4.2)."""
    return _text(sha256(verifier.encode("ascii")).digest())


def state_hash(state: str) -> bytes:
    """Return the hash under which a used state is stored."""
    return sha256(state.encode("utf-8", "replace")).digest()


def _derived(browser: str, purpose: str, state: str) -> str:
    return _text(hmac.digest(browser.encode(), f"openid {purpose} {state}".encode(), "sha256"))


def _sealed(ring: KeyRing, fields: dict[str, Any], context: bytes) -> str:
    return _text(ring.seal(json.dumps(fields, ensure_ascii=False).encode(), context))


def _opened(ring: KeyRing, text: str, context: bytes) -> dict[str, Any] | None:
    if len(text) > LONGEST_STATE or not text.isascii():
        return None
    try:
        plain = ring.open(urlsafe_b64decode(text + "=" * (-len(text) % 4)), context)
    except (KeyRingError, ValueError):
        return None
    found: dict[str, Any] = json.loads(plain)
    return found


def _text(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def _state_context(browser: str) -> bytes:
    return b"openid state" + browser.encode()


def _join_context(browser: str) -> bytes:
    return b"openid join" + browser.encode()
