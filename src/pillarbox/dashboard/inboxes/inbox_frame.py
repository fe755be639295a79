"""The part of a screen beside a list of an inbox: the other inboxes, the folders and the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.frame.visit import Visit

HERE: Final = "/dashboard/inboxes"
ONE: Final = f"{HERE}/{{inbox_id}}"
FOLDERS: Final = ("inbox", "archive", "sent", "spam", "trash")
SHOWN_INBOXES: Final = 30
"""Inboxes that are listed beside a list; the screen of inboxes has all of them."""


class InboxFrame(NamedTuple):
    """An inbox with its labels, and, beside lists, the newest inboxes of the team. `here` is the path of its
    screen."""

    inbox: Mapping[str, Any]
    inboxes: Sequence[Mapping[str, Any]]
    labels: Sequence[Mapping[str, Any]]
    here: str

    def label(self, label_id: str | None) -> Mapping[str, Any] | None:
        """Return the label with this id; None where the inbox has none such."""
        return next((label for label in self.labels if label["id"] == label_id), None)


async def inbox_frame(visit: Visit, *, beside_list: bool = False) -> InboxFrame:
    """Return the inbox that the path names; `beside_list` with the other inboxes."""
    inbox = await visit.get(inbox_path(visit), shown=False)
    inboxes: Sequence[Mapping[str, Any]] = ()
    if beside_list:
        inboxes = (await visit.get("/inboxes", shown=False, limit=SHOWN_INBOXES))["data"]
    labels = (await visit.get(f"{inbox_path(visit)}/labels", shown=False))["data"]
    return InboxFrame(inbox, inboxes, labels, f"{HERE}/{inbox['id']}")


def inbox_path(visit: Visit) -> str:
    """Return the path of the API for the inbox that the path of the screen names."""
    return f"/inboxes/{visit.request.param('inbox_id')}"


def thread_path(visit: Visit) -> str:
    """Return the path of the API for the thread that the path of the screen names."""
    return f"{inbox_path(visit)}/threads/{visit.request.param('thread_id')}"
