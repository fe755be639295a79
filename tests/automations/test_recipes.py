"""The recipes of the guide, each as it stands there, with days that pass."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from kit.automation_runs import ADA, go, happens, mails, outputs, run_of, sent, statuses, walk
from kit.manual_world import clock_of, manual_world
from kit.world import Team
from pillarbox.timeline.rules import ClickDetail, EventDetail, EventKind

GUIDE = (Path(__file__).parents[2] / "docs/guide/automations.md").read_text(encoding="utf-8")
TEMPLATE = re.compile(r'^sh template\.sh (\S+) "([^"]+)" "([^"]+)"(?: (.+))?$', re.M)
VARIABLES = {
    "": [],
    '"$AMOUNT"': [{"key": "AMOUNT", "type": "number"}],
    """'[{"key": "PLAN", "type": "string"}]'""": [{"key": "PLAN", "type": "string"}],
}


@dataclass
class Recipe:
    """One that is enabled, and the team that has it."""

    team: Team
    automation: str

    async def wait(self, **time: float) -> None:
        clock_of(self.team.world).advance(timedelta(**time))
        await walk(self.team.world)

    async def send(self, event: str, **payload: Any) -> None:
        await sent(self.team, event, **payload)
        await walk(self.team.world)

    async def statuses(self) -> dict[str, str]:
        return statuses(await run_of(self.team, self.automation))

    async def contact(self) -> dict[str, Any]:
        return dict((await self.team.get(f"/contacts/{ADA}")).json())


@asynccontextmanager
async def recipe(database_url: str, folder: Path, name: str) -> AsyncIterator[Recipe]:
    async with manual_world(database_url, folder) as here:
        team = await here.team()
        await team.post("/contact-properties", {"key": "billing", "type": "string", "fallback_value": "fine"})
        for alias, subject, html, variables in TEMPLATE.findall(GUIDE):
            content = {"name": alias, "alias": alias, "from": "hi@harbor.example", "subject": subject}
            made = await team.post("/templates", {**content, "html": html, "variables": VARIABLES[variables]})
            assert made.status_code == 201, made.text
            await team.post(f"/templates/{alias}/publish")
        segment = str((await team.post("/segments", {"name": name})).json()["id"])
        [text] = re.findall(rf"^cat > {name}\.json <<END\n(.*?)^END$", GUIDE, re.M | re.S)
        graph = msgspec.json.decode(re.sub(r"\$[A-Z]+", segment, text))
        answer = await team.post("/automations", {**graph, "status": "enabled"})
        assert answer.status_code == 201, answer.text
        yield Recipe(team, str(answer.json()["id"]))


def completed(found: dict[str, str]) -> set[str]:
    assert set(found.values()) <= {"completed", "skipped"}
    return {key for key, status in found.items() if status == "completed"}


def test_the_guide_has_them_all() -> None:
    assert len(TEMPLATE.findall(GUIDE)) == 11
    assert len(re.findall(r"^cat > \S+\.json <<END$", GUIDE, re.M)) == 4


async def test_who_signs_up_and_begins_is_advised(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "welcome") as one:
        await one.send("user.signed_up", plan="pro")
        assert await mails(one.team) == ["Welcome to Harbor"]
        await one.wait(hours=47)
        await one.send("user.began")
        await one.wait(hours=23)
        assert await mails(one.team) == ["Welcome to Harbor"]
        await one.wait(hours=1)
        assert await mails(one.team) == ["Welcome to Harbor", "More out of Harbor"]
        assert completed(await one.statuses()) == {
            *("signed-up", "list", "welcome", "begins", "pays", "a-day", "advice"),
        }
        await one.wait(days=30)
        assert len(await mails(one.team)) == 2


async def test_who_does_not_begin_is_helped(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "welcome") as one:
        await one.send("user.signed_up", plan="free")
        await one.wait(days=2)
        await one.send("user.began")
        assert await mails(one.team) == ["Welcome to Harbor", "Your first steps"]
        assert completed(await one.statuses()) == {"signed-up", "list", "welcome", "begins", "help"}


async def test_who_never_pays_is_marked(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "dunning") as one:
        await one.send("payment.failed", amount=12.5)
        assert (await one.contact())["properties"]["billing"]["value"] == "late"
        await one.wait(days=3)
        assert await mails(one.team) == ["Your payment failed", "Still open"]
        await one.wait(days=4)
        assert await mails(one.team) == ["Your payment failed", "Still open", "Your account will be closed"]
        assert (await one.contact())["properties"]["billing"]["value"] == "overdue"
        await one.send("payment.made")
        assert len(await mails(one.team)) == 3


async def test_who_pays_is_left_alone(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "dunning") as one:
        await one.send("payment.failed", amount=12.5)
        await one.wait(days=5)
        await one.send("payment.made")
        await one.wait(days=30)
        assert await mails(one.team) == ["Your payment failed", "Still open", "Thank you"]
        assert (await one.contact())["properties"].get("billing", {"value": None})["value"] in (None, "fine")
        assert {"fine", "thanks"} <= completed(await one.statuses())


async def test_who_stays_away_is_left_alone(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "winning-back") as one:
        await one.send("user.idle")
        await one.wait(days=14)
        assert await mails(one.team) == ["We miss you", "Shall we stop writing?"]
        assert not (await one.contact())["unsubscribed"]
        await one.wait(days=7)
        assert (await one.contact())["unsubscribed"]
        await one.send("user.idle")
        assert len(await mails(one.team)) == 2


async def test_who_comes_back_is_in_a_segment(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "winning-back") as one:
        await one.send("user.idle")
        await one.wait(days=15)
        await one.send("user.returned")
        await one.wait(days=30)
        assert await mails(one.team) == ["We miss you", "Shall we stop writing?"]
        assert not (await one.contact())["unsubscribed"]
        segments = (await one.team.get(f"/contacts/{ADA}/segments")).json()["data"]
        assert [segment["name"] for segment in segments] == ["winning-back"]


async def test_who_opens_and_clicks_is_in_a_segment(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "offer") as one:
        await one.send("user.asked_for_offers")
        email = str(outputs(await run_of(one.team, one.automation))["offer"]["email_id"])
        await one.team.world.turn()
        await happens(one.team, email, EventKind.OPENED)
        await go(one.team.world)
        now = one.team.world.clock.now()
        click = ClickDetail("192.0.2.1", "https://shop.example/offer", now, "Mozilla/5.0")
        await happens(one.team, email, EventKind.CLICKED, EventDetail(click=click))
        await go(one.team.world)
        assert completed(await one.statuses()) == {"asked", "offer", "opened", "clicked", "keen"}
        assert await mails(one.team) == ["Twenty per cent off"]


async def test_who_does_not_open_gets_another_subject(database_url: str, tmp_path: Path) -> None:
    async with recipe(database_url, tmp_path, "offer") as one:
        await one.send("user.asked_for_offers")
        await one.wait(days=3)
        assert await mails(one.team) == ["Twenty per cent off", "Until Sunday: twenty per cent off"]
