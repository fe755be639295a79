"""The global index of domain names: many teams may hold a name, at most one owns it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb


class Owner(NamedTuple):
    """The owner of a name, and since when (None: since before that was noted)."""

    team_id: UUID
    domain_id: UUID
    since: datetime | None


class NameReceivers(NamedTuple):
    """The receivers of mail to a name: the team that receives for it, if one does, and the teams of whose
    domains it is the host of return paths."""

    team_id: UUID | None
    senders: frozenset[UUID]


async def add(db: TeamDb, name: str, domain_id: UUID) -> None:
    """Note that the team holds the name."""
    await db.run(
        "INSERT INTO directory_domains (name, team_id, domain_id) VALUES ($2, $1, $3)", name, domain_id
    )


async def remove(db: TeamDb, name: str) -> None:
    """Forget that the team has, or owns, the name."""
    await db.run("DELETE FROM directory_domains WHERE name = $2 AND team_id = $1", name)


async def owned_elsewhere(db: TeamDb, name: str) -> bool:
    """Return whether another team has proved that it owns the name."""
    found: bool = await db.value(
        "SELECT EXISTS (SELECT FROM directory_domains WHERE name = $2 AND owned AND team_id <> $1)", name
    )
    return found


async def owner(source: Source, name: str) -> Owner | None:
    """Return the team that has shown that the name is its own."""
    row = await source.fetchrow(
        "SELECT team_id, domain_id, owned_at AS since FROM directory_domains WHERE name = $1 AND owned", name
    )
    return None if row is None else Owner(**row)


async def take_ownership(db: TeamDb, name: str, now: datetime) -> bool:
    """Make the team the owner of a name that it holds; False when another team is."""
    try:
        async with db.transaction() as inner:
            await inner.run(
                """
                UPDATE directory_domains SET owned = true, owned_at = $3
                 WHERE name = $2 AND team_id = $1 AND NOT owned
                """,
                name,
                now,
            )
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "directory_domains_owner":
            raise
        return False
    return True


async def release_ownership(db: TeamDb, name: str) -> None:
    """End the team's ownership of the name, if it had it: its proof is gone."""
    await db.run(
        """
        UPDATE directory_domains SET owned = false, owned_at = NULL
         WHERE name = $2 AND team_id = $1 AND owned
        """,
        name,
    )


async def receivers_of(
    source: Source, names: Sequence[str], *, require_dns: bool = True
) -> dict[str, NameReceivers]:
    """Return the receivers of these names (lower-case A-labels); all of them are in the answer.

    The receiver's domain has the capability, and DNS has shown it unless `require_dns` is false. Of a name
    that is owned only the owner receives, and nobody else at the return path of a domain that is owned.
    Where nobody owns it, the first team that added it receives. Return paths below a domain that a team
    merely holds count while no other team owns that domain or the name itself.
    """
    rows = await source.fetch(
        """
        SELECT k.name,
               (SELECT h.team_id
                  FROM directory_domains h
                  JOIN domains d ON d.team_id = h.team_id AND d.id = h.domain_id
                 WHERE h.name = k.name AND d.receiving AND d.claim_id IS NULL AND (d.receiving_ok OR NOT $2)
                   AND (h.owned
                        OR NOT EXISTS (SELECT
                                         FROM directory_domains o
                                        WHERE o.name = k.name AND o.owned)
                           AND NOT EXISTS (SELECT
                                             FROM directory_domains o
                                             JOIN domains a ON a.team_id = o.team_id AND a.id = o.domain_id
                                            WHERE o.name = k.above AND a.return_path = k.label AND o.owned
                                              AND o.team_id <> h.team_id))
                 ORDER BY d.receiving_ok DESC, h.domain_id
                 LIMIT 1) AS team_id,
               ARRAY(SELECT h.team_id
                       FROM directory_domains h
                       JOIN domains d ON d.team_id = h.team_id AND d.id = h.domain_id
                      WHERE h.name = k.above AND d.return_path = k.label
                        AND (h.owned
                             OR NOT EXISTS (SELECT
                                              FROM directory_domains o
                                             WHERE o.name IN (k.above, k.name) AND o.owned
                                               AND o.team_id <> h.team_id))) AS senders
          FROM (SELECT name, split_part(name, '.', 1) AS label,
                       substring(name FROM position('.' IN name) + 1) AS above
                  FROM unnest($1::text[]) AS n (name)) AS k
        """,
        names,
        require_dns,
    )
    return {row["name"]: NameReceivers(row["team_id"], frozenset(row["senders"])) for row in rows}


async def tracker(source: Source, name: str, label: str) -> UUID | None:
    """Return the team whose tracked links lead to the host of this label below the name: it owns the name,
    and DNS has shown that the host leads here."""
    found: UUID | None = await source.fetchval(
        """
        SELECT d.team_id
          FROM directory_domains h
          JOIN domains d ON d.team_id = h.team_id AND d.id = h.domain_id
         WHERE h.name = $1 AND h.owned AND d.tracking_subdomain = $2 AND d.tracking_ok
        """,
        name,
        label,
    )
    return found


async def hold_name(db: TeamDb, name: str) -> None:
    """Lock the name until the transaction ends, so that nobody else changes which teams have it. Take this
    before the rows of domains, and those before the rows of this directory."""
    connection: Connection = db.connection
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('domain ' || $1, 0))", name)
