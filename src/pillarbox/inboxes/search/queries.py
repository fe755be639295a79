"""SQL of finding messages. A search reads all of it in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from pillarbox.inboxes.search.terms import ROWS_OF_PART
from pillarbox.kernel.postgres.database import TeamDb

MOST_UNDESCRIBED = 20_000
"""Messages without a block that are looked at, the newest."""

MOST_OF_THREAD = 1000
"""Messages of a thread that are compared, the newest."""

SNAPSHOT = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY
"""

DESCRIBED_TO = """
    SELECT described_to FROM inboxes WHERE team_id = $1 AND id = $2
"""

BLOCKS = """
    SELECT id, version, columns, oldest_id, newest_id, begins
      FROM inbox_search_blocks
     WHERE team_id = $1 AND inbox_id = $2 AND newest_id >= $3 AND oldest_id < $4
     ORDER BY newest_id DESC, id
"""

# Of each block the rows $5 of its matrix, in their order.
ROWS = """
    SELECT b.place, string_agg(substring(r.bits FROM k.number % 64 * b.octets + 1 FOR b.octets), ''
                               ORDER BY k.number) AS bits
      FROM unnest($3::uuid[], $4::integer[]) WITH ORDINALITY AS b (id, octets, place)
     CROSS JOIN unnest($5::integer[]) AS k (number)
      JOIN inbox_search_rows r
        ON r.team_id = $1 AND r.inbox_id = $2 AND r.block_id = b.id AND r.part = (k.number / 64)::smallint
     GROUP BY b.place
"""

MESSAGES_OF_BLOCK = """
    SELECT messages FROM inbox_search_blocks WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

# What no block has, as far as the words say so.
UNDESCRIBED = """
    SELECT m.id, m.thread_id
      FROM ((SELECT n.id, n.thread_id, n.searched
               FROM inbox_messages n
              WHERE n.team_id = $1 AND n.inbox_id = $2 AND n.id > $3
              ORDER BY n.id DESC
              LIMIT $4)
             UNION ALL
            (SELECT n.id, n.thread_id, n.searched
               FROM (SELECT late.id
                       FROM inbox_search_late late
                      WHERE late.team_id = $1 AND late.inbox_id = $2
                      ORDER BY late.id DESC
                      LIMIT $4) AS l
               JOIN inbox_messages n ON n.team_id = $1 AND n.inbox_id = $2 AND n.id = l.id)) AS m
     CROSS JOIN LATERAL (SELECT m.searched || '' AS text OFFSET 0) AS s
     WHERE NOT EXISTS (SELECT FROM unnest($5::text[]) AS w (word) WHERE strpos(s.text, w.word) = 0)
       AND NOT EXISTS (SELECT FROM unnest($6::text[]) AS w (word) WHERE strpos(s.text, w.word) > 0)
"""

# The threads of messages that are named by columns of blocks or by themselves ($5, $6). Of the block $3 there
# are $12 columns in $13, from the place $4 on. Each thread is looked up by its key: where the planner may
# begin with the threads, because they are wanted in order, it reads the messages again for each of them.
THREADS_OLDER = """
    SELECT t.id, t.received_at, array_agg(c.message_id) AS messages
      FROM (SELECT left(d.ids, 32)::uuid AS message_id, right(d.ids, 32)::uuid AS thread_id
              FROM (SELECT encode(substring(b.messages FROM k.number * 32 + 1 FOR 32), 'hex') AS ids
                      FROM unnest($3::uuid[], $4::integer[], $12::integer[]) AS n (block_id, first, count)
                      JOIN inbox_search_blocks b
                        ON b.team_id = $1 AND b.inbox_id = $2 AND b.id = n.block_id
                     CROSS JOIN LATERAL unnest(($13::integer[])[n.first:n.first + n.count - 1]) AS k (number)
                    OFFSET 0) AS d
             UNION ALL
            SELECT i.message_id, i.thread_id
              FROM unnest($5::uuid[], $6::uuid[]) AS i (message_id, thread_id)) AS c
     CROSS JOIN LATERAL (
           SELECT f.*
             FROM inbox_threads f
            WHERE f.team_id = $1 AND f.id = c.thread_id
            LIMIT 1) AS t
     WHERE t.inbox_id = $2 AND t.list_class = ANY ($7::smallint[]) AND (t.received_at, t.id) < ($8, $9)
       AND ($10::uuid[] IS NULL
            OR EXISTS (SELECT FROM inbox_thread_labels l
                        WHERE l.team_id = $1 AND l.thread_id = t.id AND l.label_id = ANY ($10)))
     GROUP BY t.received_at, t.id
     ORDER BY t.received_at DESC, t.id DESC
     LIMIT $11
"""

THREADS_NEWER = """
    SELECT t.id, t.received_at, array_agg(c.message_id) AS messages
      FROM (SELECT left(d.ids, 32)::uuid AS message_id, right(d.ids, 32)::uuid AS thread_id
              FROM (SELECT encode(substring(b.messages FROM k.number * 32 + 1 FOR 32), 'hex') AS ids
                      FROM unnest($3::uuid[], $4::integer[], $12::integer[]) AS n (block_id, first, count)
                      JOIN inbox_search_blocks b
                        ON b.team_id = $1 AND b.inbox_id = $2 AND b.id = n.block_id
                     CROSS JOIN LATERAL unnest(($13::integer[])[n.first:n.first + n.count - 1]) AS k (number)
                    OFFSET 0) AS d
             UNION ALL
            SELECT i.message_id, i.thread_id
              FROM unnest($5::uuid[], $6::uuid[]) AS i (message_id, thread_id)) AS c
     CROSS JOIN LATERAL (
           SELECT f.*
             FROM inbox_threads f
            WHERE f.team_id = $1 AND f.id = c.thread_id
            LIMIT 1) AS t
     WHERE t.inbox_id = $2 AND t.list_class = ANY ($7::smallint[]) AND (t.received_at, t.id) > ($8, $9)
       AND ($10::uuid[] IS NULL
            OR EXISTS (SELECT FROM inbox_thread_labels l
                        WHERE l.team_id = $1 AND l.thread_id = t.id AND l.label_id = ANY ($10)))
     GROUP BY t.received_at, t.id
     ORDER BY t.received_at, t.id
     LIMIT $11
"""

# Messages that fit, with what their people are compared by. The weight counts words of the subject most, then
# of people and files, then of the body.
MATCHING = """
    SELECT m.thread_id, m.id, m.received_at, m.sender, m.to_list, m.cc_list, m.bcc_list, p.weight
      FROM unnest($3::uuid[]) AS k (id)
     CROSS JOIN LATERAL (
           SELECT n.*, t.folder
             FROM inbox_messages n
             JOIN inbox_threads t ON t.team_id = $1 AND t.id = n.thread_id
            WHERE n.team_id = $1 AND n.inbox_id = $2 AND n.id = k.id
           OFFSET 0) AS m
     CROSS JOIN LATERAL (SELECT m.searched || '' AS text OFFSET 0) AS s
     CROSS JOIN LATERAL (
           SELECT coalesce(sum(1 + CASE WHEN strpos(split_part(s.text, chr(10), 1), w.word) > 0
                                        THEN 8 ELSE 0 END
                                 + CASE WHEN strpos(split_part(s.text, chr(10), 2), w.word) > 0
                                          OR strpos(split_part(s.text, chr(10), 3), w.word) > 0
                                          OR strpos(split_part(s.text, chr(10), 4), w.word) > 0
                                        THEN 3 ELSE 0 END), 0)::integer AS weight
             FROM unnest($4::text[]) AS w (word)) AS p
     WHERE ($6::boolean IS NULL OR (m.attachments > 0) = $6)
       AND ($7::timestamptz IS NULL OR m.received_at >= $7)
       AND ($8::timestamptz IS NULL OR m.received_at < $8)
       AND (m.folder = ANY ($9::text[])
            OR ($10 AND m.direction = 'outbound' AND m.folder NOT IN ('spam', 'trash')))
       AND NOT EXISTS (SELECT FROM unnest($4::text[]) AS w (word) WHERE strpos(s.text, w.word) = 0)
       AND NOT EXISTS (SELECT FROM unnest($5::text[]) AS w (word) WHERE strpos(s.text, w.word) > 0)
"""

# The same of the messages of threads.
MATCHING_OF_THREADS = """
    SELECT m.thread_id, m.id, m.received_at, m.sender, m.to_list, m.cc_list, m.bcc_list, p.weight
      FROM unnest($3::uuid[]) AS k (id)
     CROSS JOIN LATERAL (
           SELECT n.*, t.folder
             FROM inbox_threads t
             JOIN inbox_messages n ON n.team_id = $1 AND n.thread_id = t.id
            WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.id = k.id
            ORDER BY n.received_at DESC, n.id DESC
            LIMIT $11) AS m
     CROSS JOIN LATERAL (SELECT m.searched || '' AS text OFFSET 0) AS s
     CROSS JOIN LATERAL (
           SELECT coalesce(sum(1 + CASE WHEN strpos(split_part(s.text, chr(10), 1), w.word) > 0
                                        THEN 8 ELSE 0 END
                                 + CASE WHEN strpos(split_part(s.text, chr(10), 2), w.word) > 0
                                          OR strpos(split_part(s.text, chr(10), 3), w.word) > 0
                                          OR strpos(split_part(s.text, chr(10), 4), w.word) > 0
                                        THEN 3 ELSE 0 END), 0)::integer AS weight
             FROM unnest($4::text[]) AS w (word)) AS p
     WHERE ($6::boolean IS NULL OR (m.attachments > 0) = $6)
       AND ($7::timestamptz IS NULL OR m.received_at >= $7)
       AND ($8::timestamptz IS NULL OR m.received_at < $8)
       AND (m.folder = ANY ($9::text[])
            OR ($10 AND m.direction = 'outbound' AND m.folder NOT IN ('spam', 'trash')))
       AND NOT EXISTS (SELECT FROM unnest($4::text[]) AS w (word) WHERE strpos(s.text, w.word) = 0)
       AND NOT EXISTS (SELECT FROM unnest($5::text[]) AS w (word) WHERE strpos(s.text, w.word) > 0)
"""

# How many messages each thread has, in this order, and where it stands.
SIZES = """
    SELECT t.id, t.received_at, t.messages
      FROM unnest($3::uuid[]) WITH ORDINALITY AS k (id, place)
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = k.id
     WHERE t.inbox_id = $2
     ORDER BY k.place
"""

SUBJECTS = """
    SELECT t.id, t.subject,
           ARRAY(SELECT l.label_id FROM inbox_thread_labels l WHERE l.team_id = $1 AND l.thread_id = t.id)
           AS labels
      FROM inbox_threads t
     WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.id = ANY ($3::uuid[])
"""

LABEL_NAMES = """
    SELECT id, name FROM inbox_labels WHERE team_id = $1 AND inbox_id = $2
"""


class StoredBlock(NamedTuple):
    """A block of messages; `begins` has a bit for each column that is the first one of its message."""

    id: UUID
    version: int
    columns: int
    oldest_id: UUID
    newest_id: UUID
    begins: bytes


class RowsOfBlock(NamedTuple):
    """Rows of the block at this place of those that were asked for, one behind the other."""

    place: int
    bits: bytes


class UnindexedMessage(NamedTuple):
    """A message that no block has."""

    id: UUID
    thread_id: UUID


class CandidateThread(NamedTuple):
    """A thread with messages that may fit."""

    id: UUID
    received_at: datetime
    messages: Sequence[UUID]


class SizedThread(NamedTuple):
    """A thread in the order of its list, with the number of its messages."""

    id: UUID
    received_at: datetime
    messages: int


class MatchingMessage(NamedTuple):
    """A message that fits, but for its people; the `*_list` columns are JSON."""

    thread_id: UUID
    id: UUID
    received_at: datetime
    sender: str
    to_list: str
    cc_list: str | None
    bcc_list: str | None
    weight: int


class NamedThread(NamedTuple):
    """The texts by which a thread is found in a list."""

    id: UUID
    subject: str | None
    labels: Sequence[UUID]


class LabelName(NamedTuple):
    """A label and its name."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class SearchMatches:
    """Messages that may fit: columns of blocks, and messages by themselves."""

    columns: Sequence[tuple[UUID, Sequence[int]]] = ()
    messages: Sequence[UnindexedMessage] = ()


class MessageCondition(NamedTuple):
    """The conditions on one message. With `with_sent` an outbound message of any folder but spam and trash
    counts as one in `folders`."""

    words: Sequence[str]
    excluded: Sequence[str]
    has_attachment: bool | None
    since: datetime | None
    until: datetime | None
    folders: Sequence[str]
    with_sent: bool


async def begin_snapshot(db: TeamDb) -> None:
    """Fix the snapshot: from here on the transaction sees what is committed now."""
    await db.connection.execute(SNAPSHOT)


async def indexed_up_to(db: TeamDb, inbox_id: UUID) -> UUID | None:
    """Return the id up to which messages of the inbox are in blocks, except for late ones."""
    found: UUID | None = await db.value(DESCRIBED_TO, inbox_id)
    return found


async def blocks(db: TeamDb, inbox_id: UUID, lower: UUID, upper: UUID) -> list[StoredBlock]:
    """Return the blocks with messages between these ids, the newest first."""
    return await db.all(StoredBlock, BLOCKS, inbox_id, lower, upper)


async def rows(
    db: TeamDb, inbox_id: UUID, stored_blocks: Sequence[StoredBlock], numbers: Sequence[int]
) -> list[RowsOfBlock]:
    """Return these rows of each block, one behind the other by number. `place` is that of the block, counted
    from 1; a block that is gone has none."""
    octets = [block.columns // 8 for block in stored_blocks]
    assert ROWS_OF_PART == 64, "as the statement has it"
    return await db.all(RowsOfBlock, ROWS, inbox_id, [block.id for block in stored_blocks], octets, numbers)


async def messages_of(db: TeamDb, inbox_id: UUID, block_id: UUID) -> bytes:
    """Return the ids of the messages of a block and of their threads, column by column."""
    found: bytes = await db.value(MESSAGES_OF_BLOCK, inbox_id, block_id)
    return found


async def undescribed(
    db: TeamDb, inbox_id: UUID, after: UUID, words: Sequence[str], excluded: Sequence[str]
) -> list[UnindexedMessage]:
    """Return the messages that no block has, and that have these words and none of those."""
    return await db.all(UnindexedMessage, UNDESCRIBED, inbox_id, after, MOST_UNDESCRIBED, words, excluded)


async def threads(
    db: TeamDb,
    inbox_id: UUID,
    named: SearchMatches,
    classes: Sequence[int],
    now: datetime,
    thread_id: UUID,
    labels: Sequence[UUID] | None,
    limit: int,
    *,
    is_newer: bool,
) -> list[CandidateThread]:
    """Return the threads of these messages behind a place of the list, in its order, or before it, the
    nearest first."""
    counts = [len(columns) for _, columns in named.columns]
    return await db.all(
        CandidateThread,
        THREADS_NEWER if is_newer else THREADS_OLDER,
        inbox_id,
        [block for block, _ in named.columns],
        [1 + end - count for end, count in zip(accumulate(counts), counts, strict=True)],
        [one.id for one in named.messages],
        [one.thread_id for one in named.messages],
        classes,
        now,
        thread_id,
        labels,
        limit,
        counts,
        [number for _, columns in named.columns for number in columns],
    )


async def matching(
    db: TeamDb, inbox_id: UUID, messages: Sequence[UUID], message_condition: MessageCondition
) -> list[MatchingMessage]:
    """Return those of these messages that fit."""
    return await db.all(MatchingMessage, MATCHING, inbox_id, messages, *message_condition)


async def matching_of_threads(
    db: TeamDb, inbox_id: UUID, threads: Sequence[UUID], message_condition: MessageCondition
) -> list[MatchingMessage]:
    """Return those of the newest messages of these threads that fit."""
    return await db.all(
        MatchingMessage, MATCHING_OF_THREADS, inbox_id, threads, *message_condition, MOST_OF_THREAD
    )


async def sizes(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> list[SizedThread]:
    """Return these threads with their numbers of messages, in this order."""
    return await db.all(SizedThread, SIZES, inbox_id, ids)


async def names(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> list[NamedThread]:
    """Return the subjects and labels of these threads."""
    return await db.all(NamedThread, SUBJECTS, inbox_id, ids)


async def label_names(db: TeamDb, inbox_id: UUID) -> list[LabelName]:
    """Return the labels of an inbox, of which there are few."""
    return await db.all(LabelName, LABEL_NAMES, inbox_id)
