"""How long it takes to search an inbox of a million messages: two words and a phrase, rare ones, frequent
ones, and frequent ones that no message has together; and how much it takes to describe messages for it.

Messages and threads are written by COPY, their blocks by the product. Questions go one after the other to a
server over HTTP. On a busy machine the processor time says more than how long it took.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from bench.kit.results import Report, at_most
from bench.kit.server import KEY, Server, serving
from pillarbox.inboxes.search.blocks import MessageBlocks
from pillarbox.inboxes.search.searched_text import SearchedMessage, searched_text
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import EPOCH, MICROSECOND, Ids, uuid7
from pillarbox.kernel.postgres.database import TeamDb, open_pool

MANY = 1_000_000
MANY_SHORT = 30_000
ASKED = 200
ASKED_SHORT = 10
WARM = 10
"""Questions of each kind before those that count: a server that has just started has read nothing yet."""

AT_ONCE = 20_000
DAYS = 60
SEED = 1

VOCABULARY = 40_000
PIECES = 20_000
"""Pieces of fifty words of which bodies are made."""

LIMIT_MS = 100.0

THREAD_COLUMNS = (
    *("team_id", "id", "inbox_id", "subject", "folder", "messages", "inbound", "unread", "has_attachment"),
    *("last_message_id", "received_at", "created_at", "purge_at"),
)
MESSAGE_COLUMNS = (
    *("team_id", "inbox_id", "id", "thread_id", "direction", "received_at", "sender", "sender_key"),
    *("to_list", "subject", "message_id", "attachments", "is_read", "is_automatic", "searched"),
)

MAKE_INBOX = """
    INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
    VALUES ($1::uuid, $1::uuid, 'bench', $1::text || '@harbor.example', $1::uuid, now(), now())
"""

SIZE = """
    SELECT (SELECT sum(octet_length(bits)) FROM inbox_search_rows)
           / (SELECT count(*) FROM inbox_messages)::float
           + (SELECT sum(octet_length(messages)) FROM inbox_search_blocks)
           / (SELECT count(*) FROM inbox_messages)::float
"""

TABLES = ("inboxes", "inbox_threads", "inbox_messages", "inbox_search_blocks", "inbox_search_rows")


def questions(number: int, since: datetime, many: int) -> dict[str, dict[str, Any]]:
    """One question of each kind."""
    old = since + timedelta(seconds=DAYS * 86400 / many * (number % many))
    return {
        "rare": {"query": f'order{number} number{number} "number{number} confirmed"'},
        "frequent": {"query": 'often usual "quite often"'},
        "frequent, never together": {"query": 'left right "often usual"'},
        "frequent, never one after the other": {"query": 'often usual "often quite"'},
        "one in a hundred": {"query": f'seldom{number % 10} often "quite often"'},
        "one in a thousand": {"query": f'hardly{number % 10} often "quite often"'},
        "none": {"query": f'nothing{number} often "quite often"'},
        "frequent, in the spam": {"query": 'often usual "quite often"', "folder": "spam"},
        "frequent, on an old day": {
            "query": 'often usual "quite often"',
            "start_date": old.date().isoformat(),
            "end_date": old.date().isoformat(),
        },
        "without a word that all have": {"query": "-harbor"},
        "from: one in a thousand": {"from": f"sender{number % 1000:03}@"},
        "from: nobody": {"from": f"nobody{number}"},
        "an attachment": {"has_attachment": "true", "query": "often usual"},
    }


def listed(number: int) -> dict[str, dict[str, Any]]:
    """Lists of threads by a piece of the subject, one of each kind."""
    return {
        "list: one subject": {"query": f"order{number} "},
        "list: half of the subjects": {"query": "efun"},
        "list: no subject": {"query": f"nothing{number}"},
    }


def measure(report: Report) -> None:
    many, asked = (MANY_SHORT, ASKED_SHORT) if report.short else (MANY, ASKED)
    since = datetime.now(UTC) - timedelta(days=DAYS)
    with serving(report, report.folder / "search", roles="api", processes=1) as server:
        team_id = UUID(str(server.sql("SELECT id FROM teams")[0][0]))
        server.sql(MAKE_INBOX, str(team_id))
        asyncio.run(_fill(server, team_id, many, since))
        own, database = asyncio.run(_describe(server, team_id))
        report.result("described, processor time of Python", own / many * 1e6, "µs/message")
        report.result("described, wall time with the database", database / many * 1e6, "µs/message")
        for table in TABLES:
            server.sql(f"VACUUM (ANALYZE) {table}")
        report.result("blocks", server.number(SIZE), "octets/message")
        dice = random.Random(SEED)
        numbers = [dice.randrange(many) for _ in range(WARM + asked)]
        for kind in questions(0, since, many):
            found = [
                _ask(server, team_id, "threads/search", questions(n, since, many)[kind]) for n in numbers
            ]
            _report(report, kind, found)
        for kind in listed(0):
            _report(report, kind, [_ask(server, team_id, "threads", listed(n)[kind]) for n in numbers])


def _report(report: Report, kind: str, found: Sequence[tuple[float, int]]) -> None:
    found = found[WARM:]
    times = sorted(seconds * 1000 for seconds, _ in found)
    p99 = times[max(0, round(len(times) * 0.99) - 1)]
    shown = statistics.mean(count for _, count in found)
    note = f"p50 {statistics.median(times):.1f} ms, {shown:.1f} threads"
    report.result(f"{kind}, p99", p99, "ms", at_most(LIMIT_MS), note=note)


def _ask(server: Server, inbox_id: UUID, path: str, query: dict[str, Any]) -> tuple[float, int]:
    conn = server.connection()
    try:
        began = time.perf_counter()
        where = f"/inboxes/{inbox_id}/{path}?{urlencode(query)}"
        conn.request("GET", where, headers={"Authorization": f"Bearer {KEY}"})
        answer = conn.getresponse()
        text = answer.read()
        took = time.perf_counter() - began
    finally:
        conn.close()
    if answer.status != 200:
        raise RuntimeError(f"{where}: {answer.status} {text[:200]!r}")
    return took, text.count(b'"matched_email_id"') + (b'"matched_email_id"' not in text) * text.count(
        b'"bcc"'
    )


async def _fill(server: Server, team_id: UUID, many: int, since: datetime) -> None:
    conn = await server.connect()
    try:
        made = _messages(team_id, many, since)
        while some := [row for row, _ in zip(made, range(AT_ONCE), strict=False)]:
            threads = [thread for thread, _ in some]
            await conn.copy_records_to_table("inbox_threads", records=threads, columns=THREAD_COLUMNS)
            messages = [message for _, message in some]
            await conn.copy_records_to_table("inbox_messages", records=messages, columns=MESSAGE_COLUMNS)
    finally:
        await conn.close()


def _messages(team_id: UUID, many: int, since: datetime) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Threads with their one message each."""
    dice = random.Random(SEED)
    letters = "etaoinshrdlucmfw"
    vocabulary = ["".join(dice.choices(letters, k=dice.randint(2, 10))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (place + 5) for place in range(VOCABULARY)))
    pieces = [" ".join(dice.choices(vocabulary, cum_weights=weights, k=50)) for _ in range(PIECES)]
    step = timedelta(days=DAYS) / many
    for number in range(many):
        at = since + step * number
        message_id = uuid7((at - EPOCH) // MICROSECOND, number.to_bytes(8))
        subject = f"{'Refund' if number % 2 else 'Invoice'} for order{number} "
        body = " ".join(
            (
                f"harbor number{number} confirmed",
                ("left", "right", "up")[number % 3],
                "quite often as usual" if number % 3 == 0 else "often as quite usual",
                f"seldom{number % 10}" if number % 100 < 10 else "",
                f"hardly{number % 10}" if number % 1000 < 10 else "",
                *dice.choices(pieces, k=dice.randint(1, 6)),
            )
        )
        sender = f"Sender {number % 1000:03} <sender{number % 1000:03}@customer.example>"
        searched = searched_text(
            SearchedMessage(
                subject=subject, sender=sender, recipients=("help@harbor.example",), filenames=(), text=body
            )
        )
        folder = "inbox" if number % 10 else "archive"
        yield (
            (
                *(team_id, message_id, team_id, subject, folder, 1, 1, 0, number % 4 == 0),
                *(message_id, at, at, None),
            ),
            (
                *(team_id, team_id, message_id, message_id, "inbound", at, sender, sender),
                *('["help@harbor.example"]', subject, f"<{uuid4()}@customer.example>", int(number % 4 == 0)),
                *(True, False, searched),
            ),
        )


async def _describe(server: Server, team_id: UUID) -> tuple[float, float]:
    """Let blocks describe all; returns the processor time of this process and the time it took."""
    pool = await open_pool(server.database_url, limit=2)
    try:
        own, began = time.process_time(), time.perf_counter()
        await MessageBlocks(pool, Ids(SystemClock())).describe(TeamDb(pool, team_id), team_id)
        return time.process_time() - own, time.perf_counter() - began
    finally:
        await pool.close()
