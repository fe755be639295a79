"""Making, changing and deleting the labels of an inbox (inboxes.md section 4); nothing is told to webhooks.

Each call takes the lock of the inbox, so their number is exact, and no thread gets a label that is just being
deleted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import asyncpg
from msgspec import UNSET

from pillarbox.inboxes.labels import queries
from pillarbox.inboxes.labels.colors import any_color, color
from pillarbox.inboxes.labels.queries import Label
from pillarbox.inboxes.labels.wire import LONGEST_NAME, LabelChange, NewLabel
from pillarbox.inboxes.locking import lock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, InvalidField, NotFound
from pillarbox.kernel.work import job_queries

MOST: Final = 100
"""Labels of an inbox."""


class NameTaken(InvalidField):
    def __init__(self) -> None:
        super().__init__("name", "There is a label of this name already.")


class TooManyLabels(Invalid):
    def __init__(self) -> None:
        super().__init__(f"An inbox may have at most {MOST} labels.")


@dataclass(frozen=True, slots=True)
class Labels:
    """The changes, and what they need. `random` gives numbers from 0 up to, not including, 1."""

    ids: Ids
    random: Callable[[], float]

    async def create(self, db: TeamDb, inbox_id: UUID, new_label: NewLabel) -> UUID:
        """Create a label that no thread has; return its id."""
        name = _name(new_label.name)
        shown = any_color(self.random()) if new_label.color is None else color(new_label.color)
        await _hold(db, inbox_id)
        if await queries.count(db, inbox_id) >= MOST:
            raise TooManyLabels
        stamp = self.ids.stamp()
        try:
            await queries.insert(db, inbox_id, Label(stamp.id, name, shown, stamp.at), name_key(name))
        except asyncpg.UniqueViolationError:
            raise NameTaken from None
        return stamp.id

    async def change(self, db: TeamDb, inbox_id: UUID, label_id: UUID, change: LabelChange) -> None:
        """Change its name or colour, wherever it is shown; 404 for a label that the inbox does not have."""
        name = None if change.name is UNSET else _name(change.name)
        key = None if name is None else name_key(name)
        shown = None if change.color is UNSET else color(change.color)
        await _hold(db, inbox_id)
        try:
            found = await queries.change(db, inbox_id, label_id, name, key, shown)
        except asyncpg.UniqueViolationError:
            raise NameTaken from None
        if not found:
            raise NotFound("Label")

    async def delete(self, db: TeamDb, inbox_id: UUID, label_id: UUID) -> None:
        """Delete the label: from the commit on no thread has it. 404 for a label that the inbox does not
        have."""
        await _hold(db, inbox_id)
        if not await queries.delete(db, inbox_id, label_id):
            raise NotFound("Label")
        await job_queries.add(db, self.ids.new(), queries.JOB_REMOVE, label_id, self.ids.now())


def name_key(name: str) -> str:
    """Return the name as it is compared."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _name(text: str) -> str:
    name = text.strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidField("name", f"Use 1 to {LONGEST_NAME} characters.")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise InvalidField("name", "It may not contain control characters.")
    return name


async def _hold(db: TeamDb, inbox_id: UUID) -> None:
    if not await lock(db.connection, [(db.team_id, inbox_id)]):
        raise NotFound("Inbox")
