"""SQL of the timeline. These statements take whole batches, of several teams at once: every one of them
matches on `team_id` and the key of the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import ExpectedRowCount, Statement, combined, rows_json
from pillarbox.kernel.postgres.database import Connection, Source, literal
from pillarbox.timeline.rules import RecipientFate

METRICS = (
    "received",
    "sent",
    "delivered",
    "delivery_delayed",
    "failed",
    "suppressed",
    "bounced_transient",
    "bounced_permanent",
    "bounced_undetermined",
    "opened",
    "clicked",
    "unique_opened",
    "unique_clicked",
    "complained",
    "unsubscribed",
)
"""The columns of `metric_increments` that count."""

Row = dict[str, Any]
"""Column to value."""

LOCK = """
    SELECT e.team_id, e.id AS email_id, r.position, r.state, r.sent_at, r.delayed_at, r.bounce_type,
           r.opened_at, r.clicked_at, r.complained_at, r.unsubscribed_at,
           e.last_event, e.last_event_at, e.sent_at AS email_sent_at,
           e.domain_id, e.domain_name, e.broadcast_id
      FROM unnest($1::uuid[], $2::uuid[], $3::smallint[]) AS k (team_id, email_id, position)
      JOIN emails e ON e.team_id = k.team_id AND e.id = k.email_id
      JOIN recipients r ON r.team_id = k.team_id AND r.email_id = k.email_id AND r.position = k.position
     ORDER BY e.team_id, e.id, r.position
       FOR UPDATE OF e, r
"""

WRITE = """
    WITH fates AS (
        UPDATE recipients r
           SET state = k.state, sent_at = k.sent_at, delayed_at = k.delayed_at, bounce_type = k.bounce_type,
               opened_at = k.opened_at, clicked_at = k.clicked_at, complained_at = k.complained_at,
               unsubscribed_at = k.unsubscribed_at
          FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::text[], $5::timestamptz[],
                      $6::timestamptz[], $7::text[], $8::timestamptz[], $9::timestamptz[],
                      $10::timestamptz[], $11::timestamptz[])
               AS k (team_id, email_id, position, state, sent_at, delayed_at, bounce_type, opened_at,
                     clicked_at, complained_at, unsubscribed_at)
         WHERE r.team_id = k.team_id AND r.email_id = k.email_id AND r.position = k.position
    )
    UPDATE emails e
       SET last_event = k.last_event, last_event_at = k.last_event_at, sent_at = k.sent_at
      FROM unnest($12::uuid[], $13::uuid[], $14::text[], $15::timestamptz[], $16::timestamptz[])
           AS k (team_id, id, last_event, last_event_at, sent_at)
     WHERE e.team_id = k.team_id AND e.id = k.id
"""

# What `LOCK` and `WRITE` do together, for emails of which it is assumed that nothing became of them yet: the
# guards are the assumption. Emails come in key order, and each one's recipient after it. The last row says
# how many emails were met.
WRITE_FIRST = """
    WITH heads AS (
        UPDATE emails e
           SET last_event = k.last_event, last_event_at = k.last_event_at, sent_at = k.email_sent_at
          FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text::smallint[], $4::text::text[],
                      $5::text::timestamptz[], $6::text::timestamptz[], $7::text::text[], $8::text::text[],
                      $9::text::timestamptz[], $10::text::timestamptz[])
               AS k (team_id, id, position, state, sent_at, delayed_at, bounce_type, last_event,
                     last_event_at, email_sent_at)
         WHERE e.team_id = k.team_id AND e.id = k.id
           AND e.last_event = 'queued' AND e.sent_at IS NULL
        RETURNING e.team_id, e.id, e.domain_id, e.domain_name, e.broadcast_id,
                  k.position, k.state, k.sent_at AS first_sent_at, k.delayed_at, k.bounce_type
    ), fates AS (
        UPDATE recipients r
           SET state = h.state, sent_at = h.first_sent_at, delayed_at = h.delayed_at,
               bounce_type = h.bounce_type
          FROM heads h
         WHERE r.team_id = h.team_id AND r.email_id = h.id AND r.position = h.position
           AND r.state = 'queued' AND r.sent_at IS NULL AND r.delayed_at IS NULL AND r.bounce_type IS NULL
        RETURNING r.team_id, r.email_id, h.domain_id, h.domain_name, h.broadcast_id
    )
    SELECT team_id, email_id, domain_id, domain_name, broadcast_id, 0 AS met FROM fates
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, count(*) FROM heads
"""

# The same for whoever knows where the email belongs: then nothing has to be read first. Each row is looked up
# on its own, by its key: a join that was planned while the tables were small would go on to read all of them.
FIRST_HEADS = """
    UPDATE emails e
       SET last_event = k.last_event, last_event_at = k.last_event_at, sent_at = k.email_sent_at
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, email_id uuid, last_event text, last_event_at timestamptz,
                 email_sent_at timestamptz, domain_id uuid, domain_name text,
                 broadcast_id uuid)
     CROSS JOIN LATERAL (
           SELECT x.ctid AS place
             FROM emails x
            WHERE x.team_id = k.team_id AND x.id = k.email_id
           OFFSET 0) AS found
     WHERE e.ctid = found.place
       AND e.last_event = 'queued' AND e.sent_at IS NULL
       AND e.domain_name = k.domain_name AND e.domain_id IS NOT DISTINCT FROM k.domain_id
       AND e.broadcast_id IS NOT DISTINCT FROM k.broadcast_id
    RETURNING e.id
"""

FIRST_FATES = """
    UPDATE recipients r
       SET state = k.state, sent_at = k.sent_at, delayed_at = k.delayed_at, bounce_type = k.bounce_type
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, email_id uuid, position smallint, state text, sent_at timestamptz,
                 delayed_at timestamptz, bounce_type text)
     CROSS JOIN LATERAL (
           SELECT x.ctid AS place
             FROM recipients x
            WHERE x.team_id = k.team_id AND x.email_id = k.email_id AND x.position = k.position
           OFFSET 0) AS found
     WHERE r.ctid = found.place
       AND r.state = 'queued' AND r.sent_at IS NULL AND r.delayed_at IS NULL AND r.bounce_type IS NULL
    RETURNING r.email_id
"""

# A detail is JSON within JSON as a text: what a server said may hold NUL, and a document that is
# read may not.
HISTORY = """
    INSERT INTO timeline (team_id, id, email_id, at, kind, position, detail)
    SELECT k.team_id, k.id, k.email_id, k.at, k.kind, k.position, k.detail::json
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, id uuid, email_id uuid, at timestamptz, kind text, position smallint,
                 detail text)
"""

COUNTS = """
    INSERT INTO metric_increments
           (team_id, id, start, domain_id, domain_name, broadcast_id, received, sent, delivered,
            delivery_delayed, failed, suppressed, bounced_transient, bounced_permanent,
            bounced_undetermined, opened, clicked, unique_opened, unique_clicked, complained, unsubscribed)
    SELECT k.*
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, id uuid, start timestamptz, domain_id uuid, domain_name text,
                 broadcast_id uuid, received integer, sent integer, delivered integer,
                 delivery_delayed integer, failed integer, suppressed integer,
                 bounced_transient integer, bounced_permanent integer, bounced_undetermined integer,
                 opened integer, clicked integer, unique_opened integer, unique_clicked integer,
                 complained integer, unsubscribed integer)
"""

COUNTS_RECEIVED = """
    INSERT INTO metric_increments (team_id, id, start, domain_id, domain_name, broadcast_id, received)
    SELECT k.*
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, id uuid, start timestamptz, domain_id uuid, domain_name text,
                 broadcast_id uuid, received integer)
"""

WANTED = """
    SELECT team_id, events FROM webhooks WHERE team_id = ANY ($1::text::uuid[]) AND status = 'enabled'
"""

MOVE_EMAIL = """
    WITH moved AS (
        UPDATE emails e
           SET last_event = $3, last_event_at = $4
         WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[]) AND e.last_event = 'scheduled'
        RETURNING e.id
    ), recipients_moved AS (
        UPDATE recipients r
           SET state = $3
          FROM moved
         WHERE r.team_id = $1 AND r.email_id = moved.id AND r.state = 'scheduled'
    )
    SELECT id FROM moved
"""


class LockedRecipient(NamedTuple):
    """The fate of a recipient and of its email, in the order of `LOCK`."""

    team_id: UUID
    email_id: UUID
    position: int
    state: str
    sent_at: datetime | None
    delayed_at: datetime | None
    bounce_type: str | None
    opened_at: datetime | None
    clicked_at: datetime | None
    complained_at: datetime | None
    unsubscribed_at: datetime | None
    last_event: str
    last_event_at: datetime
    email_sent_at: datetime | None
    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


async def lock(conn: Connection, keys: Sequence[tuple[UUID, UUID, int]]) -> list[LockedRecipient]:
    """Lock these recipients and their emails, in key order, and return their fates."""
    teams, emails, positions = zip(*sorted(keys), strict=True)
    return [LockedRecipient(*row) for row in await conn.fetch(LOCK, teams, emails, positions)]


async def write(
    conn: Connection,
    fates: Sequence[tuple[UUID, UUID, int, RecipientFate]],
    emails: Sequence[tuple[UUID, UUID, str, datetime, datetime | None]],
) -> None:
    """Store fates of recipients and of emails whose rows this transaction has locked."""
    columns = list(zip(*[_fate_row(*row) for row in fates], strict=True)) or [()] * 11
    heads = list(zip(*emails, strict=True)) or [()] * 5
    await conn.execute(WRITE, *columns, *heads)


class FirstEventColumns(NamedTuple):
    """The columns of an email and of its one recipient after their first events."""

    team_id: UUID
    email_id: UUID
    position: int
    fate: RecipientFate
    last_event: str
    last_event_at: datetime
    sent_at: datetime | None


class FirstEventConflict(Exception):  # noqa: N818 - the transaction is repeated without the assumption
    """An email and its recipient disagree about whether something became of it."""


class MetricDimensions(NamedTuple):
    """The dimensions by which the metrics of an email are counted."""

    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


async def write_first(
    conn: Connection, firsts: Sequence[FirstEventColumns]
) -> dict[tuple[UUID, UUID], MetricDimensions]:
    """Store these where nothing has become of the email yet; returns where that was so.

    Raises `FirstEventConflict` where the transaction must be rolled back.
    """
    rows = [(*f[:3], f.fate.state.value, *f.fate[1:4], *f[4:]) for f in sorted(firsts)]
    *found, last = await conn.fetch(WRITE_FIRST, *map(literal, zip(*rows, strict=True)))
    if last["met"] != len(found):
        raise FirstEventConflict
    return {(row[0], row[1]): MetricDimensions(*row[2:5]) for row in found}


def firsts(rows: Sequence[tuple[FirstEventColumns, MetricDimensions]]) -> list[ExpectedRowCount]:
    """Return the statements that store these where nothing has become of the emails yet."""
    heads, fates = [], []
    for first, dimensions in sorted(rows):
        heads.append(
            {
                "team_id": first.team_id,
                "email_id": first.email_id,
                "domain_id": dimensions.domain_id,
                "domain_name": dimensions.domain_name,
                "broadcast_id": dimensions.broadcast_id,
                "last_event": first.last_event,
                "last_event_at": first.last_event_at,
                "email_sent_at": first.sent_at,
            }
        )
        fate = first.fate
        fates.append(
            {
                "team_id": first.team_id,
                "email_id": first.email_id,
                "position": first.position,
                "state": fate.state.value,
                "sent_at": fate.sent_at,
                "delayed_at": fate.delayed_at,
                "bounce_type": fate.bounce_type,
            }
        )
    return [
        ExpectedRowCount(FIRST_HEADS, (rows_json(heads),), len(rows)),
        ExpectedRowCount(FIRST_FATES, (rows_json(fates),), len(rows)),
    ]


def none_subscribed(teams: Collection[UUID]) -> ExpectedRowCount:
    """Return a statement that expects that none of the teams has a webhook."""
    return ExpectedRowCount(WANTED, (literal(teams),), 0)


Wanted = Mapping[UUID, Counter[str]]
"""How many webhooks of each team want which kind of event, for teams that have any."""


def appends(rows: Sequence[Row], increments: Sequence[Row]) -> list[Statement]:
    """Return the statements that add lines of history and increments of metrics."""
    writes = [Statement(HISTORY, (rows_json(rows),))]
    if increments:
        writes.append(Statement(COUNTS, (rows_json(increments),)))
    return writes


def counts_received(increments: Sequence[Row]) -> list[Statement]:
    """Return the statement that adds increments of which only `received` counts."""
    return [Statement(COUNTS_RECEIVED, (rows_json(increments),))] if increments else []


async def append(conn: Connection, rows: Sequence[Row], increments: Sequence[Row]) -> Wanted:
    """Add lines of history and metric increments; returns which events each team subscribes to."""
    teams = {row["team_id"] for row in rows}
    return _counted(await combined(conn, appends(rows, increments), Statement(WANTED, (literal(teams),))))


async def wanted(source: Source, teams: Collection[UUID]) -> Wanted:
    """Return the events that each of these teams subscribes to."""
    return _counted(await source.fetch(WANTED, literal(teams)))


def _counted(rows: Iterable[Any]) -> Wanted:
    found: dict[UUID, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["team_id"], Counter()).update(row["events"])
    return found


async def move_emails(
    conn: Connection, team_id: UUID, email_ids: Sequence[UUID], kind: str, now: datetime
) -> list[UUID]:
    """Take scheduled emails to `kind`; returns those that were still scheduled."""
    rows = await conn.fetch(MOVE_EMAIL, team_id, email_ids, kind, now)
    return [row["id"] for row in rows]


def _fate_row(team_id: UUID, email_id: UUID, position: int, fate: RecipientFate) -> tuple[Any, ...]:
    return (
        team_id,
        email_id,
        position,
        fate.state.value,
        fate.sent_at,
        fate.delayed_at,
        fate.bounce_type,
        fate.opened_at,
        fate.clicked_at,
        fate.complained_at,
        fate.unsubscribed_at,
    )
