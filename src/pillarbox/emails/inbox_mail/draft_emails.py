"""Emails that are named by the draft that they were made of (contract decision 31)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True)
class DraftEmails:
    """`find` answers which email a draft has become; the slice that keeps drafts provides it."""

    find: Callable[[TeamDb, UUID], Awaitable[UUID | None]]
