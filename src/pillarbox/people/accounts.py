"""Makes people, sets their passwords, and tells which teams they belong to."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Stamp
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.wire.problems import Conflict
from pillarbox.oauth import grants
from pillarbox.people import queries, sessions
from pillarbox.people.addresses import address_queries
from pillarbox.people.roles import TeamRole

LONGEST_NAME = 100
JOINERS = "\u200c\u200d"
"""They belong to names of several languages, and to pictures of people."""


class AddressTaken(Conflict):
    def __init__(self) -> None:
        super().__init__("There is a person with this email address already.")


async def create(conn: Connection, stamp: Stamp, address: EmailAddress, name: str | None) -> UUID:
    """Create a person without a password; raises AddressTaken."""
    try:
        async with conn.transaction():
            await queries.insert(conn, stamp.id, address.shown, address.address, name, stamp.at)
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "people_email_key_key":
            raise
        raise AddressTaken from None
    return stamp.id


async def join(
    conn: Connection, stamp: Stamp, person_id: UUID, address: EmailAddress, team_id: UUID, role: TeamRole
) -> bool:
    """Make the person a member of the team; it takes the place of a member without a person that has its
    address. False where it belongs to the team already: then its role stays."""
    if await queries.take_place(conn, team_id, address.address, person_id, role.value):
        return True
    return await queries.add_member(conn, team_id, stamp.id, address.shown, person_id, role.value, stamp.at)


async def set_password(
    conn: Connection, now: datetime, person_id: UUID, hashed: str, *, keep: str | None = None
) -> None:
    """Set a new password. All sessions end but the one of the token `keep`, and so do links: those for
    another password or for setting up ask for no second factor (SEC-03)."""
    await queries.set_password(conn, person_id, hashed, now)
    await sessions.end_all(conn, person_id, but=keep)
    await end_links(conn, person_id)


async def set_address(
    conn: Connection, person_id: UUID, address: EmailAddress, *, keep: str | None = None
) -> None:
    """Change the address that the person logs in with. All their sessions end except that of the token
    `keep`, and so do all links, which were mailed to the old address. Raises AddressTaken; then nothing is
    changed."""
    try:
        async with conn.transaction():
            await address_queries.set_address(conn, person_id, address.shown, address.address)
            await address_queries.follow(conn, person_id, address.shown)
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name not in ("people_email_key_key", "team_members_team_email_key"):
            raise
        raise AddressTaken from None
    await sessions.end_all(conn, person_id, but=keep)
    await end_links(conn, person_id)


async def end_links(conn: Connection, person_id: UUID) -> None:
    """End all links that were made for the person: for another password, for setting up, for another
    address."""
    await queries.end_links(conn, person_id, ["password", "set_up"])
    await address_queries.end(conn, person_id)


async def set_name(source: Source, person_id: UUID, name: str | None) -> None:
    """Change the name of the person; None removes it."""
    await queries.set_name(source, person_id, name)


async def disable(conn: Connection, now: datetime, person_id: UUID) -> bool:
    """Keep the person from logging in. Sessions and links end, and so, for good, does the access of programs
    that they let in.

    False where it was so already.
    """
    done = await queries.disable(conn, person_id, now)
    await grants.revoke_of_person(conn, now, None, person_id)
    await sessions.end_all(conn, person_id)
    await end_links(conn, person_id)
    return done


async def enable(source: Source, person_id: UUID) -> bool:
    """Let the person log in again; False where they could."""
    return await queries.enable(source, person_id)


def clean_name(text: str) -> str | None:
    """Return a name as it is kept: one line, of bounded length; None for nothing."""
    plain = "".join(char if char.isprintable() or char in JOINERS else " " for char in text)
    name = " ".join(plain.split())[:LONGEST_NAME].strip()
    return name if name.strip(JOINERS + " ") else None
