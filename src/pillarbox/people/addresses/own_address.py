"""Changing the address that one logs in with (docs/decisions/0106).

What is answered, stored and sent is as much whether or not somebody has the new address: only the mail to it
says which. The change is made when the link of that mail is used by the same person, logged in; the database
settles who is first.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import asyncpg

from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.wire.email_address import EmailAddress, email_address
from pillarbox.people import accounts, queries, sessions
from pillarbox.people.accounts import AddressTaken
from pillarbox.people.addresses import address_mails, address_queries
from pillarbox.people.addresses.address_mails import MailText
from pillarbox.people.addresses.address_queries import PendingChange
from pillarbox.people.audit import Act
from pillarbox.people.links import TOKEN_BYTES
from pillarbox.people.logins import TooManyTries, network_of
from pillarbox.people.mails import SystemMail
from pillarbox.people.own_account import AccountChange, RenewedSession, SessionEnded, renew_session
from pillarbox.people.visitors import Visitor

LASTS: Final = timedelta(hours=1)
WINDOW: Final = 3600.0
PER_NETWORK: Final = 20
PER_PERSON: Final = 5
PER_PAIR: Final = 3
PER_ADDRESS: Final = 6


class AddressRefusal(Enum):
    """Why the address was not changed."""

    OWN = "own"
    GONE = "gone"
    TAKEN = "taken"


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """Changes the address of a visitor. `site` is the URL of the installation."""

    pool: asyncpg.Pool
    windows: Windows
    mail: SystemMail
    site: str

    async def ask(self, acting: AccountChange, address: EmailAddress) -> TooManyTries | AddressRefusal | None:
        """Mail a link to the new address, and a notice to the present one. An earlier request for a change
        ends."""
        visitor = acting.visitor
        if address.address == email_address(visitor.email).address:
            return AddressRefusal.OWN
        if (refused := self._count(acting, address)) is not None:
            return refused
        token = secrets.token_urlsafe(TOKEN_BYTES)
        async with transaction(self.pool) as conn:
            email = await self._held(conn, acting)
            is_taken = await queries.person_of_address(conn, address.address) is not None
            hash_, until = sessions.token_hash(token), acting.at + LASTS
            await address_queries.ask(conn, visitor.person_id, hash_, address.shown, acting.at, until)
            link = f"{self.site}/account/address/link/{token}"
            first = address_mails.TAKEN if is_taken else address_mails.LINK
            await self._send(conn, acting.at, address.shown, first, email, address.shown, link)
            await self._send(conn, acting.at, email, address_mails.ASKED, email, address.shown)
            await acting.record(conn, Act.ADDRESS_CHANGE_ASKED, {"address": address.shown})
        return None

    async def pending(self, now: datetime, visitor: Visitor) -> PendingChange | None:
        """Return the change that waits for its link."""
        return await address_queries.pending(self.pool, visitor.person_id, now)

    async def withdraw(self, acting: AccountChange) -> bool:
        """End the change that is under way; False where there is none."""
        async with transaction(self.pool) as conn:
            address = await address_queries.end(conn, acting.visitor.person_id)
            if address is not None:
                await acting.record(conn, Act.ADDRESS_CHANGE_WITHDRAWN, {"address": address})
        return address is not None

    async def find(self, now: datetime, visitor: Visitor, token: str) -> str | None:
        """Return the address that this person's link leads to; None where the link does not work (any more),
        or belongs to somebody else."""
        hash_ = sessions.token_hash(token)
        return await address_queries.find(self.pool, hash_, visitor.person_id, now)

    async def change(self, acting: AccountChange, token: str) -> RenewedSession | AddressRefusal:
        """Log in with the new address from now on: all other sessions end, and so do all links of before.
        Raises SessionEnded."""
        try:
            async with transaction(self.pool) as conn:
                return await self._changed(conn, acting, token)
        except AddressTaken:
            return AddressRefusal.TAKEN

    async def _changed(
        self, conn: Connection, acting: AccountChange, token: str
    ) -> RenewedSession | AddressRefusal:
        visitor = acting.visitor
        before = await self._held(conn, acting)
        hash_ = sessions.token_hash(token)
        found = await address_queries.use(conn, hash_, visitor.person_id, acting.at)
        if found is None:
            return AddressRefusal.GONE
        address = email_address(found)
        await accounts.set_address(conn, visitor.person_id, address, keep=visitor.token)
        await acting.record(conn, Act.ADDRESS_CHANGED, {"address": address.shown})
        await self._send(conn, acting.at, before, address_mails.CHANGED, before, address.shown)
        return await renew_session(conn, acting)

    async def _held(self, conn: Connection, acting: AccountChange) -> str:
        """Return the present address, and lock it until the transaction ends. Raises SessionEnded for a
        person who was logged out before their turn came."""
        email = await queries.lock(conn, acting.visitor.person_id)
        if email is None or await sessions.find(conn, acting.at, acting.visitor.token) is None:
            raise SessionEnded
        return email

    def _count(self, acting: AccountChange, address: EmailAddress) -> TooManyTries | None:
        person, network = acting.visitor.person_id, network_of(acting.origin.address)
        for key, most in (
            (f"address change from {network}", PER_NETWORK),
            (f"address change of {person}", PER_PERSON),
            (f"address change of {person} to {address.address}", PER_PAIR),
            (f"address change to {address.address}", PER_ADDRESS),
        ):
            taken = self.windows.take(key_for(key), most, WINDOW)
            if not taken.allowed:
                return TooManyTries(taken.reset)
        return None

    async def _send(
        self, conn: Connection, now: datetime, to: str, mail: MailText, email: str, new: str, link: str = ""
    ) -> None:
        minutes = int(LASTS.total_seconds() // 60)
        text = mail.text.format(email=email, new=new, site=self.site, link=link, minutes=minutes)
        await self.mail.send(conn, now, to=to, subject=mail.subject, text=text)
