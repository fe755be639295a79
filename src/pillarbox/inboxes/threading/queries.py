"""SQL by which messages come into threads; of several teams at once, each row names its own.

Whoever uses it holds the locks of the inboxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.inboxes.folders import KEPT_IN_TRASH, ThreadFolder
from pillarbox.inboxes.locking import InboxKey
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.inboxes.threading.thread_plan import KnownMessage, ThreadPlan, ThreadState, key_of_subject
from pillarbox.inboxes.trust import queries as trust_queries
from pillarbox.inboxes.trust.confusables import address_key
from pillarbox.kernel.postgres.combined_statement import Statement, combined, rows_json
from pillarbox.kernel.postgres.database import Connection
from pillarbox.mail.message.threading import bare_id, id_key

MOST_SAME: Final = 20
"""Messages with one Message-ID, the oldest, that are looked at: whoever sends many more with the id of a mail
pushes that one out of nothing. And threads with one subject, the newest."""

DUE_EVERY: Final = 256
"""So seldom a message says that its inbox may have enough for another block (`inboxes.search.blocks`)."""

MOST_AWAITED: Final = 2000
"""Ids that the threads of an inbox wait for; the oldest are forgotten."""
AWAITED_FOR: Final = timedelta(days=30)

_BRACKETS: Final = re.compile(r"^.*<|>$", re.DOTALL)

MOST_PEOPLE: Final = 100
"""Messages of a thread whose people are looked at, the newest."""

# Messages with one of these ids, the oldest first, each with its thread.
BY_IDS = """
    SELECT m.team_id, m.inbox_id, m.id, m.thread_id, m.direction, m.sender_key, m.message_id, m.body_key,
           t.subject, t.folder, t.messages, t.inbound, t.unread, t.has_attachment, t.last_message_id,
           t.received_at, t.created_at, t.marks
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS k (team_id, inbox_id, message_key)
     CROSS JOIN LATERAL (
           SELECT f.*
             FROM inbox_messages f
            WHERE f.team_id = k.team_id AND f.inbox_id = k.inbox_id AND f.message_key = k.message_key
            ORDER BY f.id
            LIMIT $4) AS m
      JOIN inbox_threads t ON t.team_id = m.team_id AND t.id = m.thread_id
     ORDER BY m.id
"""

# Threads that wait for a message with one of these ids.
AWAITED = """
    SELECT t.team_id, t.inbox_id, t.id AS thread_id, t.subject, t.folder, t.messages, t.inbound, t.unread,
           t.has_attachment, t.last_message_id, t.received_at, t.created_at, t.marks, a.message_key
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS k (team_id, inbox_id, message_key)
      JOIN inbox_awaited_messages a
        ON a.team_id = k.team_id AND a.inbox_id = k.inbox_id AND a.message_key = k.message_key
      JOIN inbox_threads t ON t.team_id = a.team_id AND t.inbox_id = a.inbox_id AND t.id = a.thread_id
"""

THREADS = """
    SELECT t.team_id, t.inbox_id, t.id AS thread_id, t.subject, t.folder, t.messages, t.inbound, t.unread,
           t.has_attachment, t.last_message_id, t.received_at, t.created_at, t.marks,
           NULL::text AS person
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS k (team_id, inbox_id, id)
      JOIN inbox_threads t ON t.team_id = k.team_id AND t.inbox_id = k.inbox_id AND t.id = k.id
"""

# Threads with this subject that were active since $5, outside of spam and trash, in which the person takes
# part.
BY_SUBJECT = """
    SELECT t.team_id, t.inbox_id, t.id AS thread_id, t.subject, t.folder, t.messages, t.inbound, t.unread,
           t.has_attachment, t.last_message_id, t.received_at, t.created_at, t.marks, k.person
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::timestamptz[])
           AS k (team_id, inbox_id, subject_key, person, since)
     CROSS JOIN LATERAL (
           SELECT f.*
             FROM inbox_threads f
            WHERE f.team_id = k.team_id AND f.inbox_id = k.inbox_id AND f.subject_key = k.subject_key
              AND f.received_at > k.since AND f.folder NOT IN ('spam', 'trash')
            ORDER BY f.received_at DESC
            LIMIT $6) AS t
     WHERE EXISTS (
           SELECT
             FROM (SELECT p.sender_key, p.to_list, p.cc_list
                     FROM inbox_messages p
                    WHERE p.team_id = t.team_id AND p.thread_id = t.id
                    ORDER BY p.received_at DESC, p.id DESC
                    LIMIT $7) AS m
            WHERE m.sender_key = k.person
               OR EXISTS (SELECT FROM json_array_elements_text(m.to_list) AS a (shown)
                           WHERE lower(coalesce(substring(a.shown FROM '<([^<>]*)>$'), a.shown)) = k.person)
               OR EXISTS (SELECT FROM json_array_elements_text(m.cc_list) AS a (shown)
                           WHERE lower(coalesce(substring(a.shown FROM '<([^<>]*)>$'), a.shown)) = k.person))
"""

BEGIN = """
    INSERT INTO inbox_threads (team_id, id, inbox_id, subject, subject_key, folder, messages, inbound, unread,
                               has_attachment, last_message_id, received_at, created_at)
    SELECT k.*
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, id uuid, inbox_id uuid, subject text, subject_key bigint, folder text,
                 messages integer, inbound integer, unread integer, has_attachment boolean,
                 last_message_id uuid, received_at timestamptz, created_at timestamptz)
"""

CHANGE = """
    UPDATE inbox_threads t
       SET folder = k.folder, messages = k.messages, inbound = k.inbound, unread = k.unread,
           has_attachment = k.has_attachment, last_message_id = k.last_message_id,
           received_at = k.received_at,
           purge_at = CASE WHEN k.folder = 'trash' THEN coalesce(t.purge_at, $2::timestamptz) END
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, id uuid, folder text, messages integer, inbound integer, unread integer,
                 has_attachment boolean, last_message_id uuid, received_at timestamptz)
     WHERE t.team_id = k.team_id AND t.id = k.id
"""

# It fails where a message is taken for new and is not: only that undoes the rest.
ADD = """
    INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender, sender_key,
                                to_list, cc_list, bcc_list, reply_to_list, subject, message_id, message_key,
                                body_key, attachments, is_read, marks, is_automatic, searched)
    SELECT k.team_id, k.inbox_id, k.id, k.thread_id, k.direction, k.received_at, k.sender, k.sender_key,
           k.to_list::json, k.cc_list::json, k.bcc_list::json, k.reply_to_list::json, k.subject, k.message_id,
           k.message_key, decode(k.body_key, 'hex'),
           CASE WHEN k.is_new AND coalesce((
                SELECT true
                  FROM inbox_messages m
                 WHERE m.team_id = k.team_id AND m.inbox_id = k.inbox_id AND m.message_key = k.message_key
                 LIMIT 1), (
                SELECT true
                  FROM inbox_awaited_messages a
                 WHERE a.team_id = k.team_id AND a.inbox_id = k.inbox_id AND a.message_key = k.message_key),
                false) THEN fail_statement('a message taken for new is known') ELSE k.attachments END,
           k.direction = 'outbound', k.marks, k.is_automatic,
           ($2::text[])[k.place]
      FROM json_to_recordset($1::text::json)
           AS k (place integer, team_id uuid, inbox_id uuid, id uuid, thread_id uuid, direction text,
                 received_at timestamptz, sender text, sender_key text, to_list text, cc_list text,
                 bcc_list text, reply_to_list text, subject text, message_id text, message_key bigint,
                 body_key text, attachments smallint, marks integer, is_automatic boolean, is_new boolean)
"""

# Of the messages that are added those that searches would miss: `indexed_up_to` is behind them already.
LATE = """
    INSERT INTO inbox_search_late (team_id, inbox_id, id)
    SELECT k.team_id, k.inbox_id, k.id
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS k (team_id, inbox_id, id)
      JOIN inboxes i ON i.team_id = k.team_id AND i.id = k.inbox_id
     WHERE k.id <= i.described_to
"""

# Rows that are there already wait for threads that are gone: others are not given.
AWAIT = """
    INSERT INTO inbox_awaited_messages (team_id, inbox_id, message_key, thread_id, at)
    SELECT k.team_id, k.inbox_id, k.message_key, k.thread_id, $5
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[])
           AS k (team_id, inbox_id, message_key, thread_id)
    ON CONFLICT (team_id, inbox_id, message_key)
    DO UPDATE SET thread_id = excluded.thread_id, at = excluded.at
"""

# Of each inbox what is too old, or older than so many others.
FORGET = """
    DELETE FROM inbox_awaited_messages a
     USING (SELECT DISTINCT k.team_id, k.inbox_id
              FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, inbox_id)) AS i
     WHERE a.team_id = i.team_id AND a.inbox_id = i.inbox_id AND a.message_key <> ALL ($3::bigint[])
       AND (a.at < $4
            OR a.at < (SELECT o.at
                         FROM inbox_awaited_messages o
                        WHERE o.team_id = i.team_id AND o.inbox_id = i.inbox_id
                        ORDER BY o.at DESC
                       OFFSET $5
                        LIMIT 1))
"""

DUE = """
    INSERT INTO inbox_search_due (team_id, inbox_id)
    SELECT k.team_id, k.inbox_id
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, inbox_id)
    ON CONFLICT DO NOTHING
"""

RETURN = """
    UPDATE inbox_messages m
       SET direction = 'inbound', is_read = false, body_key = k.body_key, marks = t.marks
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bytea[]) AS k (team_id, inbox_id, id, body_key)
     CROSS JOIN inbox_threads t
     WHERE m.team_id = k.team_id AND m.inbox_id = k.inbox_id AND m.id = k.id
       AND t.team_id = m.team_id AND t.id = m.thread_id
"""

COUNT = """
    UPDATE inboxes i
       SET unread = i.unread + k.change
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS k (team_id, id, change)
     WHERE i.team_id = k.team_id AND i.id = k.id
"""

# Labels stand in lists where their threads stand.
FOLLOW = """
    UPDATE inbox_thread_labels l
       SET list_class = t.list_class, received_at = t.received_at
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, id)
      JOIN inbox_threads t ON t.team_id = k.team_id AND t.id = k.id
     WHERE l.team_id = k.team_id AND l.thread_id = k.id
       AND (l.list_class <> t.list_class OR l.received_at <> t.received_at)
"""

HAS_WEBHOOKS = """
    SELECT EXISTS (SELECT FROM webhooks WHERE team_id = ANY ($1::uuid[]) AND status = 'enabled') AS found
"""


class SubjectQuery(NamedTuple):
    """A subject that somebody has answered without naming an earlier message."""

    inbox: InboxKey
    key: int
    person: str
    since: datetime


class ThreadLookup(NamedTuple):
    """The messages and threads that a lookup found. `awaited`: the threads that wait for a message with that
    id."""

    threads: list[ThreadState]
    messages: list[KnownMessage]
    awaited: Mapping[tuple[InboxKey, int], UUID]


async def by_ids(conn: Connection, inbox_keys: Iterable[tuple[InboxKey, str]]) -> ThreadLookup:
    """Return the messages of these inboxes with these ids (without brackets), and their threads."""
    keys = sorted({(*inbox, id_key(message_id)) for inbox, message_id in inbox_keys})
    if not keys:
        return ThreadLookup([], [], {})
    rows = await conn.fetch(BY_IDS, *zip(*keys, strict=True), MOST_SAME)
    messages = [
        KnownMessage(
            inbox=(row["team_id"], row["inbox_id"]),
            id=row["id"],
            thread_id=row["thread_id"],
            is_inbound=row["direction"] == "inbound",
            sender_key=row["sender_key"],
            message_id=bare_id(row["message_id"]),
            body_key=row["body_key"],
        )
        for row in rows
    ]
    waiting = await conn.fetch(AWAITED, *zip(*keys, strict=True))
    awaited = {((row["team_id"], row["inbox_id"]), row["message_key"]): row["thread_id"] for row in waiting}
    threads = {row["thread_id"]: _thread(row) for row in (*waiting, *rows)}
    return ThreadLookup(list(threads.values()), messages, awaited)


async def threads(conn: Connection, inbox_keys: Iterable[tuple[InboxKey, UUID]]) -> list[ThreadState]:
    """Return those of these threads that exist."""
    keys = sorted({(*inbox, thread_id) for inbox, thread_id in inbox_keys})
    if not keys:
        return []
    return [_thread(row) for row in await conn.fetch(THREADS, *zip(*keys, strict=True))]


async def by_subject(conn: Connection, subjects: Sequence[SubjectQuery]) -> list[ThreadState]:
    """Return the threads with these subjects, each with the person that takes part in it."""
    if not subjects:
        return []
    keys = [(*one.inbox, one.key, one.person, one.since) for one in subjects]
    rows = await conn.fetch(BY_SUBJECT, *zip(*keys, strict=True), MOST_SAME, MOST_PEOPLE)
    found: dict[UUID, ThreadState] = {}
    for row in rows:
        found.setdefault(row["thread_id"], _thread(row)).people.add(row["person"])
    return list(found.values())


def writes(
    plan: ThreadPlan, instant: datetime, described: Mapping[InboxKey, UUID] | None = None
) -> list[Statement]:
    """Return the statements that carry out the plan, except for its events; none of them sees another's rows.
    `described`: the id up to which search blocks cover each inbox, where the lock has returned it."""
    found = []
    if new := [thread for thread in plan.threads if thread.is_new]:
        found.append(Statement(BEGIN, (rows_json([_new_row(thread) for thread in new]),)))
    if changed := [thread for thread in plan.threads if not thread.is_new]:
        rows = rows_json([_changed_row(thread) for thread in changed])
        found.append(Statement(CHANGE, (rows, instant + KEPT_IN_TRASH)))
    if plan.placed:
        marks = {thread.id: thread.marks for thread in plan.threads}
        rows = rows_json([_message_row(plan, place, marks) for place in range(len(plan.placed))])
        found.append(Statement(ADD, (rows, [placed.message.searched for placed in plan.placed])))
        added = [(*placed.message.inbox, placed.message.id) for placed in plan.placed]
        late = added if described is None else [one for one in added if one[2] <= described[one[:2]]]
        if late:
            found.append(Statement(LATE, tuple(zip(*late, strict=True))))
        if addressees := {one for placed in plan.placed for one in _addressees(placed.message)}:
            found.append(trust_queries.writing_to(addressees))
        if due := sorted({(team, inbox) for team, inbox, one in added if one.int % DUE_EVERY == 0}):
            found.append(Statement(DUE, tuple(zip(*due, strict=True))))
    if plan.awaited:
        waits = [(*inbox, key, thread_id) for (inbox, key), thread_id in sorted(plan.awaited.items())]
        teams, inboxes, keys, waiting = zip(*waits, strict=True)
        found.append(Statement(AWAIT, (teams, inboxes, keys, waiting, instant)))
        found.append(Statement(FORGET, (teams, inboxes, keys, instant - AWAITED_FOR, MOST_AWAITED)))
    if plan.returned:
        columns = zip(*[(*one.inbox, one.id, one.body_key) for one in plan.returned], strict=True)
        found.append(Statement(RETURN, tuple(columns)))
    counts = [(*inbox, change) for inbox, change in sorted(plan.unread.items()) if change]
    if counts:
        found.append(Statement(COUNT, tuple(zip(*counts, strict=True))))
    return found


def _addressees(message: NewMessage) -> Iterator[tuple[UUID, UUID]]:
    """Yield the addresses that a message is sent to, as hashes, each with the team."""
    if not message.is_inbound:
        for shown in (message.to_list, message.cc_list, message.bcc_list):
            for text in () if shown is None else msgspec.json.decode(shown, type=list[str]):
                yield message.team_id, address_key(_BRACKETS.sub("", text))


def all_writes(
    plan: ThreadPlan, instant: datetime, telling: Statement | None, described: Mapping[InboxKey, UUID]
) -> list[Statement]:
    """Return the statements that carry out the plan and queue its events; call `follow` after them. They
    raise StatementFailed where a message was planned as new and its id is known."""
    return [*writes(plan, instant, described), *([] if telling is None else [telling])]


async def carry_out(conn: Connection, plan: ThreadPlan, now: datetime, telling: Statement) -> bool:
    """Write all of the plan, with what queues its events; whether somebody may want these."""
    teams = list({thread.inbox[0] for thread in plan.threads})
    rows = await combined(conn, [*writes(plan, now), telling], Statement(HAS_WEBHOOKS, (teams,)))
    await follow(conn, plan)
    return bool(rows[0]["found"])


async def follow(conn: Connection, plan: ThreadPlan) -> None:
    """Let the labels of changed threads stand where these stand now."""
    changed = [(thread.inbox[0], thread.id) for thread in plan.threads if not thread.is_new]
    if changed:
        await conn.execute(FOLLOW, *zip(*changed, strict=True))


def _thread(row: Any) -> ThreadState:
    return ThreadState(
        inbox=(row["team_id"], row["inbox_id"]),
        id=row["thread_id"],
        subject=row["subject"],
        folder=ThreadFolder(row["folder"]),
        messages=row["messages"],
        inbound=row["inbound"],
        unread=row["unread"],
        has_attachment=row["has_attachment"],
        last_message_id=row["last_message_id"],
        received_at=row["received_at"],
        created_at=row["created_at"],
        marks=row["marks"],
    )


def _changed_row(thread: ThreadState) -> dict[str, Any]:
    return {
        "team_id": thread.inbox[0],
        "id": thread.id,
        "folder": thread.folder.value,
        "messages": thread.messages,
        "inbound": thread.inbound,
        "unread": thread.unread,
        "has_attachment": thread.has_attachment,
        "last_message_id": thread.last_message_id,
        "received_at": thread.received_at,
    }


def _new_row(thread: ThreadState) -> dict[str, Any]:
    return _changed_row(thread) | {
        "inbox_id": thread.inbox[1],
        "subject": thread.subject,
        "subject_key": key_of_subject(thread.subject),
        "created_at": thread.created_at,
    }


def _message_row(plan: ThreadPlan, place: int, marks: Mapping[UUID, int]) -> dict[str, Any]:
    message, thread_id = plan.placed[place]
    return {
        "place": place + 1,
        "team_id": message.team_id,
        "inbox_id": message.inbox_id,
        "id": message.id,
        "thread_id": thread_id,
        "direction": "inbound" if message.is_inbound else "outbound",
        "received_at": message.received_at,
        "sender": message.sender,
        "sender_key": message.sender_key,
        "to_list": message.to_list,
        "cc_list": message.cc_list,
        "bcc_list": message.bcc_list,
        "reply_to_list": message.reply_to_list,
        "subject": message.subject or None,
        "message_id": message.message_id,
        "message_key": None if message.message_id is None else id_key(message.message_id),
        "body_key": None if message.body_key is None else message.body_key.hex(),
        "attachments": message.attachments,
        "marks": marks[thread_id],
        "is_automatic": message.is_automatic,
        "is_new": plan.are_new,
    }
