"""SQL of the domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain of a team, with the public half of its active DKIM key."""

    id: UUID
    name: str
    region: str
    created_at: datetime
    return_path: str
    tracking_subdomain: str | None
    open_tracking: bool
    click_tracking: bool
    tls: str
    sending: bool
    receiving: bool
    selector: str
    public_key: str
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    claim_id: UUID | None = None
    """The open claim that the domain is the placeholder of."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A DKIM key with its sealed private half."""

    id: UUID
    selector: str
    public_key: str
    sealed: bytes
    created_at: datetime


def _domain(*, records: str, **columns: Any) -> Domain:
    return Domain(**columns, states=msgspec.json.decode(records))


async def insert(db: TeamDb, domain: Domain) -> None:
    await db.run(
        """
        INSERT INTO domains (team_id, id, name, region, created_at, return_path, tracking_subdomain,
                             open_tracking, click_tracking, tls, sending, receiving, claim_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        """,
        domain.id,
        domain.name,
        domain.region,
        domain.created_at,
        domain.return_path,
        domain.tracking_subdomain,
        domain.open_tracking,
        domain.click_tracking,
        domain.tls,
        domain.sending,
        domain.receiving,
        domain.claim_id,
    )


async def insert_key(db: TeamDb, domain_id: UUID, key: StoredKey) -> None:
    await db.run(
        """
        INSERT INTO dkim_keys (team_id, id, domain_id, selector, algorithm, public_key, private_key,
                               active, created_at)
        VALUES ($1, $2, $3, $4, 'rsa', $5, $6, true, $7)
        """,
        key.id,
        domain_id,
        key.selector,
        key.public_key,
        key.sealed,
        key.created_at,
    )


async def page(db: TeamDb, page: Page) -> list[Domain]:
    return await db.all(
        _domain,
        """
        SELECT id, name, region, created_at, return_path, tracking_subdomain, open_tracking,
               click_tracking, tls, sending, receiving, '' AS selector, '' AS public_key, records, claim_id
          FROM (
            (SELECT *
               FROM domains WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM domains WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
    )


async def get(db: TeamDb, domain_id: UUID) -> Domain | None:
    return await db.one(
        _domain,
        """
        SELECT d.id, d.name, d.region, d.created_at, d.return_path, d.tracking_subdomain, d.open_tracking,
               d.click_tracking, d.tls, d.sending, d.receiving, k.selector, k.public_key, d.records,
               d.claim_id
          FROM domains d
          JOIN dkim_keys k
            ON k.team_id = d.team_id AND k.domain_id = d.id AND k.active AND k.algorithm = 'rsa'
         WHERE d.team_id = $1 AND d.id = $2
        """,
        domain_id,
    )


async def lock(db: TeamDb, domain_id: UUID) -> Domain | None:
    """Lock the domain and return it; nobody else changes it, or makes a key for it, before the
    transaction ends."""
    held = await db.value("SELECT true FROM domains WHERE team_id = $1 AND id = $2 FOR UPDATE", domain_id)
    return await get(db, domain_id) if held else None


async def exists(db: TeamDb, domain_id: UUID) -> bool:
    found = await db.value("SELECT true FROM domains WHERE team_id = $1 AND id = $2", domain_id)
    return found is True


async def name_of(db: TeamDb, domain_id: UUID) -> str | None:
    found: str | None = await db.value("SELECT name FROM domains WHERE team_id = $1 AND id = $2", domain_id)
    return found


class DomainNameUse(NamedTuple):
    """A team's use of a name: its domain, the open claim that this stands for, whether the team owns it."""

    domain_id: UUID
    claim_id: UUID | None
    owned: bool


async def place(db: TeamDb, name: str) -> DomainNameUse | None:
    return await db.one(
        DomainNameUse,
        """
        SELECT d.id AS domain_id, d.claim_id, h.owned
          FROM domains d
          JOIN directory_domains h ON h.name = d.name AND h.team_id = d.team_id
         WHERE d.team_id = $1 AND d.name = $2
        """,
        name,
    )


async def update(db: TeamDb, domain: Domain) -> None:
    """Store the settings that a PATCH may change. What is disabled may not be used any more."""
    await db.run(
        """
        UPDATE domains
           SET sending = $3, receiving = $4, tracking_subdomain = $5, open_tracking = $6, click_tracking = $7,
               tls = $8, records = $9, sending_ok = sending_ok AND $3, receiving_ok = receiving_ok AND $4,
               tracking_ok = tracking_ok AND tracking_subdomain IS NOT DISTINCT FROM $5
         WHERE team_id = $1 AND id = $2
        """,
        domain.id,
        domain.sending,
        domain.receiving,
        domain.tracking_subdomain,
        domain.open_tracking,
        domain.click_tracking,
        domain.tls,
        msgspec.json.encode(domain.states).decode(),
    )


async def delete(db: TeamDb, domain_id: UUID) -> None:
    await db.run("DELETE FROM domains WHERE team_id = $1 AND id = $2", domain_id)


async def id_of(db: TeamDb, name: str) -> UUID | None:
    found: UUID | None = await db.value("SELECT id FROM domains WHERE team_id = $1 AND name = $2", name)
    return found


async def hold_count(db: TeamDb) -> None:
    """Let nobody else add domains to a team whose number of them is limited, until the transaction ends."""
    await db.run(
        "SELECT pg_advisory_xact_lock(hashtextextended('domains of ' || t.team_id, 0)) "
        "FROM (SELECT $1::uuid AS team_id) t"
    )


async def allowed(db: TeamDb, usual: int | None) -> int | None:
    """Return how many domains the team may have: its own number, or else `usual`; None is no limit."""
    found: int | None = await db.value(
        "SELECT coalesce(t.most_domains, $2) FROM (SELECT id AS team_id, most_domains FROM teams) t "
        "WHERE t.team_id = $1",
        usual,
    )
    return found


async def count(db: TeamDb) -> int:
    found: int = await db.value("SELECT count(*) FROM domains WHERE team_id = $1")
    return found


# Across teams: the ownership proof is asked for as soon as there is a second team.
async def several_teams(db: TeamDb) -> bool:
    found: bool = await db.value("SELECT EXISTS (SELECT FROM teams WHERE id <> $1)")
    return found


async def hold(db: TeamDb, domain_id: UUID) -> bool:
    found = await db.value("SELECT true FROM domains WHERE team_id = $1 AND id = $2 FOR KEY SHARE", domain_id)
    return found is True


async def trust(db: TeamDb, domain_id: UUID, records: str, *, tracking: bool) -> None:
    await db.run(
        """
        UPDATE domains
           SET trusted = true, sending_ok = sending, receiving_ok = receiving, records = $3,
               tracking_ok = tracking_ok OR $4
         WHERE team_id = $1 AND id = $2
        """,
        domain_id,
        records,
        tracking,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderRow:
    """A domain as sending from it needs it, with its key."""

    id: UUID
    name: str
    return_path: str
    sending: bool
    sending_ok: bool
    trusted: bool
    tls: str
    open_tracking: bool
    click_tracking: bool
    tracking_subdomain: str | None
    tracking_ok: bool
    dkim_id: UUID
    selector: str
    sealed: bytes
    has_policies: bool


async def sender(db: TeamDb, name: str) -> SenderRow | None:
    return await db.one(
        SenderRow,
        """
        SELECT d.id, d.name, d.return_path, d.sending, d.sending_ok, d.trusted, d.tls, d.open_tracking,
               d.click_tracking, d.tracking_subdomain, d.tracking_ok, k.id AS dkim_id, k.selector,
               k.private_key AS sealed,
               EXISTS (SELECT FROM inbox_policies p WHERE p.team_id = $1) AS has_policies
          FROM domains d
          JOIN dkim_keys k
            ON k.team_id = d.team_id AND k.domain_id = d.id AND k.active AND k.algorithm = 'rsa'
         WHERE d.team_id = $1 AND d.name = $2
        """,
        name,
    )


class OverviewRow(NamedTuple):
    """One domain; `trusted` says that the operator trusts it without DNS."""

    id: UUID
    name: str
    created_at: datetime
    sending: bool
    receiving: bool
    sending_ok: bool
    receiving_ok: bool
    trusted: bool
    states: dict[str, dict[str, Any]]


async def overview(db: TeamDb) -> list[OverviewRow]:
    """Return the team's domains by name."""
    return await db.all(
        _overview_row,
        """
        SELECT id, name, created_at, sending, receiving, sending_ok, receiving_ok, trusted, records
          FROM domains
         WHERE team_id = $1
         ORDER BY name
        """,
    )


def _overview_row(*, records: str, **columns: Any) -> OverviewRow:
    return OverviewRow(**columns, states=msgspec.json.decode(records))


async def digest(db: TeamDb, domain_id: UUID | None) -> str:
    """Return a digest of the states of this domain, or of the newest hundred."""
    found: str = await db.value(
        """
        SELECT md5(coalesce(string_agg(k.state, ',' ORDER BY k.state), ''))
          FROM (SELECT concat_ws(' ', d.id, d.sending, d.receiving, d.sending_ok, d.receiving_ok,
                                 d.tracking_ok, d.verifying_since, d.checked_at, d.claim_id) AS state
                  FROM domains d
                 WHERE d.team_id = $1 AND ($2::uuid IS NULL OR d.id = $2)
                 ORDER BY d.id DESC
                 LIMIT 100) AS k
        """,
        domain_id,
    )
    return found
