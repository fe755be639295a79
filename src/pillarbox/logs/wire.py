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


class LogsListItem(Struct, kw_only=True):
    id: UUID
    created_at: DatabaseTime
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None


class Log(Struct, kw_only=True):
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
        id=row.id,
        created_at=database_style(row.created_at),
        endpoint=row.endpoint,
        method=row.method,
        response_status=row.response_status,
        user_agent=row.user_agent,
    )


def log(row: StoredLog, request_body: str | None) -> Log:
    return Log(
        object="log",
        id=row.id,
        created_at=database_style(row.created_at),
        endpoint=row.endpoint,
        method=row.method,
        response_status=row.response_status,
        user_agent=row.user_agent,
        request_body=_raw(request_body),
        response_body=_raw(row.response_body),
    )


def _raw(text: str | None) -> Raw:
    return NULL if text is None else Raw(text.encode())
