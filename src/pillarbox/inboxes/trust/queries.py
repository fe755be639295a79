"""SQL of the trust of messages; of several teams at once, each row names its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import Statement, rows_json
from pillarbox.kernel.postgres.database import Connection, TeamDb

MOST_NAMES: Final = 500
MOST_DOMAINS: Final = 2000
"""Own domains of a team, names of each kind, and domains of known senders that are compared."""

MOST_SAME: Final = 20
"""Messages with one Message-ID, the oldest, that are looked at: others may send many with the id of ours."""

MOST_NAMED: Final = 200
"""Messages with one name that are looked at: who has so many known ones under a name passes for nobody."""

# Each within these bounds, however many messages a sender has in the inbox. EXISTS may become a hash of a
# whole table, in a plan that is made while it is empty.
FACTS: Final = """
    SELECT k.place,
           coalesce((SELECT true
                       FROM contacts c
                      WHERE c.team_id = k.team_id AND c.address = k.address
                      LIMIT 1), false) AS is_contact,
           coalesce((SELECT true
                       FROM inbox_correspondents w
                      WHERE w.team_id = k.team_id AND w.address_key = k.sender_key
                      LIMIT 1), false) AS has_written,
           coalesce((SELECT true
                       FROM unnest(k.earlier_keys) AS e (message_key)
                      WHERE 'outbound' = ANY (ARRAY(
                            SELECT m.direction
                              FROM inbox_messages m
                             WHERE m.team_id = k.team_id AND m.inbox_id = k.inbox_id
                               AND m.message_key = e.message_key
                             ORDER BY m.id
                             LIMIT $2))
                      LIMIT 1), false) AS answers_ours,
           coalesce((SELECT true
                       FROM message_trust e
                      WHERE e.team_id = k.team_id AND e.inbox_id = k.inbox_id
                        AND e.sender_key = k.sender_key
                      LIMIT 1), false) AS has_come,
           (SELECT n.email_id
              FROM (SELECT s.email_id, s.sender_key
                      FROM message_trust s
                     WHERE s.team_id = k.team_id AND s.inbox_id = k.inbox_id AND s.name_key = k.name_key
                       AND s.level IN ('trusted', 'known')
                     LIMIT $3) AS n
             WHERE n.sender_key <> k.sender_key
             ORDER BY n.email_id DESC
             LIMIT 1) AS name_of
      FROM json_to_recordset($1::text::json)
           AS k (place integer, team_id uuid, inbox_id uuid, address text, sender_key uuid, name_key uuid,
                 earlier_keys bigint[])
     ORDER BY k.place
"""

# Across teams: each key names its team. Domains of known senders one after the other, each by one look at the
# index.
KNOWLEDGE: Final = """
    SELECT t.id AS team_id,
           ARRAY(SELECT d.name FROM domains d WHERE d.team_id = t.id ORDER BY d.id LIMIT $3) AS own,
           ARRAY(SELECT i.name FROM inboxes i WHERE i.team_id = t.id ORDER BY i.id LIMIT $2)
           || ARRAY(SELECT i.from_name
                      FROM inboxes i
                     WHERE i.team_id = t.id AND i.from_name IS NOT NULL
                     ORDER BY i.id
                     LIMIT $2)
           || ARRAY(SELECT p.name
                      FROM team_members m
                      JOIN people p ON p.id = m.person_id
                     WHERE m.team_id = t.id AND p.name IS NOT NULL
                     ORDER BY m.person_id
                     LIMIT $2) AS names,
           ARRAY(WITH RECURSIVE found (domain) AS (
                     (SELECT s.domain
                        FROM message_trust s
                       WHERE s.team_id = t.id AND s.level IN ('trusted', 'known')
                       ORDER BY s.domain
                       LIMIT 1)
                     UNION ALL
                     SELECT (SELECT s.domain
                               FROM message_trust s
                              WHERE s.team_id = t.id AND s.level IN ('trusted', 'known')
                                AND s.domain > f.domain
                              ORDER BY s.domain
                              LIMIT 1)
                       FROM found f
                      WHERE f.domain IS NOT NULL)
                 SELECT f.domain FROM found f WHERE f.domain IS NOT NULL LIMIT $3) AS known
      FROM unnest($1::uuid[]) AS t (id)
"""

ADD: Final = """
    INSERT INTO message_trust (team_id, email_id, inbox_id, level, reasons, sender_key, name_key, domain)
    SELECT k.team_id, k.email_id, k.inbox_id, k.level, k.reasons, k.sender_key, k.name_key, k.domain
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, email_id uuid, inbox_id uuid, level text, reasons jsonb, sender_key uuid,
                  name_key uuid, domain text)
"""

WRITE_TO: Final = """
    INSERT INTO inbox_correspondents (team_id, address_key)
    SELECT k.team_id, k.address_key
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, address_key)
     ORDER BY 1, 2
    ON CONFLICT DO NOTHING
"""

GET: Final = """
    SELECT t.level, t.reasons
      FROM message_trust t
     WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.email_id = $3
"""

DROP: Final = """
    DELETE FROM message_trust WHERE team_id = $1 AND inbox_id = $2 AND email_id = ANY ($3::uuid[])
"""

FORGET_ADDRESS: Final = """
    DELETE FROM inbox_correspondents WHERE team_id = $1 AND address_key = $2
"""


class StoredTrust(NamedTuple):
    """The level of a message, and its reasons as JSON."""

    level: str
    reasons: str


class StoredKnowledge(NamedTuple):
    """Own domains, names and domains of known senders of a team."""

    own: Sequence[str]
    names: Sequence[str]
    known: Sequence[str]


async def facts(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return what is known of the senders of these messages, in their order."""
    found: list[Any] = await conn.fetch(FACTS, rows_json(rows), MOST_SAME, MOST_NAMED)
    return found


async def knowledge(conn: Connection, teams: Collection[UUID]) -> dict[UUID, StoredKnowledge]:
    """Return what these teams are compared by."""
    rows = await conn.fetch(KNOWLEDGE, list(teams), MOST_NAMES, MOST_DOMAINS)
    return {row["team_id"]: StoredKnowledge(row["own"], row["names"], row["known"]) for row in rows}


def adding(rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Return the statement that stores the trust of messages."""
    return Statement(ADD, (rows_json(rows),))


def writing_to(addressees: Collection[tuple[UUID, UUID]]) -> Statement:
    """Return the statement that notes that inboxes of these teams write to these addresses."""
    teams, keys = zip(*sorted(addressees), strict=True)
    return Statement(WRITE_TO, (teams, keys))


async def get(db: TeamDb, inbox_id: UUID, email_id: UUID) -> StoredTrust | None:
    """Return the trust of a message; None for one that was sent, or came before trust was stored."""
    return await db.one(StoredTrust, GET, inbox_id, email_id)


async def drop(db: TeamDb, inbox_id: UUID, email_ids: Sequence[UUID]) -> None:
    """Remove the trust of messages that are removed."""
    await db.run(DROP, inbox_id, email_ids)


async def forget_address(db: TeamDb, address_key: UUID) -> int:
    """Forget that the team has written to this address."""
    return await db.run(FORGET_ADDRESS, address_key)
