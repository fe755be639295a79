"""The keys that sign access tokens (oauth.md 2): ES256, in the database, the private halves sealed.

The process that first needs a key makes it. A new key is published some time before it signs. An old one
stays published until nothing that it signed is good any more. So whoever keeps the list for some minutes
never meets a key that is missing there.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypedDict, cast
from uuid import UUID, uuid4

import asyncpg
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.security.secrets import KeyRing, KeyRingError
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.oauth import key_queries
from pillarbox.oauth.key_queries import OAUTH_KEYS, SigningKeyRow

log = get("oauth")

COORDINATE_BYTES: Final = 32
NEVER: Final = float("-inf")
LOOK_EVERY: Final = 60.0
LOOK_AGAIN: Final = 1.0

SIGNS_AFTER: Final = timedelta(minutes=20)
"""How long a new key is published before it signs, unless it is the only one."""
STAYS: Final = timedelta(minutes=60)
"""How long an old one is published after the next one began to sign."""
ROTATED_AFTER: Final = timedelta(days=90)
REMOVED_AFTER: Final = timedelta(days=30)
EVERY: Final = timedelta(hours=1)


class PublicKey(TypedDict):
    """A key as the list of keys shows it (RFC 7517), in this order."""

    kty: str
    crv: str
    x: str
    y: str
    use: str
    alg: str
    kid: str


class TokenSigningKey(NamedTuple):
    """A key, ready to sign. A private half that the key ring cannot open is None: it only verifies."""

    kid: str
    private: ec.EllipticCurvePrivateKey | None
    public: PublicKey
    verifier: ec.EllipticCurvePublicKey
    active_at: datetime


class NoSigningKeyError(KeyRingError):
    """There are keys, and the key ring opens none of them."""

    def __init__(self) -> None:
        super().__init__("The key ring opens none of the keys that sign access tokens.")


class SigningKeys:
    """The keys, as far as this process knows them."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, ring: KeyRing) -> None:
        self._pool = pool
        self._clock = clock
        self._ring = ring
        self._keys: Mapping[str, TokenSigningKey] = {}
        self._looked_at = NEVER
        self._reading = asyncio.Lock()

    async def signing(self) -> TokenSigningKey:
        """Return the key that signs now; it is made where there is none. Not to be asked for in a
        transaction: it may need a connection."""
        await self._current()
        if not self._keys:
            await self._make_first()
        usable = [key for key in self._keys.values() if key.private is not None]
        if not usable:
            raise NoSigningKeyError
        now = self._clock.now()
        active = [key for key in usable if key.active_at <= now]
        return active[-1] if active else usable[0]

    async def verifying(self, kid: str) -> ec.EllipticCurvePublicKey | None:
        """Return the public key of that name. Where it is not known here the database is asked, once a
        second."""
        await self._current()
        if kid not in self._keys:
            async with self._reading:
                if kid not in self._keys and self._looked_before(LOOK_AGAIN):
                    await self._look()
        found = self._keys.get(kid)
        return None if found is None else found.verifier

    async def published(self) -> list[PublicKey]:
        """Return all keys that tokens may be signed with, the oldest first; at least one."""
        await self._look()
        if not self._keys:
            await self._make_first()
        return [key.public for key in self._keys.values()]

    async def add(self) -> str:
        """Make another key, which signs from `SIGNS_AFTER` on; returns its name."""
        async with transaction(self._pool) as conn:
            await key_queries.lock(conn)
            kid = await self._add(conn, self._clock.now() + SIGNS_AFTER)
        await self._look()
        return kid

    async def replace(self) -> str:
        """Make another key that signs at once, and retire all others: what they signed is no longer good as
        soon as the processes have looked, within a minute. Returns its name."""
        now = self._clock.now()
        async with transaction(self._pool) as conn:
            await key_queries.lock(conn)
            kid = await self._add(conn, now)
            await key_queries.retire_others(conn, now, _id_of(kid))
        await self._look()
        return kid

    async def rotate(self) -> str:
        """Make the next key when the newest one is old, and retire and remove those that are not needed any
        more. Says what was done."""
        now, made = self._clock.now(), 0
        async with transaction(self._pool) as conn:
            await key_queries.lock(conn)
            self._take(await key_queries.published(conn))
            newest = max((key.active_at for key in self._keys.values() if key.private), default=None)
            if self._keys and (newest is None or newest + ROTATED_AFTER <= now):
                await self._add(conn, now if newest is None else now + SIGNS_AFTER)
                made = 1
            retired = await key_queries.retire_replaced(conn, now, now - STAYS)
            removed = await key_queries.remove_retired(conn, now - REMOVED_AFTER)
        self._looked_at = NEVER
        return f"{made} keys made, {retired} retired, {removed} removed"

    def periodic(self) -> list[Periodic]:
        return [Periodic("oauth.keys", EVERY, self.rotate)]

    async def _current(self) -> None:
        if not self._keys or self._looked_before(LOOK_EVERY):
            await self._look()

    def _looked_before(self, seconds: float) -> bool:
        now = self._clock.boottime()
        return not self._looked_at <= now < self._looked_at + seconds

    async def _look(self) -> None:
        self._looked_at = self._clock.boottime()
        try:
            self._take(await key_queries.published(self._pool))
        except BaseException:
            self._looked_at = NEVER
            raise

    async def _make_first(self) -> None:
        async with transaction(self._pool) as conn:
            await key_queries.lock(conn)
            if not await key_queries.published(conn):
                await self._add(conn, self._clock.now())
        await self._look()

    async def _add(self, conn: Connection, active_at: datetime) -> str:
        made, row_id = ec.generate_private_key(ec.SECP256R1()), uuid4()
        kid = _kid(row_id)
        private = made.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        sealed = self._ring.seal(private, OAUTH_KEYS.context(row_id))
        shown = json.dumps(public_key(made.public_key(), kid))
        key = SigningKeyRow(id=row_id, kid=kid, public=shown, private=sealed, active_at=active_at)
        await key_queries.add(conn, key, self._clock.now())
        return kid

    def _take(self, rows: Sequence[SigningKeyRow]) -> None:
        """Know these keys from now on, and no others."""
        known = self._keys
        self._keys = {row.kid: known[row.kid] if row.kid in known else self._opened(row) for row in rows}

    def _opened(self, row: SigningKeyRow) -> TokenSigningKey:
        public: PublicKey = json.loads(row.public)
        private = None
        try:
            opened = self._ring.open(row.private, OAUTH_KEYS.context(row.id))
            private = cast(ec.EllipticCurvePrivateKey, load_der_private_key(opened, None))
        except KeyRingError as trouble:
            log.error("oauth.key_unopened", kid=row.kid, trouble=str(trouble))
        return TokenSigningKey(
            kid=row.kid, private=private, public=public, verifier=verifier_of(public), active_at=row.active_at
        )


def _kid(row_id: UUID) -> str:
    return urlsafe_b64encode(row_id.bytes).rstrip(b"=").decode("ascii")


def _id_of(kid: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(kid + "=="))


def public_key(key: ec.EllipticCurvePublicKey, kid: str) -> PublicKey:
    """Return the key as it is published; a coordinate always has 32 octets (RFC 7518, 6.2.1.2)."""
    numbers = key.public_numbers()
    return PublicKey(
        kty="EC",
        crv="P-256",
        x=_coordinate(numbers.x),
        y=_coordinate(numbers.y),
        use="sig",
        alg="ES256",
        kid=kid,
    )


def verifier_of(shown: PublicKey) -> ec.EllipticCurvePublicKey:
    """Return the key that `public_key` shows."""
    return ec.EllipticCurvePublicNumbers(
        _number(shown["x"]), _number(shown["y"]), ec.SECP256R1()
    ).public_key()


def _coordinate(number: int) -> str:
    raw = number.to_bytes(COORDINATE_BYTES, "big")
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _number(text: str) -> int:
    return int.from_bytes(urlsafe_b64decode(text + "="), "big")
