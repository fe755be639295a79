"""How many webhooks and API keys a team may have: the installation's number, or its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kit.client import error
from kit.manual_world import manual_world
from kit.webhooks import ENDPOINT
from pillarbox.teams import bootstrap

WEBHOOK = {"endpoint": ENDPOINT, "events": ["email.sent"]}
KEY = {"name": "one more"}

KINDS = pytest.mark.parametrize(
    ("path", "body", "column", "things"),
    [
        ("/webhooks", WEBHOOK, "most_webhooks", "webhooks"),
        ("/api-keys", KEY, "most_api_keys", "API keys"),
    ],
)


@KINDS
async def test_of_many_at_once_as_many_are_made_as_the_team_may_have(
    database_url: str, tmp_path: Path, path: str, body: dict[str, object], column: str, things: str
) -> None:
    """Its first key is there already. What is deleted makes room, and other teams have their own."""
    async with manual_world(database_url, tmp_path, **{column: "4"}) as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team()
        answers = await asyncio.gather(*[team.post(path, body) for _ in range(12)])
        made = [answer.json()["id"] for answer in answers if answer.status_code == 201]
        refused = [error(answer) for answer in answers if answer.status_code != 201]
        assert len(made) == 4 - (column == "most_api_keys")
        said = f"Your team may have at most 4 {things}."
        assert set(refused) == {(403, "validation_error", said)}
        assert (await other.post(path, body)).status_code == 201
        await team.call("DELETE", f"{path}/{made[0]}")
        assert (await team.post(path, body)).status_code == 201
        assert (await team.post(path, body)).status_code == 403


@KINDS
async def test_a_team_may_have_a_number_of_its_own(
    database_url: str, tmp_path: Path, path: str, body: dict[str, object], column: str, things: str
) -> None:
    """Less than there are takes none away."""
    async with manual_world(database_url, tmp_path, **{column: "1"}) as pillarbox:
        team = await pillarbox.team()
        await bootstrap.set_limits(pillarbox.pool, team.id, {column: 3})
        while (await team.post(path, body)).status_code == 201:
            pass
        assert len((await team.get(path)).json()["data"]) == 3
        await bootstrap.set_limits(pillarbox.pool, team.id, {column: 0})
        assert error(await team.post(path, body))[2] == f"Your team may have at most 0 {things}."
        assert len((await team.get(path)).json()["data"]) == 3


async def test_disabled_webhooks_count(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, most_webhooks="1") as pillarbox:
        team = await pillarbox.team()
        made = (await team.post("/webhooks", WEBHOOK)).json()["id"]
        await team.call("PATCH", f"/webhooks/{made}", {"status": "disabled"})
        assert (await team.post("/webhooks", WEBHOOK)).status_code == 403
