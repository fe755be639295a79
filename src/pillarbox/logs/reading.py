"""A row of the log as it is shown: with the html and text that are stored with its emails."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.logs import queries
from pillarbox.logs.entries import BODIES
from pillarbox.logs.queries import StoredLog

REMOVED: Final = "[removed]"
"""Stands for what went with its email."""

NEAR: Final = 500
"""So many requests before an id are looked through for the one that made it."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


async def request_body(db: TeamDb, row: StoredLog) -> str | None:
    """Return the body of the request, whole."""
    if not row.refers or row.request_body is None or row.response_body is None:
        return row.request_body
    body, answer = _decode(row.request_body), _decode(row.response_body)
    ids = [UUID(made["id"]) for made in answer.get("data", [answer])]
    known = await queries.contents(db, ids)
    for item in body if isinstance(body, list) else [body]:
        _restore(item, ids, known)
    return _encode(body).decode()


def _restore(item: dict[str, Any], ids: list[UUID], known: dict[UUID, queries.StoredContent]) -> None:
    for name in BODIES:
        index = item.get(name)
        if isinstance(index, int):
            content = known.get(ids[index])
            text = getattr(content, name, None)
            item[name] = REMOVED if text is None else text


async def digest_of_logs(db: TeamDb, _: UUID | None) -> str:
    """Return a text that is another one when a request was logged."""
    return str(await queries.newest_id(db))


async def request_of(db: TeamDb, made_id: UUID, oldest: UUID) -> queries.ListedLog | None:
    """Return the request that made the thing with this id; None where none of those shortly before it did."""
    return await queries.request_naming(db, made_id, oldest, str(made_id), NEAR)
