"""Which inbox a path names: `{inbox}` is its id or its address (inboxes.md section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from pillarbox.directory import inboxes as directory
from pillarbox.inboxes.inbox import queries
from pillarbox.kernel.http.request import Request
from pillarbox.kernel.http.routing import Resolve
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.kernel.wire.problems import InvalidParameter, NotAUuid, NotFound, Problem
from pillarbox.kernel.wire.uuids import well_formed

PARAMETER: Final = "inbox"
"""Its name in the paths of routes. It does not end in `_id`, because an address is accepted too."""

SHOWN: Final = "inbox_id"
"""Its name in answers, which is the contract's."""


def named(text: str) -> UUID | str:
    """Return the id, or the address in the form in which addresses are compared; 422 for a text that is
    neither."""
    if "@" in text:
        try:
            return email_address(text).address
        except NotAnAddress as wrong:
            raise InvalidParameter(SHOWN, wrong.reason) from None
    if not well_formed(text):
        raise NotAUuid(SHOWN)
    return UUID(text)


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
