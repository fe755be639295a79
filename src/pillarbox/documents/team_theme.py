"""The theme that a team has chosen."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from pillarbox.documents import queries
from pillarbox.documents.theme import DEFAULT, Theme
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.people.audit import Act, Actor, record

_decoder: Final = msgspec.json.Decoder(Theme)


async def theme_of(db: TeamDb) -> Theme:
    """Return the theme of the team; the default where none is stored, or none that this release reads."""
    stored = await queries.mail_theme(db)
    if stored is None:
        return DEFAULT
    try:
        return _decoder.decode(stored)
    except msgspec.ValidationError:
        return DEFAULT


async def save(db: TeamDb, theme: Theme, actor: Actor, now: datetime) -> None:
    """Store the theme, and who has chosen it."""
    stored = None if theme == DEFAULT else msgspec.json.encode(theme).decode()
    async with db.transaction() as inner:
        if await queries.set_mail_theme(inner, stored):
            await record(
                inner.source, now, Act.MAIL_THEME_CHANGED, team_id=inner.team_id, actor=actor, target=None
            )
