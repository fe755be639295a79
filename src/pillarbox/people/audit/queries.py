"""SQL of the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.paging import Page

EntryPlace = tuple[datetime, UUID]
"""Where an entry stands in the order of all teams' entries: its instant and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One entry, as it is shown."""

    id: UUID
    at: datetime
    what: str
    person_id: UUID | None
    key_id: UUID | None
    grant_id: UUID | None
    actor: str | None
    target: str | None
    address: str | None
    user_agent: str | None
    details: str | None

    @property
    def kind(self) -> str:
        """The kind of actor: `person`, `program`, `key`, `operator`, or `unknown`."""
        if self.key_id is not None:
            return "key"
        if self.grant_id is not None:
            return "program"
        if self.person_id is not None:
            return "person"
        return "unknown" if self.actor is None else "operator"


@dataclass(frozen=True, slots=True)
class EntryOfTeam(AuditEntry):
    """An entry with its team."""

    team_id: UUID


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are meant; what is None does not narrow them. `what` is an act or the first word of it,
    `who` a part of the actor's name or of what was acted on."""

    team_id: UUID | None = None
    what: str | None = None
    who: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def narrows(self) -> bool:
        """True where entries within the period are left out."""
        return any((self.team_id, self.what, self.who))


# What a key, a program or a person is called is kept: it may be gone when somebody reads the entry.
INSERT = """
    INSERT INTO audit_entries (team_id, id, at, what, person_id, key_id, grant_id, actor, target, address,
                               user_agent, details)
    VALUES ($1, $2, $3, $4, $5, $6, $7,
            coalesce($8::text,
                     (SELECT k.name FROM api_keys k WHERE k.team_id = $1 AND k.id = $6),
                     (SELECT g.client ->> 'name'
                        FROM oauth_grants g
                       WHERE g.team_id = $1 AND g.id = $7),
                     (SELECT p.email
                        FROM people p
                       WHERE p.id = $5 AND $6::uuid IS NULL AND $7::uuid IS NULL)),
            $9, $10, $11, $12::json)
"""


async def insert(
    db: TeamDb,
    entry_id: UUID,
    now: datetime,
    what: str,
    person_id: UUID | None,
    key_id: UUID | None,
    grant_id: UUID | None,
    actor: str | None,
    target: str | None,
    address: str | None,
    user_agent: str | None,
    details: str | None,
) -> None:
    await db.run(
        INSERT,
        entry_id,
        now,
        what,
        person_id,
        key_id,
        grant_id,
        actor,
        target,
        address,
        user_agent,
        details,
    )


async def page(db: TeamDb, page: Page) -> list[AuditEntry]:
    return await db.all(
        AuditEntry,
        """
        SELECT id, at, what, person_id, key_id, grant_id, actor, target, address, user_agent, details FROM (
            (SELECT *
               FROM audit_entries WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM audit_entries WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
    )


async def between(db: TeamDb, lower: UUID, upper: UUID, what: str, limit: int) -> list[AuditEntry]:
    """Return entries of an act whose ids are from `lower` up to but not including `upper`."""
    return await db.all(
        AuditEntry,
        """
        SELECT id, at, what, person_id, key_id, grant_id, actor, target, address, user_agent, details
          FROM audit_entries
         WHERE team_id = $1 AND id >= $2 AND id < $3 AND what = $4
         ORDER BY id
         LIMIT $5
        """,
        lower,
        upper,
        what,
        limit,
    )


# Across teams: the operator's log; a team narrows it.
async def page_of_all(
    source: Source,
    entry_filter: AuditFilter,
    limit: int,
    after: EntryPlace | None,
    last: EntryPlace | None = None,
) -> list[EntryOfTeam]:
    """Return the newest entries of before the one that `after` names, in all teams; none of before `last`."""
    instant, entry_id = after or (None, None)
    last_instant, last_id = last or (None, None)
    rows = await source.fetch(
        """
        SELECT id, at, what, person_id, key_id, grant_id, actor, target, address, user_agent, details, team_id
          FROM audit_entries
         WHERE ($1::uuid IS NULL OR team_id = $1)
           AND ($2::text IS NULL OR what = $2 OR starts_with(what, $2 || '.'))
           AND ($3::text IS NULL OR strpos(lower(actor), lower($3)) > 0
                OR strpos(lower(target), lower($3)) > 0)
           AND ($4::timestamptz IS NULL OR at >= $4)
           AND ($5::timestamptz IS NULL OR at < $5)
           AND ($6::timestamptz IS NULL OR (at, id) < ($6, $7::uuid))
           AND ($9::timestamptz IS NULL OR (at, id) >= ($9, $10::uuid))
         ORDER BY at DESC, id DESC
         LIMIT $8
        """,
        entry_filter.team_id,
        entry_filter.what,
        entry_filter.who,
        entry_filter.since,
        entry_filter.until,
        instant,
        entry_id,
        limit,
        last_instant,
        last_id,
    )
    return [EntryOfTeam(**row) for row in rows]


async def place_behind(
    source: Source, entry_filter: AuditFilter, rows: int, after: EntryPlace | None
) -> EntryPlace | None:
    """Return the place of the last of so many entries, of any kind and team, of before the one that `after`
    names; None where there are fewer."""
    instant, entry_id = after or (None, None)
    row = await source.fetchrow(
        """
        SELECT at, id
          FROM audit_entries
         WHERE ($1::timestamptz IS NULL OR at >= $1)
           AND ($2::timestamptz IS NULL OR at < $2)
           AND ($3::timestamptz IS NULL OR (at <= $3 AND (at, id) < ($3, $4::uuid)))
         ORDER BY at DESC, id DESC
        OFFSET $5
         LIMIT 1
        """,
        entry_filter.since,
        entry_filter.until,
        instant,
        entry_id,
        rows - 1,
    )
    return None if row is None else (row["at"], row["id"])


# Across teams: what is old is removed, whoever's it is. The database refuses younger entries by its own
# clock, and a refusal would keep the others of the batch too.
REMOVE_OLD = """
    WITH old AS MATERIALIZED (
        SELECT team_id, id
          FROM audit_entries
         WHERE at < $1 AND at < statement_timestamp() - interval '30 days'
         ORDER BY at
         LIMIT $2
    )
    DELETE FROM audit_entries e
     USING old
     WHERE e.team_id = old.team_id AND e.id = old.id
"""


async def remove_old(source: Source, before: datetime, limit: int) -> int:
    """Remove entries of before this instant, the oldest first; returns how many."""
    status: str = await source.execute(REMOVE_OLD, before, limit)
    return int(status.rsplit(" ", 1)[-1])
