"""A lost password: a link by mail, and what it does (SEC-03).

Asking takes the same time and says the same whether or not there is somebody of that address: what is found
out and sent happens in a job. The link works once, for half an hour; using it ends all sessions.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, transaction
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.jobs import Job, JobFinished
from pillarbox.kernel.work.periodic import NO_TEAM
from pillarbox.people import accounts, audit, links, queries
from pillarbox.people.audit import Act, Actor
from pillarbox.people.logins import TooManyTries, address_key, network_of
from pillarbox.people.mails import SystemMail
from pillarbox.people.passwords import Passwords
from pillarbox.people.queries import Person
from pillarbox.people.sessions import SessionOrigin

JOB_MAIL: Final = "people.password_mail"
WINDOW: Final = 900.0
PER_NETWORK: Final = 20
PER_ADDRESS: Final = 3

SUBJECT: Final = "Another password for Pillarbox"
TEXT: Final = """\
Somebody has asked for another password for {email} at {site}.

This link works once, for {minutes} minutes:

{link}

If it was not you, ignore this mail: your password stays as it is.
"""


class LostPasswords:
    """Sends links for another password, and takes the password."""

    def __init__(self, pool: asyncpg.Pool, ids: Ids, windows: Windows, passwords: Passwords) -> None:
        self._pool = pool
        self._ids = ids
        self._windows = windows
        self._passwords = passwords

    async def ask(self, now: datetime, address: str, origin: SessionOrigin) -> TooManyTries | None:
        """Have a link sent to the person with this address. Repeated requests for one address send no further
        mail; someone who asks for many addresses has to wait."""
        key = address_key(address)
        network = self._windows.take(
            key_for(f"lost password from {network_of(origin.address)}"), PER_NETWORK, WINDOW
        )
        if not network.allowed:
            return TooManyTries(network.reset)
        if self._windows.take(key_for(f"lost password of {key}"), PER_ADDRESS, WINDOW).allowed:
            # Of nobody's address there is a job too, which finds nobody: asking takes the same time.
            person, job_id = await queries.person_of_address(self._pool, key), self._ids.new()
            subject = job_id if person is None else person.id
            await job_queries.add(TeamDb(self._pool, NO_TEAM), job_id, JOB_MAIL, subject, now)
        return None

    async def find(self, now: datetime, token: str) -> Person | None:
        """Return the person whose password the link changes; None where it does not work (any more)."""
        link = await links.find(self._pool, now, links.LinkKind.PASSWORD, token)
        if link is None or link.person_id is None:
            return None
        found = await queries.person(self._pool, link.person_id)
        return None if found is None or found.disabled_at else found

    async def change(self, now: datetime, token: str, password: str, origin: SessionOrigin) -> bool:
        """Give whoever the link is for this password, and end all its sessions; False where the link does not
        work (any more). Raises PasswordHashingBusy."""
        hashed = await self._passwords.hashed(password)
        async with transaction(self._pool) as conn:
            link = await links.use(conn, now, links.LinkKind.PASSWORD, token)
            person = await queries.person(conn, link.person_id) if link and link.person_id else None
            if person is None or person.disabled_at is not None:
                return False
            await accounts.set_password(conn, now, person.id, hashed)
            actor = Actor(
                person_id=person.id,
                name=person.email,
                address=origin.address,
                user_agent=origin.user_agent,
            )
            await audit.record(conn, now, Act.PASSWORD_RESET, team_id=None, actor=actor)
        return True


class PasswordMail:
    """The job that sends a link, if there is somebody to send it to."""

    def __init__(self, mail: SystemMail, ids: Ids, public_url: str) -> None:
        self._mail = mail
        self._ids = ids
        self._public_url = public_url

    async def run(self, job: Job) -> JobFinished:
        async def effects(conn: Connection) -> None:
            # A link that is made while the address or the password changes comes before it, and ends with it.
            await queries.lock(conn, job.subject_id)
            person = await queries.person(conn, job.subject_id)
            if person is not None and person.disabled_at is None:
                await self._send(conn, person)

        return JobFinished(effects)

    async def _send(self, conn: Connection, person: Person) -> None:
        at = self._ids.now()
        token = await links.make(conn, at, links.LinkKind.PASSWORD, person_id=person.id)
        minutes = int(links.LIFETIME[links.LinkKind.PASSWORD].total_seconds() // 60)
        link = f"{self._public_url}/password/reset/{token}"
        text = TEXT.format(email=person.email, site=self._public_url, minutes=minutes, link=link)
        await self._mail.send(conn, at, to=person.email, subject=SUBJECT, text=text)
        actor = Actor(person_id=person.id, name=person.email)
        await audit.record(conn, at, Act.PASSWORD_LINK_ASKED, team_id=None, actor=actor)
