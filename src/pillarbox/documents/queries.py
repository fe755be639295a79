"""SQL of how a team's mail looks."""

from __future__ import annotations

from pillarbox.kernel.postgres.database import TeamDb


async def mail_theme(db: TeamDb) -> str | None:
    """Return the theme of the team as it is stored."""
    stored: str | None = await db.value("SELECT mail_theme FROM teams WHERE id = $1")
    return stored


async def set_mail_theme(db: TeamDb, stored: str | None) -> bool:
    """Store the theme; False where it is the same already."""
    return bool(
        await db.run(
            """
            UPDATE teams SET mail_theme = $2::jsonb
             WHERE id = $1 AND mail_theme IS DISTINCT FROM $2::jsonb
            """,
            stored,
        )
    )
