"""Logging in by password: limits, the comparison, and the session (SEC-03).

The answer and its time are the same whether or not there is somebody of that address. Tries are counted for
an address of email, for an address of the network, and for both together; those that were right are given
back. Who tries from where the person has a session is not slowed by what others try elsewhere. A browser
that is known to be the person's (`known_devices.py`), and one that has a session, are counted by themselves
alone, so nobody can lock somebody out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, Source, transaction
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.people import audit, queries, session_queries, sessions
from pillarbox.people.audit import Act, Actor
from pillarbox.people.known_devices import KnownDevices
from pillarbox.people.passwords import LONGEST, PasswordHashingBusy, Passwords
from pillarbox.people.queries import Person
from pillarbox.people.sessions import SessionOrigin, SessionStage

WINDOW: Final = 300.0
PER_PAIR: Final = 5
PER_NETWORK: Final = 60
PER_PERSON: Final = 50
NOBODY: Final = UUID(int=0)
PASSWORD: Final = "password"  # noqa: S105 - how somebody logged in


class TooManyTries(NamedTuple):
    """Nothing was compared; after so many seconds it may be tried again."""

    seconds: int


class LoginRefused(NamedTuple):
    """There is nobody of that address and password."""


class LoggedIn(NamedTuple):
    """A new session; `stage` says whether a second factor is still to be given."""

    person: Person
    token: str
    stage: SessionStage


class ProvenPassword(NamedTuple):
    """The person whose password was given. `key` is the address in the form that is compared, and `better` a
    hash to store in place of an outdated one."""

    person: Person
    key: str
    stored: str
    better: str | None

    async def lock(self, conn: Connection) -> SessionStage | None:
        """Lock the person, and return the stage of the session that may begin; None where password or address
        were changed while the password was compared."""
        person = self.person
        has_factor = await queries.lock_unchanged(conn, person.id, person.password_changed_at, self.key)
        if has_factor is None:
            return None
        if self.better is not None:
            await queries.replace_hash(conn, person.id, self.stored, self.better)
        return SessionStage.PENDING if has_factor else SessionStage.FULL


Outcome = LoggedIn | TooManyTries | LoginRefused


@dataclass(frozen=True, slots=True)
class _Try:
    """The windows that count one try."""

    windows: Windows
    keys: tuple[tuple[bytes, int], ...]

    def take(self) -> TooManyTries | None:
        """Count it, unless there were too many: what is not compared counts nowhere, so that one place alone
        cannot use up the tries of all others."""
        for number, (key, most) in enumerate(self.keys):
            taken = self.windows.take(key, most, WINDOW)
            if not taken.allowed:
                for earlier, _ in self.keys[:number]:
                    self.windows.give_back(earlier)
                return TooManyTries(taken.reset)
        return None

    def give_back(self) -> None:
        for key, _ in self.keys:
            self.windows.give_back(key)


class Logins:
    """Lets people in by their password."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        ids: Ids,
        windows: Windows,
        passwords: Passwords,
        devices: KnownDevices,
        *,
        are_passwords_closed: bool = False,
    ) -> None:
        self._pool = pool
        self._ids = ids
        self._windows = windows
        self._passwords = passwords
        self._devices = devices
        self._are_passwords_closed = are_passwords_closed

    async def log_in(
        self,
        now: datetime,
        address: str,
        password: str,
        origin: SessionOrigin,
        replaced: str | None = None,
        device: str | None = None,
    ) -> Outcome:
        """Log in, and return the outcome; the session of the token `replaced` ends with it. `device` is the
        token of the browser. Where passwords are closed, the password of an account that may not use it
        counts as wrong. Raises PasswordHashingBusy."""
        proven = await self._proven(now, address, password, origin, device, is_login=True)
        if not isinstance(proven, ProvenPassword):
            return proven
        person, stamp = proven.person, self._ids.stamp()
        async with transaction(self._pool) as conn:
            stage = await proven.lock(conn)
            if stage is None:
                return LoginRefused()
            if replaced is not None:
                await sessions.end(conn, replaced)
            token = await sessions.begin(conn, now, stamp.id, person.id, [PASSWORD], origin, stage=stage)
            if token is not None and stage is SessionStage.FULL:
                await queries.mark_login(conn, person.id, now)
                await self._record(conn, now, Act.LOGIN_SUCCEEDED, person, origin)
        return LoginRefused() if token is None else LoggedIn(person, token, stage)

    async def prove(
        self, now: datetime, address: str, password: str, origin: SessionOrigin, device: str | None = None
    ) -> ProvenPassword | TooManyTries | LoginRefused:
        """Compare a password as `log_in` does, and begin no session. Raises PasswordHashingBusy."""
        return await self._proven(now, address, password, origin, device, is_login=False)

    async def _proven(
        self,
        now: datetime,
        address: str,
        password: str,
        origin: SessionOrigin,
        device: str | None,
        *,
        is_login: bool,
    ) -> ProvenPassword | TooManyTries | LoginRefused:
        key = address_key(address)
        person = await queries.person_of_address(self._pool, key)
        known = self._devices.find(now, NOBODY if person is None else person.id, device)
        tries = self._own_tries(key, known.id) if known else await self._tries(key, person, origin)
        if (refused := tries.take()) is not None:
            return refused
        stored = person.password if person is not None and person.disabled_at is None else None
        is_right = await self._compared(stored, password, tries)
        is_closed = is_login and self._are_passwords_closed
        if not is_right or person is None or stored is None or (is_closed and not person.may_use_password):
            await self._record(self._pool, now, Act.LOGIN_FAILED, None, origin, address)
            return LoginRefused()
        tries.give_back()
        better = await self._passwords.hashed(password) if self._passwords.is_outdated(stored) else None
        return ProvenPassword(person, key, stored, better)

    async def has_password(self, person_id: UUID) -> bool:
        """Return whether the person has a password."""
        person = await queries.person(self._pool, person_id)
        return person is not None and person.password is not None

    async def is_password(
        self, person_id: UUID, address: str, password: str, session_id: UUID
    ) -> bool | TooManyTries:
        """Return whether it is the password of the person with this session; its tries are counted by
        themselves."""
        person = await queries.person(self._pool, person_id)
        tries = self._own_tries(address_key(address), session_id)
        if (refused := tries.take()) is not None:
            return refused
        is_right = await self._compared(None if person is None else person.password, password, tries)
        if is_right:
            tries.give_back()
        return is_right

    async def _compared(self, stored: str | None, password: str, tries: _Try) -> bool:
        """Return whether it is the password. Raises PasswordHashingBusy; then nothing was compared, and
        nothing counts."""
        try:
            return await self._passwords.matches(stored, password[: LONGEST + 1])
        except PasswordHashingBusy:
            tries.give_back()
            raise

    async def _record(
        self,
        source: Source,
        now: datetime,
        act: Act,
        person: Person | None,
        origin: SessionOrigin,
        tried: str = "",
    ) -> None:
        actor = Actor(
            person_id=person.id if person else None,
            name=person.email if person else None,
            address=origin.address,
            user_agent=origin.user_agent,
        )
        # What is no address may be a password in the wrong field.
        target = tried if is_address(tried) else None
        await audit.record(source, now, act, team_id=None, actor=actor, target=target)

    def _own_tries(self, key: str, device_id: UUID) -> _Try:
        """Return the tries of one browser that has proved whose it is: tries of others do not count."""
        return _Try(self._windows, ((key_for(f"login {key} by {device_id}"), PER_PAIR),))

    async def _tries(self, key: str, person: Person | None, origin: SessionOrigin) -> _Try:
        network = network_of(origin.address)
        keys = [
            (key_for(f"login {key} from {network}"), PER_PAIR),
            (key_for(f"login from {network}"), PER_NETWORK),
        ]
        person_id = NOBODY if person is None else person.id
        if not await session_queries.is_known_address(self._pool, person_id, origin.address):
            keys.append((key_for(f"login {key}"), PER_PERSON))
        return _Try(self._windows, tuple(keys))


def is_address(text: str) -> bool:
    try:
        return bool(email_address(text).address)
    except NotAnAddress:
        return False


def address_key(text: str) -> str:
    """Return the form in which the address is compared; for a text that is no address, one that nobody
    has."""
    try:
        return email_address(text).address
    except NotAnAddress:
        return f"no address: {text[:300]}"


def network_of(address: str | None) -> str:
    """Return the network that counts as one address: a /64 for IPv6."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return "unknown"
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped) if found.ipv4_mapped else str(ip_network((found, 64), strict=False))
