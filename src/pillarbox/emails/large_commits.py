"""The rows of a large commit by COPY, which costs PostgreSQL two thirds of what one statement does
(docs/decisions/0118). A small commit is better off with the statement: COPY takes more round trips.

The columns are those of `queries.STORE`, and what is written is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from pillarbox.emails.rows import Record, Rows
from pillarbox.kernel.postgres.database import Connection

LARGE: Final = 100
"""Emails from which on a commit is large."""

Row = tuple[Any, ...]


class Table(NamedTuple):
    """Rows of one table, as COPY takes them."""

    name: str
    columns: tuple[str, ...]
    rows: list[Row]


async def copy_in(conn: Connection, rows: Rows) -> None:
    """Write what `queries.STORE` does of these emails; the caller has a transaction."""
    for table in _tables(rows):
        await conn.copy_records_to_table(table.name, records=table.rows, columns=table.columns)


def _tables(rows: Rows) -> Iterator[Table]:
    emails = rows.emails
    yield Table("emails", EMAILS, [_email(row) for row in emails])
    yield Table("contents", CONTENTS, list(map(_content, emails, rows.html, rows.text)))
    yield Table("timeline", TIMELINE, [_entry(row) for row in emails])
    if alone := [row for row in emails if "address" in row]:
        yield Table("recipients", RECIPIENTS, [_recipient(row) for row in alone])
        yield Table("deliveries", DELIVERIES, [_delivery(row, rows) for row in alone])


EMAILS = (
    "team_id",
    "id",
    "created_at",
    "content_id",
    "message_id",
    "sender",
    "to_list",
    "cc_list",
    "bcc_list",
    "reply_to_list",
    "subject",
    "tags",
    "scheduled_at",
    "topic_id",
    "key_id",
    "domain_id",
    "domain_name",
    "last_event",
    "last_event_at",
    "template_id",
    "inbox_id",
)


def _email(row: Record) -> Row:
    email_id, at, given = row["id"], row["created_at"], row.get
    return (
        row["team_id"],
        email_id,
        at,
        email_id,
        row["message_id"],
        row["sender"],
        _json(row["to_list"]),
        _json(given("cc_list")),
        _json(given("bcc_list")),
        _json(given("reply_to_list")),
        row["subject"],
        _json(given("tags")),
        given("scheduled_at"),
        given("topic_id"),
        row["key_id"],
        row["domain_id"],
        row["domain_name"],
        row["state"],
        at,
        given("template_id"),
        given("inbox_id"),
    )


CONTENTS = ("team_id", "id", "created_at", "html", "text", "headers", "attachments", "link_places")


def _content(row: Record, html: str | None, text: str | None) -> Row:
    given = row.get
    return (
        row["team_id"],
        row["id"],
        row["created_at"],
        html,
        text,
        given("headers"),
        given("attachments", 0),
        given("link_places"),
    )


TIMELINE = ("team_id", "id", "email_id", "at", "kind")


def _entry(row: Record) -> Row:
    return row["team_id"], row["entry_id"], row["id"], row["created_at"], row["state"]


RECIPIENTS = ("team_id", "email_id", "position", "role", "address", "mailbox", "grp", "state")


def _recipient(row: Record) -> Row:
    return row["team_id"], row["id"], 0, row["role"], row["address"], row["mailbox"], 0, row["state"]


DELIVERIES = (
    "team_id",
    "email_id",
    "grp",
    "destination",
    "due_at",
    "owner",
    "leased_until",
    "attempt",
    "released",
    "first_attempt_at",
    "created_at",
)


def _delivery(row: Record, rows: Rows) -> Row:
    at, is_leased = row["created_at"], row["leased"]
    return (
        row["team_id"],
        row["id"],
        0,
        row["destination"],
        row.get("due_at") or rows.now,
        rows.owner if is_leased else None,
        rows.leased_until if is_leased else None,
        1 if is_leased else 0,
        row.get("scheduled_at") is None,
        at if is_leased else None,
        at,
    )


_encode = msgspec.json.Encoder().encode


def _json(value: Any) -> str | None:
    return None if value is None else _encode(value).decode()
