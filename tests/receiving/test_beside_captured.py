"""On the route `capture` received mail stands among the mail that would have left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kit.postman import postman, receiving_domain
from kit.world import world

HELP = "help@harbor.example"
LETTER = b"From: ada@quay.example\r\nSubject: Tide\r\n\r\nIt rises.\r\n"


async def test_it_is_found_waited_for_and_read_like_captured_mail(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, route="capture") as pillarbox, postman(pillarbox) as post:
        team, operator = await pillarbox.team(), pillarbox.client("capture-token")
        await receiving_domain(team)
        waiting = asyncio.create_task(operator.get("/capture.json", params={"to": HELP, "wait": "20"}))
        sent = await team.send(to=["ada@quay.example"])
        await team.settled(sent)
        assert (await post.deliver(LETTER, [HELP])).startswith("250")
        [found] = (await waiting).json()["data"]
        assert (found["inbound"], found["from"], found["to"]) == (True, "ada@quay.example", [HELP])
        assert found["text"] == "It rises.\n"
        both = (await operator.get("/capture.json")).json()["data"]
        assert [(item["inbound"], item["subject"]) for item in both] == [(True, "Tide"), (False, "Berth 12")]
        older = (await operator.get("/capture.json", params={"after": both[0]["id"]})).json()["data"]
        assert [item["id"] for item in older] == [both[1]["id"]]
        newer = (await operator.get("/capture.json", params={"before": both[1]["id"]})).json()["data"]
        assert [item["id"] for item in newer] == [both[0]["id"]]
        assert (await operator.get(f"/capture.json/{found['id']}")).json() == found

        pages = await operator.get("/capture")
        assert pages.text.count(">received<") == 1
        page = await operator.get(f"/capture/{found['id']}")
        assert "It rises." in page.text
        assert "view=events" not in page.text
        raw = await operator.get(f"/capture/{found['id']}/raw")
        assert raw.content == LETTER

        assert (await operator.delete("/capture.json")).json()["deleted"] == 1
        left = (await operator.get("/capture.json")).json()["data"]
        assert [item["id"] for item in left] == [found["id"]]
        assert (await team.get("/emails/receiving")).json()["data"][0]["id"] == found["id"]
