"""Shapes of what was searched for on the wire (inboxes.md 5.2); field order is the contract's."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import Struct
from msgspec.structs import asdict

from pillarbox.inboxes.search.pages import ThreadSearchPage
from pillarbox.inboxes.threads import wire


class FoundThread(wire.ThreadItem, kw_only=True):
    """A thread as lists show it, with the message that was found; null where none was looked for."""

    matched_email_id: UUID | None


class FoundThreads(Struct, kw_only=True):
    object: Literal["list"] = "list"
    has_more: bool
    data: list[FoundThread]


def found(page: ThreadSearchPage) -> FoundThreads:
    return FoundThreads(
        has_more=page.page.has_more,
        data=[
            FoundThread(**asdict(wire.item(row)), matched_email_id=page.messages.get(row.id))
            for row in page.page.threads
        ],
    )
