"""SQL of forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page

# The forms of a page, or the one with the id `$5`.
READ = """
    SELECT id, name, is_open, settings::text, shown, sent, confirmed, created_at, updated_at FROM (
        (SELECT * FROM forms
          WHERE team_id = $1 AND id < $2 AND deleted_at IS NULL ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM forms
          WHERE team_id = $1 AND id > $3 AND deleted_at IS NULL ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM forms WHERE team_id = $1 AND id = $5 AND deleted_at IS NULL)
    ) AS page
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """A form with its counts."""

    id: UUID
    name: str
    is_open: bool
    settings: str
    shown: int
    sent: int
    confirmed: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenForm:
    """A form as strangers see it, with what its team needs to send."""

    id: UUID
    name: str
    settings: str
    team_name: str
    team_number: int
    daily_quota: int | None
    monthly_quota: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedThing:
    """A topic or a segment with its name."""

    id: UUID
    name: str


async def page(db: TeamDb, page: Page) -> list[FormRow]:
    return await db.all(FormRow, READ, *page.args, None)


async def one(db: TeamDb, form_id: UUID) -> FormRow | None:
    return await db.one(FormRow, READ, *NO_PAGE, form_id)


async def lock(db: TeamDb, form_id: UUID) -> FormRow | None:
    """Return a form, which nobody else changes until the transaction ends."""
    return await db.one(
        FormRow,
        """
        SELECT id, name, is_open, settings::text, shown, sent, confirmed, created_at, updated_at
          FROM forms
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
           FOR NO KEY UPDATE
        """,
        form_id,
    )


async def count(db: TeamDb) -> int:
    """Return how many forms the team has; none is added until the transaction ends."""
    await db.run(
        """
        SELECT pg_advisory_xact_lock(hashtextextended('forms of ' || team_id, 0))
          FROM (SELECT $1::uuid AS team_id) AS held
        """
    )
    found: int = await db.value("SELECT count(*) FROM forms WHERE team_id = $1 AND deleted_at IS NULL")
    return found


async def insert(
    db: TeamDb, form_id: UUID, name: str, settings: str, now: datetime, *, is_open: bool
) -> None:
    await db.run(
        """
        INSERT INTO forms (team_id, id, name, is_open, settings, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5::text::json, $6, $6)
        """,
        form_id,
        name,
        is_open,
        settings,
        now,
    )


async def change(
    db: TeamDb, form_id: UUID, name: str, settings: str, now: datetime, *, is_open: bool
) -> None:
    await db.run(
        """
        UPDATE forms SET name = $3, is_open = $4, settings = $5::text::json, updated_at = $6
         WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL
        """,
        form_id,
        name,
        is_open,
        settings,
        now,
    )


async def delete(db: TeamDb, form_id: UUID, now: datetime) -> bool:
    """Delete a form; what people consented to stays. False where there is none."""
    status = await db.run(
        "UPDATE forms SET deleted_at = $3 WHERE team_id = $1 AND id = $2 AND deleted_at IS NULL", form_id, now
    )
    return status == 1


async def add_shown(db: TeamDb, form_id: UUID, count: int) -> None:
    """Count views of a form's page."""
    await db.run("UPDATE forms SET shown = shown + $3 WHERE team_id = $1 AND id = $2", form_id, count)


async def add_sent(db: TeamDb, form_id: UUID) -> bool:
    """Count a mail of a form, which nobody else changes until the transaction ends; False where the form was
    closed or deleted meanwhile."""
    status = await db.run(
        """
        UPDATE forms SET sent = sent + 1
         WHERE team_id = $1 AND id = $2 AND is_open AND deleted_at IS NULL
        """,
        form_id,
    )
    return status == 1


async def hold(db: TeamDb, form_id: UUID) -> None:
    """Let nobody else change the row of a form until the transaction ends, also of one that is deleted.

    Who changes a form and its sign-ups holds the form first."""
    await db.value("SELECT true FROM forms WHERE team_id = $1 AND id = $2 FOR NO KEY UPDATE", form_id)


async def add_confirmed(db: TeamDb, form_id: UUID) -> None:
    """Count a confirmed sign-up of a form."""
    await db.run("UPDATE forms SET confirmed = confirmed + 1 WHERE team_id = $1 AND id = $2", form_id)


async def find_open(db: TeamDb, form_id: UUID) -> OpenForm | None:
    """Return a form that takes sign-ups, of a team that may send; None of another one."""
    return await db.one(
        OpenForm,
        """
        SELECT f.id, f.name, f.settings::text, t.name AS team_name, t.number AS team_number, t.daily_quota,
               t.monthly_quota
          FROM forms f
          JOIN teams t ON t.id = f.team_id AND t.status = 'active'
         WHERE f.team_id = $1 AND f.id = $2 AND f.deleted_at IS NULL AND f.is_open
        """,
        form_id,
    )


async def find_any(db: TeamDb, form_id: UUID) -> OpenForm | None:
    """Return a form of a team that may send, whether it takes sign-ups or not, or is deleted."""
    return await db.one(
        OpenForm,
        """
        SELECT f.id, f.name, f.settings::text, t.name AS team_name, t.number AS team_number, t.daily_quota,
               t.monthly_quota
          FROM forms f
          JOIN teams t ON t.id = f.team_id AND t.status = 'active'
         WHERE f.team_id = $1 AND f.id = $2
        """,
        form_id,
    )


async def topics(db: TeamDb, topic_ids: Sequence[UUID]) -> list[NamedThing]:
    """Return those of these topics that the team has."""
    return await db.all(
        NamedThing,
        """
        SELECT id, name FROM topics
         WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL ORDER BY id
        """,
        topic_ids,
    )


async def is_kept_by_hand(db: TeamDb, segment_id: UUID) -> bool | None:
    """Return whether contacts are added to this segment, and no conditions say who is in it; None where the
    team has no such segment."""
    found: bool | None = await db.value(
        "SELECT conditions IS NULL FROM segments WHERE team_id = $1 AND id = $2", segment_id
    )
    return found
