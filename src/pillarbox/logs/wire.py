"""Shapes of the log on the wire (logs.md section 1); field order is the contract's."""

from __future__ import annotations

from uuid import UUID

from msgspec import Raw, Struct

from pillarbox.kernel.instants import database_style
from pillarbox.logs.queries import ListedLog, StoredLog

NULL = Raw(b"null")


class ListItem(Struct):
    id: UUID
    created_at: str
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None


class Log(Struct):
    object: str
    id: UUID
    created_at: str
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None
    request_body: Raw
    response_body: Raw


def listed(row: ListedLog) -> ListItem:
    return ListItem(
        row.id, database_style(row.created_at), row.endpoint, row.method, row.response_status, row.user_agent
    )


def log(row: StoredLog, request_body: str | None) -> Log:
    return Log(
        "log",
        row.id,
        database_style(row.created_at),
        row.endpoint,
        row.method,
        row.response_status,
        row.user_agent,
        _raw(request_body),
        _raw(row.response_body),
    )


def _raw(text: str | None) -> Raw:
    return NULL if text is None else Raw(text.encode())
