"""Inboxes made over the API, at a domain that has shown its DNS records.

async with inbox_team(database_url, tmp_path) as team:
    inbox_id = await create(team, "help@harbor.example")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kit.inbound_client import receiving_domain
from kit.world import Team, world


async def create(team: Team, email_address: str = "help@harbor.example", **fields: Any) -> str:
    """Create an inbox of this address; return its id."""
    answer = await team.post("/inboxes", {"email_address": email_address, **fields})
    assert answer.status_code == 201, answer.text
    assert answer.json()["object"] == "inbox"
    return str(answer.json()["id"])


async def inbox_domain(team: Team, name: str = "harbor.example") -> str:
    """Make a domain of the team that may have inboxes; return its id."""
    await receiving_domain(team, name)
    return await team.domain(name)


@asynccontextmanager
async def inbox_team(database_url: str, folder: Path, **settings: Any) -> AsyncIterator[Team]:
    """Yield a team whose domain harbor.example sends and receives, in a world of its own where nothing runs
    by itself."""
    async with world(database_url, folder, started=False, **settings) as pillarbox:
        team = await pillarbox.team()
        await inbox_domain(team)
        yield team
