"""SQL of sign-ups: addresses that wait for their click, and what was consented to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.work.collectors import changed


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSignUp:
    """An address that somebody gave to a form. `content` has the values and topics, as JSON; those of one
    `network` count as one sender."""

    id: UUID
    form_id: UUID
    address: str
    email: str
    digest: bytes
    content: str
    consent_text: str
    client: str
    network: str
    requested_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpRow:
    """A sign-up. It is confirmed, waits, or has expired."""

    id: UUID
    form_id: UUID
    address: str
    email: str
    digest: bytes
    content: str
    consent_text: str
    client: str
    requested_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None
    confirmed_client: str | None
    contact_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpOfAddress:
    """A sign-up of an address, with its form as far as that is still there."""

    id: UUID
    form_id: UUID
    form_name: str | None
    consent_text: str
    requested_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None


OF_ADDRESS_BEFORE = """
    SELECT s.id, s.form_id, f.name AS form_name, s.consent_text, s.requested_at, s.expires_at, s.confirmed_at
      FROM form_sign_ups s
      LEFT JOIN forms f ON f.team_id = s.team_id AND f.id = s.form_id AND f.deleted_at IS NULL
     WHERE s.team_id = $1 AND s.address = $2 AND (s.requested_at, s.id) < ($3, $4)
     ORDER BY s.requested_at DESC, s.id DESC
     LIMIT $5
"""


class RecentSignUps(NamedTuple):
    """Sign-ups of a form since an instant, and those of one network among them."""

    of_form: int
    of_network: int


READ = """
    SELECT id, form_id, address, email, digest, content::text, consent_text, client, requested_at, expires_at,
           confirmed_at, confirmed_client, contact_id
      FROM (
        (SELECT * FROM form_sign_ups
          WHERE team_id = $1 AND form_id = $5 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM form_sign_ups
          WHERE team_id = $1 AND form_id = $5 AND id > $3 ORDER BY id LIMIT $4)
    ) AS page
"""


async def page(db: TeamDb, form_id: UUID, page: Page) -> list[SignUpRow]:
    return await db.all(SignUpRow, READ, *page.args, form_id)


async def hold_form(db: TeamDb, form_id: UUID) -> None:
    """Let sign-ups of a form be counted one by one until the transaction ends."""
    await db.run(
        """
        SELECT pg_advisory_xact_lock(hashtextextended('sign-ups of ' || team_id || $2, 0))
          FROM (SELECT $1::uuid AS team_id) AS held
        """,
        str(form_id),
    )


async def hold_address(db: TeamDb, address: str) -> None:
    """Let sign-ups of an address be taken one by one until the transaction ends."""
    await db.run(
        """
        SELECT pg_advisory_xact_lock(hashtextextended('sign-ups by ' || team_id || $2, 0))
          FROM (SELECT $1::uuid AS team_id) AS held
        """,
        address,
    )


async def recent(db: TeamDb, form_id: UUID, since: UUID, network: str) -> RecentSignUps:
    """Return how many sign-ups of a form there are since the instant of an id."""
    rows = await db.source.fetch(
        """
        SELECT count(*) AS of_form, count(*) FILTER (WHERE network = $4) AS of_network
          FROM form_sign_ups
         WHERE team_id = $1 AND form_id = $2 AND id > $3
        """,
        db.team_id,
        form_id,
        since,
        network,
    )
    return RecentSignUps(*rows[0])


async def has_recent(db: TeamDb, address: str, since: datetime) -> bool:
    """Return whether any form of the team took this address since then."""
    found: bool = await db.value(
        """
        SELECT EXISTS (SELECT FROM form_sign_ups WHERE team_id = $1 AND address = $2 AND requested_at > $3)
        """,
        address,
        since,
    )
    return found


async def insert(db: TeamDb, sign_up: NewSignUp) -> None:
    await db.run(
        """
        INSERT INTO form_sign_ups
               (team_id, id, form_id, address, email, digest, content, consent_text, client, network,
                requested_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7::text::json, $8, $9, $10, $11, $12)
        """,
        sign_up.id,
        sign_up.form_id,
        sign_up.address,
        sign_up.email,
        sign_up.digest,
        sign_up.content,
        sign_up.consent_text,
        sign_up.client,
        sign_up.network,
        sign_up.requested_at,
        sign_up.expires_at,
    )


async def find(db: TeamDb, sign_up_id: UUID) -> SignUpRow | None:
    """Return a sign-up."""
    return await db.one(
        SignUpRow,
        """
        SELECT id, form_id, address, email, digest, content::text, consent_text, client, requested_at,
               expires_at, confirmed_at, confirmed_client, contact_id
          FROM form_sign_ups
         WHERE team_id = $1 AND id = $2
        """,
        sign_up_id,
    )


async def lock(db: TeamDb, sign_up_id: UUID) -> SignUpRow | None:
    """Return a sign-up, which nobody else confirms until the transaction ends."""
    return await db.one(
        SignUpRow,
        """
        SELECT id, form_id, address, email, digest, content::text, consent_text, client, requested_at,
               expires_at, confirmed_at, confirmed_client, contact_id
          FROM form_sign_ups
         WHERE team_id = $1 AND id = $2
           FOR UPDATE
        """,
        sign_up_id,
    )


async def confirm(db: TeamDb, sign_up_id: UUID, contact_id: UUID, client: str, now: datetime) -> bool:
    """Record a consent; False where it is recorded already."""
    status = await db.run(
        """
        UPDATE form_sign_ups SET confirmed_at = $5, confirmed_client = $4, contact_id = $3
         WHERE team_id = $1 AND id = $2 AND confirmed_at IS NULL
        """,
        sign_up_id,
        contact_id,
        client,
        now,
    )
    return status == 1


async def remove_unconfirmed(db: TeamDb, form_id: UUID) -> None:
    """Remove what waits of a form that is deleted."""
    await db.run(
        "DELETE FROM form_sign_ups WHERE team_id = $1 AND form_id = $2 AND confirmed_at IS NULL", form_id
    )


async def of_address(db: TeamDb, address: str) -> list[SignUpRow]:
    """Return the sign-ups of an address, the newest first."""
    return await db.all(
        SignUpRow,
        """
        SELECT id, form_id, address, email, digest, content::text, consent_text, client, requested_at,
               expires_at, confirmed_at, confirmed_client, contact_id
          FROM form_sign_ups
         WHERE team_id = $1 AND address = $2
         ORDER BY id DESC
         LIMIT 1000
        """,
        address,
    )


async def of_address_before(
    db: TeamDb, address: str, before: tuple[datetime, UUID], limit: int
) -> list[SignUpOfAddress]:
    """Return the newest sign-ups of an address before an instant and id."""
    return await db.all(SignUpOfAddress, OF_ADDRESS_BEFORE, address, *before, limit)


async def erase(db: TeamDb, address: str) -> int:
    """Remove all sign-ups of an address; return how many there were."""
    return await db.run("DELETE FROM form_sign_ups WHERE team_id = $1 AND address = $2", address)


async def remove_expired(pool: asyncpg.Pool, before: datetime, limit: int) -> int:
    """Remove sign-ups, of all teams, that nobody confirmed and whose link expired before an instant."""
    status = await pool.execute(
        """
        DELETE FROM form_sign_ups s
         USING (SELECT team_id, id
                  FROM form_sign_ups
                 WHERE confirmed_at IS NULL AND expires_at < $1
                 ORDER BY expires_at
                 LIMIT $2) AS old
         WHERE s.team_id = old.team_id AND s.id = old.id AND s.confirmed_at IS NULL
        """,
        before,
        limit,
    )
    return changed(status)
