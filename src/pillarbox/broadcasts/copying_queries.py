"""SQL of making copies. Statements that go across teams serve the engine of a process, which sends mail of
all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.delivery.copies import CopyKey
from pillarbox.kernel.postgres.combined_statement import Statement, rows_json
from pillarbox.kernel.postgres.database import Connection, Source

SendingKey = tuple[UUID, str | None]
"""A broadcast in one of its stages."""

# Across teams: broadcasts whose copies are to be made. An engine of an earlier release could not read them,
# so while one is alive none are made.
READY: Final = """
    SELECT b.team_id, b.id, t.number AS team_number, b.content_id, b.topic_id, b.domain_id, b.domain_name,
           p.stage, p.plan::text AS plan, p.next_at, p.winner
      FROM broadcasts b
      JOIN teams t ON t.id = b.team_id
      LEFT JOIN broadcast_plans p ON p.team_id = b.team_id AND p.broadcast_id = b.id AND p.stage IS NOT NULL
     WHERE b.status = 'queued' AND b.resolved_at IS NOT NULL AND b.paused_at IS NULL
       AND coalesce(p.stage, 'rest') NOT IN ('checking', 'deciding')
       AND NOT EXISTS (SELECT FROM processes p
                        WHERE NOT p.knows_copies AND p.roles LIKE '%delivery%' AND p.seen_at > $1)
     ORDER BY b.team_id, b.id
"""

# Across teams: whether there may be such broadcasts (`kernel.work.queue_poll`).
IS_WANTED: Final = "SELECT EXISTS (SELECT FROM broadcasts WHERE status = 'queued')"

# Recipients that wait, as they are now. Whoever left, or does not want the topic any more, is skipped: what
# it chose counts, else the default, also where the topic was deleted since.
TAKE: Final = """
    WITH taken AS MATERIALIZED (
        SELECT r.contact_id
          FROM broadcast_recipients r
         WHERE r.team_id = $1 AND r.broadcast_id = $2 AND r.contact_id > $3
           AND r.email_id IS NULL AND r.skipped_for IS NULL
         ORDER BY r.contact_id
         LIMIT $5
           FOR UPDATE SKIP LOCKED
    )
    SELECT k.contact_id, c.address, coalesce(c.email, c.address) AS email, c.first_name, c.last_name,
           c.properties::text AS properties, s.origin,
           CASE WHEN c.id IS NULL THEN 'contact_deleted'
                WHEN c.unsubscribed THEN 'unsubscribed'
                WHEN $4::uuid IS NOT NULL
                     AND coalesce(t.subscription,
                                  (SELECT d.default_subscription FROM topics d
                                    WHERE d.team_id = $1 AND d.id = $4),
                                  'opt_out') = 'opt_out' THEN 'topic_opt_out' END AS skipped_for
      FROM taken k
      LEFT JOIN contacts c ON c.team_id = $1 AND c.id = k.contact_id
      LEFT JOIN topic_choices t ON t.team_id = $1 AND t.contact_id = k.contact_id AND t.topic_id = $4
      LEFT JOIN suppressions s ON s.team_id = $1 AND s.address = c.address
     ORDER BY k.contact_id
"""

# The same for a broadcast with a plan: of the waves up to $6 alone, where one is given, with the variants
# that recipients have.
TAKE_OF_PLAN: Final = """
    WITH taken AS MATERIALIZED (
        SELECT r.contact_id, r.variant
          FROM broadcast_recipients r
         WHERE r.team_id = $1 AND r.broadcast_id = $2 AND r.contact_id > $3
           AND r.email_id IS NULL AND r.skipped_for IS NULL
           AND ($6::smallint IS NULL OR r.wave <= $6)
         ORDER BY r.contact_id
         LIMIT $5
           FOR UPDATE SKIP LOCKED
    )
    SELECT k.contact_id, c.address, coalesce(c.email, c.address) AS email, c.first_name, c.last_name,
           c.properties::text AS properties, s.origin,
           CASE WHEN c.id IS NULL THEN 'contact_deleted'
                WHEN c.unsubscribed THEN 'unsubscribed'
                WHEN $4::uuid IS NOT NULL
                     AND coalesce(t.subscription,
                                  (SELECT d.default_subscription FROM topics d
                                    WHERE d.team_id = $1 AND d.id = $4),
                                  'opt_out') = 'opt_out' THEN 'topic_opt_out' END AS skipped_for,
           k.variant
      FROM taken k
      LEFT JOIN contacts c ON c.team_id = $1 AND c.id = k.contact_id
      LEFT JOIN topic_choices t ON t.team_id = $1 AND t.contact_id = k.contact_id AND t.topic_id = $4
      LEFT JOIN suppressions s ON s.team_id = $1 AND s.address = c.address
     ORDER BY k.contact_id
"""

# Each row is looked up by its key: a join that was planned while the table was small would go on to read all
# of it.
NOTE: Final = """
    UPDATE broadcast_recipients r
       SET email_id = k.email_id, skipped_for = k.skipped_for
      FROM json_to_recordset($3::text::json) AS k (contact_id uuid, email_id uuid, skipped_for text)
     CROSS JOIN LATERAL (
           SELECT x.ctid AS place
             FROM broadcast_recipients x
            WHERE x.team_id = $1 AND x.broadcast_id = $2 AND x.contact_id = k.contact_id
           OFFSET 0) AS found
     WHERE r.ctid = found.place
"""

# Who has a variant keeps it.
NOTE_VARIANT: Final = """
    UPDATE broadcast_recipients r
       SET email_id = k.email_id, skipped_for = k.skipped_for, variant = coalesce(r.variant, $4)
      FROM json_to_recordset($3::text::json) AS k (contact_id uuid, email_id uuid, skipped_for text)
     CROSS JOIN LATERAL (
           SELECT x.ctid AS place
             FROM broadcast_recipients x
            WHERE x.team_id = $1 AND x.broadcast_id = $2 AND x.contact_id = k.contact_id
           OFFSET 0) AS found
     WHERE r.ctid = found.place
"""

PROPERTIES: Final = """
    SELECT number, key, fallback_value::text AS fallback
      FROM contact_properties
     WHERE team_id = $1 AND key = ANY ($2::text[]) AND deleted_at IS NULL
"""

# Right before copies are sent, for several teams at once: those with which something is the matter.
STANDING: Final = """
    SELECT found.place, found.status, found.is_paused, found.is_wanted, found.origin
      FROM (SELECT k.place, coalesce(b.status, 'gone') AS status, b.paused_at IS NOT NULL AS is_paused,
                   (c.id IS NOT NULL AND NOT c.unsubscribed
                    AND (b.topic_id IS NULL
                         OR coalesce(t.subscription,
                                     (SELECT d.default_subscription FROM topics d
                                       WHERE d.team_id = k.team_id AND d.id = b.topic_id),
                                     'opt_out') = 'opt_in')) AS is_wanted,
                   s.origin
              FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::integer[])
                   AS k (team_id, broadcast_id, contact_id, address, place)
              LEFT JOIN broadcasts b ON b.team_id = k.team_id AND b.id = k.broadcast_id
              LEFT JOIN contacts c ON c.team_id = k.team_id AND c.id = k.contact_id
              LEFT JOIN topic_choices t
                     ON t.team_id = k.team_id AND t.contact_id = k.contact_id AND t.topic_id = b.topic_id
              LEFT JOIN suppressions s ON s.team_id = k.team_id AND s.address = k.address) AS found
     WHERE NOT (found.status IN ('queued', 'sent') AND NOT found.is_paused AND found.is_wanted
                AND found.origin IS NULL)
"""


@dataclass(frozen=True, slots=True)
class SendingBroadcast:
    """A broadcast that is being sent."""

    team_id: UUID
    id: UUID
    team_number: int
    content_id: UUID
    topic_id: UUID | None
    domain_id: UUID | None
    domain_name: str
    stage: str | None = None
    plan: str | None = None
    next_at: datetime | None = None
    winner: int | None = None

    @property
    def key(self) -> SendingKey:
        return self.id, self.stage


@dataclass(frozen=True, slots=True)
class WaitingRecipient:
    """A recipient that waits, as its contact is now; `skipped_for` says why it gets no copy. `variant` is the
    content that it gets, where it has one of its own."""

    contact_id: UUID
    address: str
    email: str
    first_name: str | None
    last_name: str | None
    properties: str | None
    origin: str | None
    skipped_for: str | None
    variant: int | None = None


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the team: contacts keep its value under its number."""

    number: int
    key: str
    fallback: str | float | bool | None


async def ready(source: Source, alive_since: datetime) -> list[SendingBroadcast]:
    """Return the broadcasts whose copies are to be made; none while an engine of an earlier release
    is alive."""
    return [SendingBroadcast(**row) for row in await source.fetch(READY, alive_since)]


async def take(
    conn: Connection, broadcast: SendingBroadcast, after: UUID, limit: int
) -> list[WaitingRecipient]:
    """Lock waiting recipients behind a contact that nobody else has, in the order of their keys."""
    args = (broadcast.team_id, broadcast.id, after, broadcast.topic_id, limit)
    return [WaitingRecipient(**row) for row in await conn.fetch(TAKE, *args)]


async def take_of_plan(
    conn: Connection, broadcast: SendingBroadcast, after: UUID, limit: int, wave: int | None
) -> list[WaitingRecipient]:
    """Lock waiting recipients of the waves up to one, or of all, behind a contact."""
    args = (broadcast.team_id, broadcast.id, after, broadcast.topic_id, limit, wave)
    return [WaitingRecipient(**row) for row in await conn.fetch(TAKE_OF_PLAN, *args)]


async def properties(source: Source, team_id: UUID, keys: Collection[str]) -> list[Property]:
    """Return those of these properties that the team has."""
    return [
        Property(row["number"], row["key"], None if row["fallback"] is None else _decode(row["fallback"]))
        for row in await source.fetch(PROPERTIES, team_id, list(keys))
    ]


def note(
    team_id: UUID,
    broadcast_id: UUID,
    recipients: Sequence[tuple[UUID, UUID | None, str | None]],
    variant: int | None = None,
) -> Statement:
    """Return the statement that stores for each contact its email, or why it was skipped, and its variant
    where there are some."""
    rows = [
        {"contact_id": contact, "email_id": email, "skipped_for": reason}
        for contact, email, reason in recipients
    ]
    if variant is not None:
        return Statement(NOTE_VARIANT, (team_id, broadcast_id, rows_json(rows), variant))
    return Statement(NOTE, (team_id, broadcast_id, rows_json(rows)))


async def standing(
    source: Source, copies: Sequence[CopyKey]
) -> dict[int, tuple[str, bool, bool, str | None]]:
    """Return the state of copies that are not simply wanted, by their place. It has the broadcast's status,
    whether it is paused, whether the contact wants the copy, and why its address is suppressed, if so."""
    columns = zip(*copies, strict=True)
    rows: list[Any] = await source.fetch(STANDING, *columns, list(range(len(copies))))
    return {row["place"]: (row["status"], row["is_paused"], row["is_wanted"], row["origin"]) for row in rows}


_decode = msgspec.json.Decoder(str | float | bool).decode
