"""Decides which calls a key for one inbox may make (api-keys.md 8): the one place for all routes.

A route says by `inbox_rights` which rights let such a key in. The inbox in its path must be that of the key;
another one is as unknown as that of another team.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.security.authentication import Caller, InboxKeyMayNot
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.kernel.wire.problems import InvalidParameter, NotAUuid, NotFound
from pillarbox.kernel.wire.uuids import well_formed

PARAMETER: Final = "inbox"
"""The parameter of paths that names an inbox, by its id or its address (inboxes.md section 1)."""

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


def refuse_outside_inbox(caller: Caller, route: Route, values: Sequence[str]) -> None:
    """Raise where a key for one inbox may not call this route, with these values of its parameters."""
    if route.inbox_rights is None or not route.inbox_rights <= caller.inbox_rights:
        raise InboxKeyMayNot
    for name, value in zip(route.parameters, values, strict=True):
        if name == PARAMETER and named(value) not in (caller.inbox_id, caller.inbox_address):
            raise NotFound("Inbox")
