"""Passkeys (Web Authentication, level 3): made, and asked for their signature (docs/decisions/0106).

Each begins with a challenge, which works once and for five minutes, and ends with what the browser answers.
A passkey always asks who uses it (PIN, finger, face), so it is both factors at once.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from hashlib import sha256
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.people.factors import passkey_queries as queries
from pillarbox.people.factors.passkey_queries import NewPasskey

T = TypeVar("T")

LASTS: Final = timedelta(minutes=5)
CHALLENGE_BYTES: Final = 32
TOKEN_BYTES: Final = 32
MOST_PASSKEYS: Final = 20
MOST_NAME: Final = 60
LONGEST_ANSWER: Final = 32 * 1024
PARTY_NAME: Final = "Pillarbox"
LIBRARY: Final = "webauthn"


class Purpose(Enum):
    """The purpose of a challenge; one for one thing is none for another."""

    REGISTER = "register"
    LOGIN = "login"
    CONFIRM = "confirm"


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """To whom passkeys belong: the host of the public URL, never what a request calls it."""

    id: str
    origin: str

    @classmethod
    def of_url(cls, public_url: str) -> RelyingParty | None:
        """Return the relying party of a URL; None where browsers allow no passkeys: at an address instead of
        a name, and without HTTPS. The machine itself is called `localhost`."""
        parts = urlsplit(public_url)
        host, scheme = parts.hostname or "", parts.scheme
        port = "" if parts.port is None else f":{parts.port}"
        address = _address(host)
        if address is not None and address.is_loopback and scheme == "http":
            host, address = "localhost", None
        if address is not None or (scheme != "https" and host != "localhost"):
            return None
        return cls(host, f"{scheme}://{host}{port}")


@dataclass(frozen=True, slots=True)
class PasskeyChallenge:
    """The challenge for a browser: the options as JSON, and the token that its answer has to bring."""

    token: str
    options: str


class Passkeys:
    """Makes challenges and checks answers. Each call that writes is one transaction of the caller's."""

    __slots__ = ("_party",)

    def __init__(self, party: RelyingParty | None) -> None:
        self._party = party

    @property
    def are_possible(self) -> bool:
        """Whether browsers allow them where this installation is."""
        return self._party is not None

    @staticmethod
    async def are_there(source: Source, person_id: UUID) -> bool:
        """Return whether the person has any."""
        return bool(await queries.of_person(source, person_id))

    @property
    def origin(self) -> str:
        """Under which address they work; "" where they are not possible."""
        return "" if self._party is None else self._party.origin

    async def ask_for_new(
        self, source: Source, now: datetime, person_id: UUID, email: str, name: str | None
    ) -> PasskeyChallenge:
        """Ask for a new passkey of a person who is logged in."""
        await _load()
        from webauthn import generate_registration_options, options_to_json
        from webauthn.helpers.structs import (
            AuthenticatorSelectionCriteria,
            PublicKeyCredentialDescriptor,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        challenge, token = await self._challenge(source, now, person_id, Purpose.REGISTER)
        known = await queries.of_person(source, person_id)
        options = generate_registration_options(
            rp_id=self._at.id,
            rp_name=PARTY_NAME,
            user_id=person_id.bytes,
            user_name=email,
            user_display_name=name or email,
            challenge=challenge,
            timeout=int(LASTS.total_seconds() * 1000),
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[PublicKeyCredentialDescriptor(id=one.id) for one in known],
        )
        return PasskeyChallenge(token, options_to_json(options))

    async def add(
        self, conn: Connection, now: datetime, person_id: UUID, token: str, answer: str, name: str
    ) -> bool:
        """Keep the passkey that a browser made; False where the answer is not right, or it is known."""
        await _load()
        from webauthn import verify_registration_response

        challenge = await self._taken(conn, now, person_id, Purpose.REGISTER, token)
        if challenge is None:
            return False
        made = _judged(
            answer,
            lambda credential: verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self._at.id,
                expected_origin=self._at.origin,
                require_user_verification=True,
            ),
        )
        if made is None:
            return False
        passkey = NewPasskey(
            id=made.credential_id,
            person_id=person_id,
            public_key=made.credential_public_key,
            sign_count=made.sign_count,
            transports=_transports(answer),
            name=name[:MOST_NAME],
        )
        return await queries.store(conn, passkey, now, MOST_PASSKEYS)

    async def ask_to_log_in(self, source: Source, now: datetime) -> PasskeyChallenge:
        """Ask for a passkey of whomever it belongs to."""
        return await self._ask(source, now, None, Purpose.LOGIN)

    async def ask_to_confirm(self, source: Source, now: datetime, person_id: UUID) -> PasskeyChallenge:
        """Ask for a passkey of this person."""
        return await self._ask(source, now, person_id, Purpose.CONFIRM)

    async def log_in(self, conn: Connection, now: datetime, token: str, answer: str) -> UUID | None:
        """Return the person whose passkey has signed; None where the answer is wrong, or the person may not
        log in."""
        return await self._signed(conn, now, None, Purpose.LOGIN, token, answer)

    async def confirm(
        self, conn: Connection, now: datetime, person_id: UUID, token: str, answer: str
    ) -> bool:
        """Return whether a passkey of this person has signed."""
        return await self._signed(conn, now, person_id, Purpose.CONFIRM, token, answer) is not None

    @property
    def _at(self) -> RelyingParty:
        if self._party is None:
            raise RuntimeError("passkeys are not possible here")
        return self._party

    async def _ask(
        self, source: Source, now: datetime, person_id: UUID | None, purpose: Purpose
    ) -> PasskeyChallenge:
        await _load()
        from webauthn import generate_authentication_options, options_to_json
        from webauthn.helpers.structs import PublicKeyCredentialDescriptor, UserVerificationRequirement

        challenge, token = await self._challenge(source, now, person_id, purpose)
        known = [] if person_id is None else await queries.of_person(source, person_id)
        options = generate_authentication_options(
            rp_id=self._at.id,
            challenge=challenge,
            timeout=int(LASTS.total_seconds() * 1000),
            allow_credentials=[PublicKeyCredentialDescriptor(id=one.id) for one in known],
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return PasskeyChallenge(token, options_to_json(options))

    async def _signed(
        self,
        conn: Connection,
        now: datetime,
        person_id: UUID | None,
        purpose: Purpose,
        token: str,
        answer: str,
    ) -> UUID | None:
        await _load()
        from webauthn import verify_authentication_response
        from webauthn.helpers import parse_authentication_credential_json

        challenge = await self._taken(conn, now, person_id, purpose, token)
        credential = None if challenge is None else _judged(answer, parse_authentication_credential_json)
        if challenge is None or credential is None:
            return None
        known = await queries.of_id(conn, credential.raw_id)
        if known is None or person_id not in (None, known.person_id):
            return None
        # The passkey says whose it is as well; for somebody else's it has not signed.
        if credential.response.user_handle not in (None, b"", known.person_id.bytes):
            return None
        signed = _judged(
            answer,
            lambda text: verify_authentication_response(
                credential=text,
                expected_challenge=challenge,
                expected_rp_id=self._at.id,
                expected_origin=self._at.origin,
                credential_public_key=known.public_key,
                credential_current_sign_count=known.sign_count,
                require_user_verification=True,
            ),
        )
        if signed is None or not await queries.use(conn, credential.raw_id, signed.new_sign_count, now):
            return None
        return known.person_id

    async def _challenge(
        self, source: Source, now: datetime, person_id: UUID | None, purpose: Purpose
    ) -> tuple[bytes, str]:
        challenge, token = secrets.token_bytes(CHALLENGE_BYTES), secrets.token_urlsafe(TOKEN_BYTES)
        await queries.store_challenge(
            source, _hash_of(token), person_id, purpose.value, challenge, now + LASTS
        )
        return challenge, token

    async def _taken(
        self, conn: Connection, now: datetime, person_id: UUID | None, purpose: Purpose, token: str
    ) -> bytes | None:
        if self._party is None:
            return None
        return await queries.take_challenge(conn, _hash_of(token), person_id, purpose.value, now)


async def _load() -> None:
    """Load the library in a thread: most processes never need it, and it takes longer than others should
    wait."""
    if LIBRARY not in sys.modules:
        await asyncio.to_thread(import_module, LIBRARY)


def _hash_of(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _judged(answer: str, judge: Callable[[str], T]) -> T | None:
    """Return the library's verdict on a browser's answer; None where it refuses it."""
    if len(answer) > LONGEST_ANSWER:
        return None
    try:
        return judge(answer)
    except Exception:
        # Beside its own exceptions the library lets pass those of the parsers of JSON, CBOR and X.509 that it
        # gives the answer to: whatever they raise, it is not one that can be accepted.
        return None


def _transports(answer: str) -> list[str]:
    """Return how the browser reaches the passkey, as far as it says so."""
    from webauthn.helpers import parse_registration_credential_json

    found = _judged(answer, parse_registration_credential_json)
    named = None if found is None else found.response.transports
    return sorted({one.value for one in named or []})


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
