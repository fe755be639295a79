"""SQL of the plans of broadcasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.broadcasts.plans.plan import BroadcastPlan, PlanVariant, Stage, decode, encode
from pillarbox.kernel.postgres.database import Connection, TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """The progress of a plan. `winner` is the variant that all who are left get."""

    plan: str
    stage: str | None
    stage_until: datetime | None
    next_at: datetime | None
    winner: int | None


async def get(db: TeamDb, broadcast_id: UUID) -> BroadcastPlan | None:
    """Return the plan of a broadcast with its variants, which one statement reads: somebody may put another
    in its place meanwhile. None where there is none."""
    rows = await db.source.fetch(
        """
        SELECT p.plan::text AS plan, v.number, v.subject, v.preview_text, v.html, v.text
          FROM broadcast_plans p
          LEFT JOIN broadcast_variants v ON v.team_id = p.team_id AND v.broadcast_id = p.broadcast_id
         WHERE p.team_id = $1 AND p.broadcast_id = $2
         ORDER BY v.number
        """,
        db.team_id,
        broadcast_id,
    )
    if not rows:
        return None
    variants = [
        PlanVariant(
            number=row["number"],
            subject=row["subject"],
            preview_text=row["preview_text"],
            html=row["html"],
            text=row["text"],
        )
        for row in rows
        if row["number"] is not None
    ]
    return BroadcastPlan(settings=decode(rows[0]["plan"]), variants=variants)


async def progress(db: TeamDb, broadcast_id: UUID) -> PlanProgress | None:
    """Return how far the plan of a broadcast is."""
    return await db.one(
        PlanProgress,
        """
        SELECT plan::text AS plan, stage, stage_until, next_at, winner
          FROM broadcast_plans
         WHERE team_id = $1 AND broadcast_id = $2
        """,
        broadcast_id,
    )


async def put(db: TeamDb, broadcast_id: UUID, plan: BroadcastPlan) -> None:
    """Store the plan of a broadcast that is held, in the place of what was there."""
    await remove(db, broadcast_id)
    await db.run(
        "INSERT INTO broadcast_plans (team_id, broadcast_id, plan) VALUES ($1, $2, $3::text::json)",
        broadcast_id,
        encode(plan.settings).decode(),
    )
    for variant in plan.variants:
        await _insert(db, broadcast_id, variant)


async def _insert(db: TeamDb, broadcast_id: UUID, variant: PlanVariant) -> None:
    await db.run(
        """
        INSERT INTO broadcast_variants (team_id, broadcast_id, number, subject, preview_text, html, text)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        broadcast_id,
        variant.number,
        variant.subject,
        variant.preview_text,
        variant.html,
        variant.text,
    )


async def remove(db: TeamDb, broadcast_id: UUID) -> None:
    """Remove the plan of a broadcast, if it has one."""
    await db.run("DELETE FROM broadcast_variants WHERE team_id = $1 AND broadcast_id = $2", broadcast_id)
    await db.run("DELETE FROM broadcast_plans WHERE team_id = $1 AND broadcast_id = $2", broadcast_id)


# The start ----------------------------------------------------------------------------------------

# A share of the recipients in an order that nobody chose: the first ones are the canary, and each variant
# of a test gets as many as the others, or one less. $3: how many in all; $4: the canary; $5: the test;
# $6: how many variants; $7: the seed.
SAMPLE: Final = """
    UPDATE broadcast_recipients r
       SET wave = CASE WHEN k.place <= $4 THEN 1 ELSE 2 END,
           variant = CASE WHEN k.place <= $5 THEN 1 + (k.place - 1) % $6 END
      FROM (SELECT contact_id,
                   row_number() OVER (ORDER BY md5(contact_id::text || $7::text), contact_id) AS place
              FROM broadcast_recipients
             WHERE team_id = $1 AND broadcast_id = $2) AS k
     WHERE r.team_id = $1 AND r.broadcast_id = $2 AND r.contact_id = k.contact_id AND k.place <= $3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSizes:
    """The numbers of recipients in the canary and in the test, and how many variants there are."""

    canary: int
    test: int
    variants: int


async def sample(db: TeamDb, broadcast_id: UUID, sizes: SampleSizes, seed: UUID, seconds: float) -> None:
    """Choose the recipients of the canary and of the test, and a variant for each of the latter."""
    await db.connection.execute(
        SAMPLE,
        db.team_id,
        broadcast_id,
        max(sizes.canary, sizes.test),
        sizes.canary,
        sizes.test,
        max(sizes.variants, 1),
        str(seed),
        timeout=seconds,
    )


async def begin(db: TeamDb, broadcast_id: UUID, stage: Stage) -> None:
    """Begin the first stage."""
    await db.run(
        """
        UPDATE broadcast_plans SET stage = $3, stage_until = NULL, next_at = NULL, winner = NULL
         WHERE team_id = $1 AND broadcast_id = $2
        """,
        broadcast_id,
        stage,
    )


async def give_content(db: TeamDb, broadcast_id: UUID, number: int, content_id: UUID) -> None:
    """Note the content that the copies of a variant share."""
    await db.run(
        """
        UPDATE broadcast_variants SET content_id = $4
         WHERE team_id = $1 AND broadcast_id = $2 AND number = $3
        """,
        broadcast_id,
        number,
        content_id,
    )


# Stages -------------------------------------------------------------------------------------------


async def next_waiting_of(db: TeamDb, broadcast_id: UUID, wave: int) -> UUID | None:
    """Return the first contact of these waves whose copy is neither made nor skipped."""
    found: UUID | None = await db.value(
        """
        SELECT contact_id
          FROM broadcast_recipients
         WHERE team_id = $1 AND broadcast_id = $2 AND wave IS NOT NULL AND wave <= $3 AND email_id IS NULL
           AND skipped_for IS NULL
         ORDER BY wave, contact_id
         LIMIT 1
        """,
        broadcast_id,
        wave,
    )
    return found


async def move(db: TeamDb, broadcast_id: UUID, stages: tuple[Stage, Stage], until: datetime | None) -> bool:
    """Move a broadcast that is being sent from one stage to another, which lasts until an instant; False
    where it is in another stage, paused or over."""
    return bool(
        await db.run(
            """
            UPDATE broadcast_plans p
               SET stage = $4, stage_until = $5
             WHERE p.team_id = $1 AND p.broadcast_id = $2 AND p.stage = $3
               AND EXISTS (SELECT FROM broadcasts b
                            WHERE b.team_id = $1 AND b.id = $2 AND b.status = 'queued'
                              AND b.paused_at IS NULL)
            """,
            broadcast_id,
            *stages,
            until,
        )
    )


async def stop_canary(db: TeamDb, broadcast_id: UUID, stage: Stage, reason: str, now: datetime) -> bool:
    """Pause a broadcast whose canary went wrong. Who resumes it sends the others theirs. False where it is in
    another stage, paused or over."""
    return bool(
        await db.run(
            """
            WITH moved AS (
                UPDATE broadcast_plans
                   SET stage = $3, stage_until = NULL
                 WHERE team_id = $1 AND broadcast_id = $2 AND stage = 'checking'
                   AND EXISTS (SELECT FROM broadcasts
                                WHERE team_id = $1 AND id = $2 AND status = 'queued' AND paused_at IS NULL)
                RETURNING broadcast_id
            )
            UPDATE broadcasts
               SET paused_at = $5, paused_for = $4
             WHERE team_id = $1 AND id IN (SELECT broadcast_id FROM moved) AND status = 'queued'
               AND paused_at IS NULL
            """,
            broadcast_id,
            stage,
            reason,
            now,
        )
    )


async def choose_winner(db: TeamDb, broadcast_id: UUID, number: int) -> bool:
    """Choose the variant that all others get: once. False where one is chosen, or there is no test that runs
    or no such variant."""
    return bool(
        await db.run(
            """
            UPDATE broadcast_plans p
               SET winner = $3, stage = 'rest', stage_until = NULL
             WHERE p.team_id = $1 AND p.broadcast_id = $2 AND p.stage IN ('testing', 'deciding')
               AND p.winner IS NULL
               AND EXISTS (SELECT FROM broadcasts b
                            WHERE b.team_id = $1 AND b.id = $2 AND b.status = 'queued')
               AND EXISTS (SELECT FROM broadcast_variants v
                            WHERE v.team_id = $1 AND v.broadcast_id = $2 AND v.number = $3)
            """,
            broadcast_id,
            number,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantCounts:
    """The copies of a variant in the test, counted by their rows. Opens and clicks are those of
    people; `opened_by_machine` counts copies that only programs opened."""

    number: int
    copies: int
    sent: int
    opened: int
    clicked: int
    opened_by_machine: int


# The detail is compared as text: it may hold what cannot be read as JSON, and quotes in it are escaped.
FIGURES: Final = """
    SELECT f.number, count(f.email_id) AS copies, count(*) FILTER (WHERE f.sent_at IS NOT NULL) AS sent,
           count(*) FILTER (WHERE f.by_person) AS opened, count(*) FILTER (WHERE f.clicked) AS clicked,
           count(*) FILTER (WHERE f.opened_at IS NOT NULL AND NOT f.by_person) AS opened_by_machine
      FROM (SELECT v.number, b.email_id, r.sent_at, r.opened_at,
                   r.opened_at IS NOT NULL
                   AND EXISTS (SELECT FROM timeline t
                                WHERE t.team_id = $1 AND t.email_id = b.email_id AND t.kind = 'opened'
                                  AND coalesce(t.detail::text, '') NOT LIKE '%"machine":"%') AS by_person,
                   r.clicked_at IS NOT NULL
                   AND EXISTS (SELECT FROM timeline t
                                WHERE t.team_id = $1 AND t.email_id = b.email_id AND t.kind = 'clicked'
                                  AND coalesce(t.detail::text, '') NOT LIKE '%"machine":"%') AS clicked
              FROM broadcast_variants v
              LEFT JOIN broadcast_recipients b
                     ON b.team_id = v.team_id AND b.broadcast_id = v.broadcast_id AND b.wave IS NOT NULL
                    AND b.variant = v.number AND b.email_id IS NOT NULL
              LEFT JOIN recipients r ON r.team_id = $1 AND r.email_id = b.email_id AND r.position = 0
             WHERE v.team_id = $1 AND v.broadcast_id = $2) AS f
     GROUP BY f.number
     ORDER BY f.number
"""


async def figures(db: TeamDb, broadcast_id: UUID) -> list[VariantCounts]:
    """Return the figures of each variant, of the recipients of the test alone."""
    return await db.all(VariantCounts, FIGURES, broadcast_id)


# Copies -------------------------------------------------------------------------------------------


async def hold_due(conn: Connection, team_id: UUID, broadcast_id: UUID, now: datetime) -> bool:
    """Lock the plan for a portion of copies; False where none is due, or another process makes it."""
    found = await conn.fetchval(
        """
        SELECT true
          FROM broadcast_plans
         WHERE team_id = $1 AND broadcast_id = $2 AND (next_at IS NULL OR next_at <= $3)
           FOR UPDATE SKIP LOCKED
        """,
        team_id,
        broadcast_id,
        now,
    )
    return found is True


async def set_next(conn: Connection, team_id: UUID, broadcast_id: UUID, next_at: datetime) -> None:
    """Note when the next portion is due, in the transaction that makes this one."""
    await conn.execute(
        "UPDATE broadcast_plans SET next_at = $3 WHERE team_id = $1 AND broadcast_id = $2",
        team_id,
        broadcast_id,
        next_at,
    )


async def contents(conn: Connection, team_id: UUID, broadcast_id: UUID) -> dict[int, UUID]:
    """Return the contents of the variants by their numbers."""
    rows = await conn.fetch(
        """
        SELECT number, content_id
          FROM broadcast_variants
         WHERE team_id = $1 AND broadcast_id = $2 AND content_id IS NOT NULL
        """,
        team_id,
        broadcast_id,
    )
    return {row["number"]: row["content_id"] for row in rows}


async def contents_of_variants(db: TeamDb, broadcast_id: UUID) -> list[UUID]:
    """Return the contents that the copies of variants share."""
    rows = await db.source.fetch(
        """
        SELECT content_id
          FROM broadcast_variants
         WHERE team_id = $1 AND broadcast_id = $2 AND content_id IS NOT NULL
        """,
        db.team_id,
        broadcast_id,
    )
    return [row["content_id"] for row in rows]
