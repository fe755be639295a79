"""Shapes of the endpoints of personal data (personal-data.md); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Raw, Struct

from pillarbox.kernel.http.schemas import AnObject, shown_as
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.kernel.wire.problems import Problem
from pillarbox.personal_data.queries import ErasureRow

ErasureStatus = Annotated[str, shown_as(Literal["in_progress", "waiting", "completed"])]


Section = Annotated[Raw, shown_as(list[AnObject])]
"""The records of one kind; their fields depend on the kind."""


class PersonalDataFile(Struct, kw_only=True):
    """All that the team holds about an address, by kind; a list is empty where there is nothing of the
    kind."""

    object: Literal["personal_data"]
    email: str
    created_at: IsoTime
    contacts: Section
    form_sign_ups: Section
    events: Section
    automation_runs: Section
    inbox_messages: Section
    received_emails: Section
    emails: Section
    requests: Section
    suppressions: Section
    acts: Section


class ErasureInProgress(Problem):
    """An erasure that is not done cannot be taken back."""

    status, name = 409, "erasure_in_progress"

    def __init__(self) -> None:
        super().__init__("The erasure is not done yet. Wait until its status is completed.")


class ErasureItem(Struct, kw_only=True):
    id: UUID
    status: ErasureStatus
    rows: int
    waiting: int
    created_at: IsoTime
    completed_at: IsoTime | None


class FullErasure(ErasureItem, kw_only=True, tag_field="object", tag="erasure"):
    pass


class ErasureRef(Struct, kw_only=True):
    object: Literal["erasure"]
    id: UUID


class DeletedErasure(Struct, kw_only=True):
    object: Literal["erasure"]
    id: UUID
    deleted: Literal[True]


def item(row: ErasureRow) -> ErasureItem:
    return ErasureItem(
        id=row.id,
        status=row.status,
        rows=row.rows,
        waiting=row.waiting,
        created_at=iso_style(row.created_at),
        completed_at=None if row.completed_at is None else iso_style(row.completed_at),
    )


def full(row: ErasureRow) -> FullErasure:
    shown = item(row)
    return FullErasure(
        id=shown.id,
        status=shown.status,
        rows=shown.rows,
        waiting=shown.waiting,
        created_at=shown.created_at,
        completed_at=shown.completed_at,
    )
