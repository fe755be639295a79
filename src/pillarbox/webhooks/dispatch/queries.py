"""SQL of the queue. Locks are taken on deliveries first, then on webhooks; a claim takes them in the other
order and waits for neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import rows_json
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed
from pillarbox.kernel.work.lease_table import LeaseTable
from pillarbox.webhooks.dispatch.deliveries import SCHEDULED, DeliverySettlement, Key, WebhookKey

LEASE = timedelta(seconds=30)
RENEW_EVERY = 5.0

DELIVERIES = LeaseTable(
    "webhook_deliveries",
    {"team_id": "uuid", "webhook_id": "uuid", "event_id": "uuid", "replay": "uuid"},
    LEASE,
    RENEW_EVERY,
    on_return="due_at = greatest(w.due_at, $at)",
    state="""CASE WHEN d.owner IS NOT NULL THEN 'leased'
                        WHEN d.due_at = 'infinity' THEN 'listener'
                        WHEN d.due_at > $1 THEN 'waiting'
                        ELSE 'due' END""",
    since="at",
)

# Across teams: which webhooks have due work. One index descent per webhook, so one with a million deliveries
# costs as much as one with a single one.
DUE_WEBHOOKS = """
    WITH RECURSIVE places AS (
        (SELECT team_id, webhook_id, due_at
           FROM webhook_deliveries
          WHERE owner IS NULL AND (team_id, webhook_id) > ($2, $3)
          ORDER BY team_id, webhook_id, due_at, event_id
          LIMIT 1)
        UNION ALL
        SELECT next.team_id, next.webhook_id, next.due_at
          FROM places
         CROSS JOIN LATERAL (
               SELECT team_id, webhook_id, due_at
                 FROM webhook_deliveries
                WHERE owner IS NULL AND (team_id, webhook_id) > (places.team_id, places.webhook_id)
                ORDER BY team_id, webhook_id, due_at, event_id
                LIMIT 1) AS next
    )
    SELECT team_id, webhook_id, due_at <= $1 AS due FROM places LIMIT $4
"""

# Whoever claims deliveries of a webhook holds this lock until the claim is committed, so two claims of one
# webhook never overlap.
LOCK_WEBHOOK = """
    SELECT endpoint, secrets, secret_ends, epoch, status = 'enabled' AS enabled
      FROM webhooks
     WHERE team_id = $1 AND id = $2
       FOR NO KEY UPDATE SKIP LOCKED
"""

WEBHOOK = """
    SELECT endpoint, secrets, secret_ends, epoch, status = 'enabled' AS enabled
      FROM webhooks
     WHERE team_id = $1 AND id = $2
"""

# A webhook of which another process holds deliveries is left to that process. What is void (an earlier
# epoch, or no webhook any more: epoch -1) is removed from the queue with it. Always at least one row. Rows
# are found again by their position on disk, which cannot change under the lock: by the primary key a
# planner without statistics reads all of a webhook.
CLAIM = """
    WITH elsewhere AS MATERIALIZED (
        SELECT EXISTS (SELECT FROM webhook_deliveries
                        WHERE team_id = $1 AND webhook_id = $2 AND owner IS NOT NULL AND owner <> $4) AS held
    ), due AS MATERIALIZED (
        SELECT ctid AS spot, epoch = $3 AS live
          FROM webhook_deliveries
         WHERE team_id = $1 AND webhook_id = $2 AND owner IS NULL AND due_at <= $6
           AND NOT (SELECT held FROM elsewhere)
         ORDER BY due_at, event_id
         LIMIT $7
           FOR UPDATE SKIP LOCKED
    ), dead AS (
        DELETE FROM webhook_deliveries d
         USING due
         WHERE d.ctid = due.spot AND d.team_id = $1 AND NOT due.live
        RETURNING d.event_id, d.replay, d.kind, d.at, d.subject_id, d.position, d.detail
    ), buried AS (
        INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status, subject_id, position,
                                      detail)
        SELECT $1, $2, event_id, kind, at, 'failed', subject_id, position, detail
          FROM dead
         WHERE replay = $8 AND $3 >= 0
        ON CONFLICT (team_id, webhook_id, event_id) DO NOTHING
    ), taken AS (
        UPDATE webhook_deliveries d
           SET owner = $4, leased_until = $5, attempt = d.attempt + 1
          FROM due
         WHERE d.ctid = due.spot AND d.team_id = $1 AND due.live
        RETURNING d.event_id, d.replay, d.kind, d.at, d.subject_id, d.position, d.detail, d.attempt, d.tries,
                  d.due_at
    )
    SELECT elsewhere.held, (SELECT count(*) FROM due) AS met, taken.*, e.payload
      FROM elsewhere
      LEFT JOIN taken ON true
      LEFT JOIN webhook_events e ON e.team_id = $1 AND e.id = taken.event_id
     ORDER BY taken.due_at, taken.event_id
"""

# The first delivery of a webhook cannot be made ready; those behind it are not to wait. Where its event is
# from before $5 it has failed.
PUT_OFF = """
    WITH first AS MATERIALIZED (
        SELECT ctid AS spot, at < $5 AS hopeless
          FROM webhook_deliveries
         WHERE team_id = $1 AND webhook_id = $2 AND owner IS NULL AND due_at <= $3
         ORDER BY due_at, event_id
         LIMIT 1
           FOR UPDATE SKIP LOCKED
    ), ended AS (
        DELETE FROM webhook_deliveries d
         USING first
         WHERE d.ctid = first.spot AND d.team_id = $1 AND first.hopeless
        RETURNING d.event_id, d.replay, d.kind, d.at, d.subject_id, d.position, d.detail
    ), buried AS (
        INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status, subject_id, position,
                                      detail)
        SELECT $1, $2, event_id, kind, at, 'failed', subject_id, position, detail
          FROM ended
         WHERE replay = $6
        ON CONFLICT (team_id, webhook_id, event_id) DO NOTHING
    )
    UPDATE webhook_deliveries d
       SET due_at = $4
      FROM first
     WHERE d.ctid = first.spot AND d.team_id = $1 AND NOT first.hopeless
"""

# A success is a fact: it counts whoever has the delivery by now. Anything else counts only while the delivery
# is at the attempt that it speaks of. Where the webhook was disabled meanwhile, a retry is none any more.
# With $4 all of these are successes, and the failure clocks of their webhooks stop.
SETTLE = """
    WITH k AS MATERIALIZED (
        SELECT *
          FROM json_to_recordset($1::text::json)
               AS k (team_id uuid, webhook_id uuid, event_id uuid, replay uuid, attempt integer, verdict text,
                     due_at timestamptz, attempt_id uuid, sent_at timestamptz, code smallint, response text)
    ), held AS MATERIALIZED (
        SELECT d.team_id, d.webhook_id, d.event_id, d.replay, k.due_at,
               CASE WHEN w.id IS NULL THEN 'gone'
                    WHEN k.verdict = 'success' THEN 'success'
                    WHEN d.attempt <> k.attempt OR d.owner IS DISTINCT FROM $2 THEN 'lost'
                    WHEN k.verdict = 'retry' AND d.epoch = w.epoch THEN 'retry'
                    ELSE 'failed' END AS fate
          FROM k
          JOIN webhook_deliveries d ON d.team_id = k.team_id AND d.webhook_id = k.webhook_id
           AND d.event_id = k.event_id AND d.replay = k.replay
          LEFT JOIN webhooks w ON w.team_id = k.team_id AND w.id = k.webhook_id
         ORDER BY d.team_id, d.webhook_id, d.event_id, d.replay
           FOR UPDATE OF d
    ), retried AS (
        UPDATE webhook_deliveries d
           SET owner = NULL, leased_until = NULL, due_at = held.due_at, tries = d.tries + 1
          FROM held
         WHERE held.fate = 'retry' AND d.team_id = held.team_id AND d.webhook_id = held.webhook_id
           AND d.event_id = held.event_id AND d.replay = held.replay
    ), ended AS (
        DELETE FROM webhook_deliveries d
         USING held
         WHERE held.fate IN ('success', 'failed', 'gone') AND d.team_id = held.team_id
           AND d.webhook_id = held.webhook_id AND d.event_id = held.event_id AND d.replay = held.replay
        RETURNING d.team_id, d.webhook_id, d.event_id, d.replay, d.kind, d.at, held.fate
    ), outcomes AS (
        INSERT INTO webhook_outcomes AS o (team_id, webhook_id, event_id, kind, at, status)
        SELECT team_id, webhook_id, event_id, kind, at, fate
          FROM ended
         WHERE replay = $3 AND fate <> 'gone'
         ORDER BY team_id, webhook_id, event_id
        ON CONFLICT (team_id, webhook_id, event_id) DO UPDATE SET status = 'success'
         WHERE excluded.status = 'success'
    ), replayed AS (
        UPDATE webhook_outcomes o
           SET status = 'success'
          FROM ended
         WHERE ended.replay <> $3 AND ended.fate = 'success' AND o.status = 'failed'
           AND o.team_id = ended.team_id AND o.webhook_id = ended.webhook_id AND o.event_id = ended.event_id
    ), logged AS (
        INSERT INTO webhook_attempts (team_id, webhook_id, event_id, id, sent_at, http_status_code, response)
        SELECT k.team_id, k.webhook_id, k.event_id, k.attempt_id, k.sent_at, k.code, k.response
          FROM k
          JOIN webhooks w ON w.team_id = k.team_id AND w.id = k.webhook_id
        ON CONFLICT (team_id, webhook_id, event_id, id) DO NOTHING
    ), healed AS (
        UPDATE webhooks w
           SET failing_since = NULL, failing_event = NULL, failing_several = false, told_failing_at = NULL
          FROM (SELECT DISTINCT team_id, webhook_id FROM held WHERE fate = 'success') AS well
         WHERE $4 AND w.team_id = well.team_id AND w.id = well.webhook_id AND w.status = 'enabled'
           AND (w.failing_since IS NOT NULL OR w.told_failing_at IS NOT NULL)
    )
    SELECT team_id, webhook_id, event_id, replay, fate FROM held
"""


class DueWebhook(NamedTuple):
    """A webhook that has free work; `due` where the first of it is due."""

    team_id: UUID
    webhook_id: UUID
    due: bool


class WebhookRow(NamedTuple):
    """The columns of a webhook that a claim needs."""

    endpoint: str
    secrets: Sequence[bytes]
    secret_ends: Sequence[datetime | None]
    epoch: int
    enabled: bool


class ClaimedRow(NamedTuple):
    """A delivery that a claim took; `payload` where its body is made already."""

    event_id: UUID
    replay: UUID
    kind: str
    at: datetime
    subject_id: UUID | None
    position: int | None
    detail: str | None
    attempt: int
    tries: int
    due_at: datetime
    payload: bytes | None


class ClaimResult(NamedTuple):
    """The rows that a claim took, in the order in which they are due. `met` counts the rows it met, void ones
    too; `elsewhere`: another process has the webhook."""

    elsewhere: bool
    met: int
    rows: Sequence[ClaimedRow]


async def due_webhooks(conn: Source, now: datetime, after: WebhookKey, limit: int) -> list[DueWebhook]:
    """Return up to `limit` webhooks with free work behind `after`, in key order, due or not."""
    return [DueWebhook(*row) for row in await conn.fetch(DUE_WEBHOOKS, now, *after, limit)]


async def lock_webhook(conn: Connection, webhook: WebhookKey) -> WebhookRow | None:
    """Lock the webhook and return it; None where it is gone or somebody else holds the lock."""
    row = await conn.fetchrow(LOCK_WEBHOOK, *webhook)
    return None if row is None else WebhookRow(*row)


async def webhook(conn: Source, webhook: WebhookKey) -> WebhookRow | None:
    """Return the webhook as it stands."""
    row = await conn.fetchrow(WEBHOOK, *webhook)
    return None if row is None else WebhookRow(*row)


async def claim(
    conn: Connection,
    webhook: WebhookKey,
    epoch: int,
    owner: UUID,
    until: datetime,
    now: datetime,
    limit: int,
) -> ClaimResult:
    """Lease up to `limit` due deliveries of one webhook.

    Takes void ones out of the queue, and writes `failed` for those of the schedule unless the webhook is
    gone.
    """
    rows = await conn.fetch(CLAIM, *webhook, epoch, owner, until, now, limit, SCHEDULED)
    taken = [ClaimedRow(*row[2:]) for row in rows if row["event_id"] is not None]
    return ClaimResult(rows[0]["held"], rows[0]["met"], taken)


async def put_off(
    conn: Source, webhook: WebhookKey, now: datetime, until: datetime, hopeless: datetime
) -> None:
    """Let the first due delivery of a webhook wait until then, or fail where its event is from before
    `hopeless`."""
    await conn.execute(PUT_OFF, *webhook, now, until, hopeless, SCHEDULED)


async def settle(
    conn: Source, batch: Sequence[DeliverySettlement], owner: UUID, *, all_well: bool
) -> dict[Key, str]:
    """Write attempts and what they mean; returns the fate of every delivery that was still there.

    `all_well` where all of them succeeded: then this is all there is to write.
    """
    rows = rows_json([_settle_row(settlement) for settlement in batch])
    found: list[Any] = await conn.fetch(SETTLE, rows, owner, SCHEDULED, all_well)
    return {(row[0], row[1], row[2], row[3]): row[4] for row in found}


def _settle_row(settlement: DeliverySettlement) -> dict[str, Any]:
    delivery, answer = settlement.delivery, settlement.answer
    return {
        "team_id": delivery.team_id,
        "webhook_id": delivery.webhook_id,
        "event_id": delivery.event_id,
        "replay": delivery.replay,
        "attempt": delivery.attempt,
        "verdict": settlement.verdict.value,
        "due_at": settlement.due_at,
        "attempt_id": settlement.attempt_id,
        "sent_at": settlement.sent_at,
        "code": answer.code,
        "response": answer.response,
    }


async def make_misdated_due(source: Source, now: datetime) -> int:
    """Make first attempts due that would come too late, as a clock ahead of time has dated their event after
    `now`; returns how many."""
    # Across teams: the clock was the same for all of them. What a listener reads is never due, and what a
    # restore has put aside stays there.
    return changed(
        await source.execute(
            """
            UPDATE webhook_deliveries
               SET due_at = $1
             WHERE owner IS NULL AND due_at > $1 AND at > $1 AND tries = 0 AND due_at < 'infinity'
               AND restored_due_at IS NULL
            """,
            now,
        )
    )
