"""Which inbox a path names: `{inbox}` is its id or its address (inboxes.md section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from pillarbox.directory import inboxes as directory
from pillarbox.inboxes.inbox import queries
from pillarbox.kernel.http.inbox_keys import PARAMETER as PARAMETER
from pillarbox.kernel.http.inbox_keys import SHOWN as SHOWN
from pillarbox.kernel.http.inbox_keys import named as named
from pillarbox.kernel.http.request import Request
from pillarbox.kernel.http.routing import Resolve
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound, Problem


async def find(db: TeamDb, text: str) -> UUID:
    """Return the id of the inbox that the text names; 404 where the team has none such.

    It may be gone a moment later: whoever changes something locks its row and looks once more.
    """
    name = named(text)
    if isinstance(name, str):
        found = await directory.id_of(db, name)
    else:
        found = name if await queries.exists(db, name) else None
    if found is None:
        raise NotFound("Inbox")
    return found


async def inbox_of(request: Request, db: TeamDb) -> UUID:
    """Return the id of the inbox that the path of the request names; 404 where the team has none such."""
    return await find(db, request.param(PARAMETER))


async def _id_of(db: TeamDb, text: str) -> str | None:
    """Return the id for the scope of an Idempotency-Key. An id stands for itself, also where its inbox is
    gone."""
    try:
        name = named(text)
    except Problem:
        return None
    found = await directory.id_of(db, name) if isinstance(name, str) else name
    return None if found is None else str(found)


BY_ADDRESS: Final[Mapping[str, Resolve]] = {PARAMETER: _id_of}
"""For routes on which an Idempotency-Key counts: an inbox has one scope, by its id and by its address."""
