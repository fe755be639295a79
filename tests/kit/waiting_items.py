"""Items of which only their place in the schedule matters."""

from __future__ import annotations

from uuid import UUID

from pillarbox.delivery.items import Item, LoadedEmail


def waiting_item(destination: str, team: int = 1, *, is_copy: bool = False) -> Item:
    """Return an item of this team for this destination; nothing else of it is there."""
    made = Item.__new__(Item)
    made.team_id, made.destination, made.running, made.site = UUID(int=team), destination, False, ""
    made.abort_if_silent = None
    made.email = LoadedEmail.__new__(LoadedEmail)
    made.email.contact_id = UUID(int=2) if is_copy else None
    return made
