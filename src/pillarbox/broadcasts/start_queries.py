"""SQL of how a broadcast begins: who gets it is decided by one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.contacts.conditions.compiling import filled
from pillarbox.contacts.conditions.filtering import ContactFilter, compiled_filter
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.people.roles import ACTING_ROLES

SNAPSHOT_SECONDS: Final = 1800
"""A snapshot of ten million contacts takes some minutes."""

# Whoever was a member when it was queued ($4) and still is, wants mail at all, and wants mail of the topic,
# if there is one: what it chose counts, else the default, also where the topic was deleted since. Of a topic
# that is not known nobody gets mail.
SNAPSHOT: Final = """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id)
    SELECT $1, $2, m.contact_id
      FROM segment_members m
      JOIN contacts c ON c.team_id = m.team_id AND c.id = m.contact_id
     WHERE m.team_id = $1 AND m.segment_id = $3 AND m.added_at <= $4
       AND NOT c.unsubscribed
       AND EXISTS (SELECT FROM segments s WHERE s.team_id = $1 AND s.id = $3)
     ORDER BY m.contact_id
"""

SNAPSHOT_OF_TOPIC: Final = """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id)
    SELECT $1, $2, m.contact_id
      FROM segment_members m
      JOIN contacts c ON c.team_id = m.team_id AND c.id = m.contact_id
      LEFT JOIN topic_choices t ON t.team_id = m.team_id AND t.contact_id = m.contact_id AND t.topic_id = $5
     WHERE m.team_id = $1 AND m.segment_id = $3 AND m.added_at <= $4
       AND NOT c.unsubscribed
       AND coalesce(t.subscription,
                    (SELECT d.default_subscription FROM topics d WHERE d.team_id = $1 AND d.id = $5),
                    'opt_out') = 'opt_in'
       AND EXISTS (SELECT FROM segments s WHERE s.team_id = $1 AND s.id = $3)
     ORDER BY m.contact_id
"""


# Whoever fits the conditions of the segment when the broadcast begins.
SNAPSHOT_BY_CONDITIONS: Final = """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id)
    SELECT $1, $2, c.id
      FROM contacts c /* joins */
     WHERE c.team_id = $1 AND NOT c.unsubscribed
       AND (SELECT s.id FROM segments s WHERE s.team_id = $1 AND s.id = $3) IS NOT NULL /* conditions */
     ORDER BY c.id
"""

SNAPSHOT_OF_TOPIC_BY_CONDITIONS: Final = """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id)
    SELECT $1, $2, c.id
      FROM contacts c
      LEFT JOIN topic_choices t ON t.team_id = $1 AND t.contact_id = c.id AND t.topic_id = $4 /* joins */
     WHERE c.team_id = $1 AND NOT c.unsubscribed
       AND coalesce(t.subscription,
                    (SELECT d.default_subscription FROM topics d WHERE d.team_id = $1 AND d.id = $4),
                    'opt_out') = 'opt_in'
       AND (SELECT s.id FROM segments s WHERE s.team_id = $1 AND s.id = $3) IS NOT NULL /* conditions */
     ORDER BY c.id
"""

# For a statement over all contacts: a session of an engine goes from keys to rows.
SET_BASED: Final = """
    SELECT set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
           set_config('enable_mergejoin', 'on', true), set_config('plan_cache_mode', 'auto', true)
"""


class BegunElsewhere(Exception):  # noqa: N818 - what another process has done, and no error
    """It was canceled, or another process has written its recipients; what was written is undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingBroadcast:
    """A queued broadcast of which nobody knows yet who gets it. Its segment and topic are those that it was
    given, whether they are still there or not."""

    segment_id: UUID | None
    topic_id: UUID | None
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class StartSnapshot:
    """The facts that the start of a broadcast fixes: its instant, recipients, content and domain."""

    at: datetime
    recipients: int
    content_id: UUID
    domain_id: UUID | None
    domain_name: str


async def begin(db: TeamDb, broadcast_id: UUID, now: datetime) -> datetime | None:
    """Move a `scheduled` broadcast whose time has come to `queued`; return its time where it has not come
    yet."""
    await db.run(
        """
        UPDATE broadcasts
           SET status = 'queued', queued_at = $3
         WHERE team_id = $1 AND id = $2 AND status = 'scheduled' AND scheduled_at <= $3
        """,
        broadcast_id,
        now,
    )
    found: datetime | None = await db.value(
        "SELECT scheduled_at FROM broadcasts WHERE team_id = $1 AND id = $2 AND status = 'scheduled'",
        broadcast_id,
    )
    return found


async def starting(db: TeamDb, broadcast_id: UUID) -> StartingBroadcast | None:
    return await db.one(
        StartingBroadcast,
        """
        SELECT segment_id, topic_id, queued_at
          FROM broadcasts
         WHERE team_id = $1 AND id = $2 AND status = 'queued' AND resolved_at IS NULL
        """,
        broadcast_id,
    )


async def is_key_active(db: TeamDb, broadcast_id: UUID) -> bool:
    """Return whether the key that sent the broadcast may still be used; true where no key did."""
    found = await db.value(
        """
        SELECT b.key_id IS NULL
               OR EXISTS (SELECT FROM api_keys k
                           WHERE k.team_id = $1 AND k.id = b.key_id AND k.status = 'active'
                             AND (k.created_by IS NULL OR k.is_kept
                                  OR (EXISTS (SELECT FROM team_members m
                                                JOIN people p ON p.id = m.person_id
                                                             AND p.disabled_at IS NULL
                                               WHERE m.team_id = $1 AND m.person_id = k.created_by
                                                 AND m.role = ANY ($3::text[]))
                                      AND (k.grant_id IS NULL
                                           OR EXISTS (SELECT FROM oauth_grants g
                                                       WHERE g.team_id = $1 AND g.id = k.grant_id
                                                         AND g.revoked_at IS NULL)))))
          FROM broadcasts b
         WHERE b.team_id = $1 AND b.id = $2
        """,
        broadcast_id,
        ACTING_ROLES,
    )
    return found is True


async def snapshot(
    db: TeamDb, broadcast_id: UUID, starting: StartingBroadcast, by_conditions: ContactFilter | None
) -> int:
    """Store a row for each contact that gets the broadcast; return how many. The segment exists for all of
    them or for none. With `by_conditions` those who fit it are in the segment."""
    args: list[object] = [db.team_id, broadcast_id, starting.segment_id]
    args += [starting.queued_at] if by_conditions is None else []
    args += [] if starting.topic_id is None else [starting.topic_id]
    if by_conditions is None:
        statement = SNAPSHOT if starting.topic_id is None else SNAPSHOT_OF_TOPIC
    else:
        found = await compiled_filter(db, by_conditions, len(args) + 1)
        statement = SNAPSHOT_BY_CONDITIONS if starting.topic_id is None else SNAPSHOT_OF_TOPIC_BY_CONDITIONS
        statement = filled(statement, found)
        args += found.args
        await db.connection.execute(SET_BASED)
    try:
        done = await db.connection.execute(statement, *args, timeout=SNAPSHOT_SECONDS)
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "broadcast_recipients_pkey":
            raise
        raise BegunElsewhere from None
    return int(done.rsplit(" ", 1)[-1])


async def promised(db: TeamDb) -> int:
    """Return how many copies of the team's other broadcasts are still to be made."""
    found: int = await db.value(
        """
        SELECT count(*)
          FROM broadcasts b
          JOIN broadcast_recipients r ON r.team_id = b.team_id AND r.broadcast_id = b.id
         WHERE b.team_id = $1 AND b.status = 'queued' AND b.resolved_at IS NOT NULL
           AND r.email_id IS NULL AND r.skipped_for IS NULL
        """
    )
    return found


async def resolve(db: TeamDb, broadcast_id: UUID, start_snapshot: StartSnapshot) -> bool:
    """Note that the recipients are known; a broadcast without any is sent. False where it was canceled
    meanwhile, or where another process was quicker."""
    return bool(
        await db.run(
            """
            UPDATE broadcasts
               SET resolved_at = $3, recipients = $4, content_id = $5, domain_id = $6, domain_name = $7,
                   status = CASE WHEN $4::bigint = 0 THEN 'sent' ELSE status END,
                   sent_at = CASE WHEN $4::bigint = 0 THEN $3::timestamptz END
             WHERE team_id = $1 AND id = $2 AND status = 'queued' AND resolved_at IS NULL
            """,
            broadcast_id,
            start_snapshot.at,
            start_snapshot.recipients,
            start_snapshot.content_id,
            start_snapshot.domain_id,
            start_snapshot.domain_name,
        )
    )


async def fail(db: TeamDb, broadcast_id: UUID, reason: str) -> bool:
    """Mark the broadcast as failed before anything of it was sent; False where it is not starting any
    more."""
    return bool(
        await db.run(
            """
            UPDATE broadcasts
               SET status = 'failed', failed_for = $3
             WHERE team_id = $1 AND id = $2 AND status = 'queued' AND resolved_at IS NULL
            """,
            broadcast_id,
            reason,
        )
    )
