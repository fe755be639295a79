"""`Idempotency-Key`: header, fingerprint, what runs in this process, and answers already given.

The key is a row of the transaction of the effects it answers for (contract decision 26). This module looks
rows up; the code that makes the effects writes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http import queries
from pillarbox.kernel.http.queries import StoredAnswer
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.standbys import confirm_commits
from pillarbox.kernel.wire import large_json
from pillarbox.kernel.wire.problems import (
    ConcurrentIdempotentRequest,
    IdempotencyMismatch,
    InvalidIdempotencyKey,
)

LIFETIME = timedelta(hours=24)
LONGEST_KEY = 256

_sorted = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Idempotency:
    """The key of one request: its scope and name, and the fingerprint that a repetition must have."""

    scope: str
    key: str
    fingerprint: bytes


class AlreadyAnswered(Exception):  # noqa: N818
    """The key's row exists: another request with this key was committed first. Nothing was written."""


class IdempotencyStore(Protocol):
    """Where answers are kept."""

    async def find(self, team_id: UUID, scope: str, key: str) -> StoredAnswer | None:
        """Return the answer given under this key within the last 24 hours."""
        ...


class IdempotencyRows:
    """The store over table `idempotency_keys`."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    async def find(self, team_id: UUID, scope: str, key: str) -> StoredAnswer | None:
        stored = await queries.answer(self._pool, team_id, scope, key, self._clock.now() - LIFETIME)
        if stored is None:
            return None
        # Found by reading: repeated only once it is as durable as the answer promises.
        await confirm_commits(self._pool)
        return stored


def lock_name(team_id: UUID, idempotency: Idempotency) -> str:
    """Return the text from which the advisory lock of a key is derived."""
    return f"{team_id} {idempotency.scope} {idempotency.key}"


async def keep_answer(
    conn: Connection, team_id: UUID, idempotency: Idempotency, status: int, body: bytes, now: datetime
) -> None:
    """Keep the answer in the transaction of the effects it answers for. Raises AlreadyAnswered or
    ConcurrentIdempotentRequest, which must undo them."""
    if not await queries.lock_key(conn, lock_name(team_id, idempotency)):
        raise ConcurrentIdempotentRequest
    answer = StoredAnswer(idempotency.fingerprint, status, body)
    scope, key = idempotency.scope, idempotency.key
    if not await queries.store_answer(conn, team_id, scope, key, answer, now, now - LIFETIME):
        raise AlreadyAnswered


def key_of(header: bytes | None) -> str | None:
    """Return the key in the header, byte by byte and not trimmed; None without the header."""
    if header is None:
        return None
    if not 1 <= len(header) <= LONGEST_KEY or not all(0x20 <= byte <= 0x7E for byte in header):
        raise InvalidIdempotencyKey
    return header.decode("ascii")


def fingerprint(body: Any, salt: str = "", *, is_large: bool = False) -> bytes:
    """Return the SHA-256 of the body with sorted keys, and of what else decides the answer. A large one is
    written in pieces, for a thread that lets others run."""
    digest = hashlib.sha256()
    for piece in large_json.encoded(body) if is_large else (_sorted(body),):
        digest.update(piece)
    digest.update(b"\n" + salt.encode())
    return digest.digest()


def same(stored: StoredAnswer, idempotency: Idempotency) -> StoredAnswer:
    """Return the stored answer, if it answers this very request."""
    if stored.fingerprint != idempotency.fingerprint:
        raise IdempotencyMismatch
    return stored


class RunningKeys:
    """The keys that this process is working on right now."""

    def __init__(self) -> None:
        self._fingerprints: dict[tuple[UUID, str, str], bytes] = {}

    @contextmanager
    def hold(self, team_id: UUID, idempotency: Idempotency) -> Iterator[None]:
        """Hold the key; a second holder is refused by the contract's two 409 answers."""
        name = (team_id, idempotency.scope, idempotency.key)
        held = self._fingerprints.get(name)
        if held is not None:
            raise ConcurrentIdempotentRequest if held == idempotency.fingerprint else IdempotencyMismatch
        self._fingerprints[name] = idempotency.fingerprint
        try:
            yield
        finally:
            del self._fingerprints[name]
