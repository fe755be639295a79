"""SQL of the webhooks: the resource, what is published to it, and its log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.wire.paging import NO_PAGE, Page
from pillarbox.kernel.work import job_queries
from pillarbox.webhooks.signing_secrets import MOST_EARLIER, OVERLAP

# Across teams: what the key ring has sealed.
WEBHOOK_SECRETS: Final = SealedColumn(
    table="webhooks",
    sentence="A signing secret of the webhook {id} ({owner})",
    cure="`POST /webhooks/{id}/signing-secret/rotate` makes a new one.",
    read="""
    SELECT w.team_id, w.id, secret AS sealed, w.endpoint AS owner
      FROM webhooks w
     CROSS JOIN LATERAL unnest(w.secrets) AS secret
     ORDER BY w.team_id, w.id
    """,
    replace="""
    UPDATE webhooks SET secrets = array_replace(secrets, $3, $4)
     WHERE team_id = $1 AND id = $2 AND $3 = ANY (secrets)
    """,
)

JOB_REMOVE: Final = "webhook.remove"

INSERT = """
    INSERT INTO webhooks (team_id, id, created_at, since, endpoint, events, secrets, secret_ends)
    VALUES ($1, $2, $3, $3, $4, $5, ARRAY[$6::bytea], ARRAY[NULL::timestamptz])
"""

# The webhooks of a page, or the one with the id `$5`.
READ = """
    SELECT id, created_at, endpoint, events, status, secrets[1] AS sealed
      FROM ((SELECT * FROM webhooks
              WHERE team_id = $1 AND id < $2 AND kind = 'endpoint' ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT * FROM webhooks
              WHERE team_id = $1 AND id > $3 AND kind = 'endpoint' ORDER BY id LIMIT $4)
            UNION ALL
            (SELECT * FROM webhooks
              WHERE team_id = $1 AND id = $5 AND kind = 'endpoint')
           ) AS page
"""

# Disabling ends what is open, by the epoch; enabling starts the failure clock anew.
CHANGE = """
    UPDATE webhooks
       SET endpoint = coalesce($3, endpoint), events = coalesce($4, events), status = coalesce($5, status),
           epoch = epoch + (status = 'enabled' AND $5 IS NOT DISTINCT FROM 'disabled')::integer,
           failing_since = CASE WHEN $5 = 'enabled' THEN NULL ELSE failing_since END,
           failing_event = CASE WHEN $5 = 'enabled' THEN NULL ELSE failing_event END,
           failing_several = failing_several AND $5 IS DISTINCT FROM 'enabled',
           told_failing_at = CASE WHEN $5 = 'enabled' THEN NULL ELSE told_failing_at END,
           since = CASE WHEN $4::text[] IS NULL AND $5 IS NULL THEN since ELSE greatest(since, $6) END
     WHERE team_id = $1 AND id = $2 AND kind = 'endpoint'
"""

DELETE = """
    DELETE FROM webhooks WHERE team_id = $1 AND id = $2 AND kind = $3
"""

# The secrets that still sign, behind the new one; one that had no end gets one now.
ROTATE = """
    UPDATE webhooks w
       SET (secrets, secret_ends) = (
               SELECT array_prepend($3::bytea, coalesce(array_agg(k.secret ORDER BY k.place), '{}')),
                      array_prepend(NULL::timestamptz, coalesce(array_agg(k.ends ORDER BY k.place), '{}'))
                 FROM (SELECT s.secret, coalesce(s.ends, $5) AS ends, s.place
                         FROM unnest(w.secrets, w.secret_ends) WITH ORDINALITY AS s (secret, ends, place)
                        WHERE coalesce(s.ends, $5) > $4
                        ORDER BY s.place
                        LIMIT $6) AS k)
     WHERE w.team_id = $1 AND w.id = $2 AND w.kind = 'endpoint'
"""

# What is open and what has ended, newest first; `$3` excluded. What an earlier epoch left open has failed.
# What has ended before `$4` is shown no more.
EVENTS_BEFORE = """
    SELECT d.event_id, d.kind, d.at,
           CASE WHEN d.epoch <> w.epoch THEN 'failed' WHEN d.tries > 0 THEN 'attempting' ELSE 'pending' END
               AS status
      FROM (SELECT webhook_id, event_id, kind, at, epoch, tries
              FROM webhook_deliveries
             WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3
               AND (event_id >= $4 OR epoch = (SELECT epoch FROM webhooks WHERE team_id = $1 AND id = $2))
               AND replay = '00000000-0000-0000-0000-000000000000'
             ORDER BY event_id DESC
             LIMIT $5) AS d
      JOIN webhooks w ON w.team_id = $1 AND w.id = d.webhook_id
    UNION ALL
    SELECT * FROM (SELECT event_id, kind, at, status
                     FROM webhook_outcomes
                    WHERE team_id = $1 AND webhook_id = $2 AND event_id < $3 AND event_id >= $4
                    ORDER BY event_id DESC
                    LIMIT $5) AS o
     ORDER BY event_id DESC
     LIMIT $5
"""

# The same in the other direction, the nearest first.
EVENTS_AFTER = """
    SELECT d.event_id, d.kind, d.at,
           CASE WHEN d.epoch <> w.epoch THEN 'failed' WHEN d.tries > 0 THEN 'attempting' ELSE 'pending' END
               AS status
      FROM (SELECT webhook_id, event_id, kind, at, epoch, tries
              FROM webhook_deliveries
             WHERE team_id = $1 AND webhook_id = $2 AND event_id > $3
               AND (event_id >= $4 OR epoch = (SELECT epoch FROM webhooks WHERE team_id = $1 AND id = $2))
               AND replay = '00000000-0000-0000-0000-000000000000'
             ORDER BY event_id
             LIMIT $5) AS d
      JOIN webhooks w ON w.team_id = $1 AND w.id = d.webhook_id
    UNION ALL
    SELECT * FROM (SELECT event_id, kind, at, status
                     FROM webhook_outcomes
                    WHERE team_id = $1 AND webhook_id = $2 AND event_id > $3 AND event_id >= $4
                    ORDER BY event_id
                    LIMIT $5) AS o
     ORDER BY event_id
     LIMIT $5
"""

EVENT = """
    SELECT s.event_id, s.kind, s.at, s.status, s.due_at, s.subject_id, s.position, s.detail, e.payload
      FROM (SELECT d.event_id, d.kind, d.at,
                   CASE WHEN d.epoch <> w.epoch THEN 'failed' WHEN d.tries > 0 THEN 'attempting'
                        ELSE 'pending' END AS status,
                   CASE WHEN d.epoch = w.epoch THEN d.due_at END AS due_at,
                   d.subject_id, d.position, d.detail
              FROM webhook_deliveries d
              JOIN webhooks w ON w.team_id = d.team_id AND w.id = d.webhook_id
             WHERE d.team_id = $1 AND d.webhook_id = $2 AND d.event_id = $3
               AND (d.event_id >= $4 OR d.epoch = w.epoch)
               AND d.replay = '00000000-0000-0000-0000-000000000000'
            UNION ALL
            SELECT event_id, kind, at, status, NULL, subject_id, position, detail
              FROM webhook_outcomes
             WHERE team_id = $1 AND webhook_id = $2 AND event_id = $3 AND event_id >= $4) AS s
      LEFT JOIN webhook_events e ON e.team_id = $1 AND e.id = s.event_id
     LIMIT 1
"""

# A scheduled delivery that is void is removed from the queue first: the replay may still turn it to success.
REPLAY = """
    WITH hook AS (
        SELECT team_id, id, epoch FROM webhooks WHERE team_id = $1 AND id = $2 AND status = 'enabled'
    ), dead AS (
        DELETE FROM webhook_deliveries d
         USING hook
         WHERE d.team_id = $1 AND d.webhook_id = $2 AND d.event_id = $3 AND d.epoch <> hook.epoch
           AND d.replay = '00000000-0000-0000-0000-000000000000' AND d.owner IS NULL
        RETURNING d.event_id
    ), buried AS (
        INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status, subject_id, position,
                                      detail)
        SELECT $1, $2, event_id, $5, $6, 'failed', $7, $8, $9::text::json FROM dead
        ON CONFLICT (team_id, webhook_id, event_id) DO NOTHING
    )
    INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, replay, kind, at, subject_id, position,
                                    detail, epoch, due_at)
    SELECT hook.team_id, hook.id, $3, $4, $5, $6, $7, $8, $9::text::json, hook.epoch, $10 FROM hook
"""

ATTEMPTS = """
    SELECT id, sent_at, http_status_code, response
      FROM ((SELECT *
               FROM webhook_attempts
              WHERE team_id = $1 AND webhook_id = $5 AND event_id = $6 AND id < $2
              ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM webhook_attempts
              WHERE team_id = $1 AND webhook_id = $5 AND event_id = $6 AND id > $3
              ORDER BY id LIMIT $4)) AS page
"""


class Webhook(NamedTuple):
    """An endpoint with the secret that is its newest."""

    id: UUID
    created_at: datetime
    endpoint: str
    events: list[str]
    status: str
    sealed: bytes


class LoggedEvent(NamedTuple):
    """An event as one webhook has it. `due_at`: when it is tried next; `payload` once it is made."""

    event_id: UUID
    kind: str
    at: datetime
    status: str
    due_at: datetime | None = None
    subject_id: UUID | None = None
    position: int | None = None
    detail: str | None = None
    payload: bytes | None = None


class Attempt(NamedTuple):
    """An attempt that was made; the code is 0 where no HTTP answer came."""

    id: UUID
    sent_at: datetime
    http_status_code: int
    response: str


async def insert(
    db: TeamDb, webhook_id: UUID, now: datetime, endpoint: str, events: Sequence[str], sealed: bytes
) -> None:
    await db.run(INSERT, webhook_id, now, endpoint, events, sealed)


async def page(db: TeamDb, page: Page) -> list[Webhook]:
    return await db.all(Webhook, READ, *page.args, None)


async def get(db: TeamDb, webhook_id: UUID) -> Webhook | None:
    return await db.one(Webhook, READ, *NO_PAGE, webhook_id)


async def change(
    db: TeamDb,
    webhook_id: UUID,
    endpoint: str | None,
    events: Sequence[str] | None,
    status: str | None,
    now: datetime,
) -> bool:
    """Change what is given; False where there is no such webhook."""
    return await db.run(CHANGE, webhook_id, endpoint, events, status, now) == 1


async def delete(db: TeamDb, webhook_id: UUID, job_id: UUID, now: datetime, kind: str = "endpoint") -> bool:
    """Remove a webhook, and leave the removal of what it had to a job; False where there is none."""
    async with db.joined_transaction() as inside:
        if not await inside.run(DELETE, webhook_id, kind):
            return False
        await job_queries.add(inside, job_id, JOB_REMOVE, webhook_id, now)
        return True


async def rotate(db: TeamDb, webhook_id: UUID, sealed: bytes, now: datetime) -> bool:
    """Put a new secret before the others; False where there is no such webhook."""
    return await db.run(ROTATE, webhook_id, sealed, now, now + OVERLAP, MOST_EARLIER) == 1


async def logged_events(db: TeamDb, webhook_id: UUID, page: Page, oldest: UUID) -> list[LoggedEvent]:
    """Return the events of a webhook in the direction of the page; those that have ended from `oldest` on."""
    upper, lower, most = page.args
    if lower is not None:
        return await db.all(LoggedEvent, EVENTS_AFTER, webhook_id, lower, oldest, most)
    return await db.all(LoggedEvent, EVENTS_BEFORE, webhook_id, upper, oldest, most)


async def logged_event(db: TeamDb, webhook_id: UUID, event_id: UUID, oldest: UUID) -> LoggedEvent | None:
    """Return an event of a webhook; one that has ended only from `oldest` on."""
    return await db.one(LoggedEvent, EVENT, webhook_id, event_id, oldest)


async def replay(db: TeamDb, webhook_id: UUID, event: LoggedEvent, replay_id: UUID, now: datetime) -> bool:
    """Queue an extra attempt; False where the webhook takes none now."""
    row = (event.event_id, replay_id, event.kind, event.at, event.subject_id, event.position, event.detail)
    return await db.run(REPLAY, webhook_id, *row, now) == 1


async def attempts(db: TeamDb, webhook_id: UUID, event_id: UUID, page: Page) -> list[Attempt]:
    return await db.all(Attempt, ATTEMPTS, *page.args, webhook_id, event_id)
