"""`pillarbox serve` with the small application: python serve.py FACTORY FLAG VALUE …"""

from __future__ import annotations

import sys

from pillarbox.app import SETTINGS
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.process.database_start import FirstStart
from pillarbox.kernel.process.supervisor import serve
from pillarbox.kernel.settings.settings import Settings, read_settings

KEY = "re_abcdefgh_0123456789"


async def first_team(conn: Connection, settings: Settings) -> FirstStart | None:
    """A first team that is remembered in the database, as the real one is."""
    if await conn.fetchval("SELECT to_regclass('small_team') IS NOT NULL"):
        return None
    await conn.execute("CREATE TABLE small_team (id integer)")
    return FirstStart(settings.initial_api_key or KEY)


if __name__ == "__main__":
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    named = {name.removeprefix("--").replace("-", "_"): value for name, value in flags.items()}
    sys.exit(serve(read_settings(SETTINGS, named), first_team, factory=sys.argv[1]))
