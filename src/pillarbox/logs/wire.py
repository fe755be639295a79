"""Shapes of the log on the wire (logs.md section 1); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Raw, Struct

from pillarbox.kernel.wire.instants import DatabaseTime, database_style
from pillarbox.logs.queries import ListedLog, StoredLog

NULL = Raw(b"null")

Body = Annotated[
    Raw,
    Meta(extra_json_schema={"description": "A body as JSON, without secrets; null where there was none."}),
]


class LogsListItem(Struct):
    id: UUID
    created_at: DatabaseTime
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None


class Log(Struct):
    object: Literal["log"]
    id: UUID
    created_at: DatabaseTime
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None
    request_body: Body
    response_body: Body


def listed(row: ListedLog) -> LogsListItem:
    return LogsListItem(
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
