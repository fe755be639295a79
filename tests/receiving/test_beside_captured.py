"""On the route `capture` received mail stands among the mail that would have left."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from kit.inbound_client import inbound_client, receiving_domain
from kit.world import world

HELP = "help@harbor.example"
LETTER = b"From: ada@quay.example\r\nSubject: Tide\r\n\r\nIt rises.\r\n"


async def test_it_is_cleared_when_that_is_asked_for_and_may_come_again(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, route="capture") as pillarbox, inbound_client(pillarbox) as post:
        team, operator = await pillarbox.team(), pillarbox.client("capture-token")
        await receiving_domain(team)
        sent = await team.send(to=["ada@quay.example"])
        await team.settled(sent)
        large = LETTER + b"It rises.\r\n" * 30_000
        for letter in (LETTER, large):
            assert (await post.deliver(letter, [HELP])).startswith("250")
        assert "Remove the received mail too" in (await operator.get("/capture")).text
        assert (await operator.delete("/capture.json?received=perhaps")).status_code == 422
        assert (await operator.delete("/capture.json?received=true")).json()["deleted"] == 3
        assert (await operator.get("/capture.json")).json()["data"] == []
        assert (await team.get("/emails/receiving")).json()["data"] == []
        assert (await post.deliver(LETTER, [HELP])).startswith("250")
        assert len((await operator.get("/capture.json")).json()["data"]) == 1


async def test_it_is_found_waited_for_and_read_like_captured_mail(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, route="capture") as pillarbox, inbound_client(pillarbox) as post:
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


HOSTILE = {
    "a parameter of blanks": b'Content-Type: text/plain; a="' + b";" * 500_000 + b"\r\n\r\nx\r\n",
    "words": b"Subject: " + b"=?utf-8?q?a?= " * 20_000 + b"\r\n\r\nx\r\n",
    "addresses": b"To: " + b"a@b.c, " * 100_000 + b"\r\n\r\nx\r\n",
    "sections of a parameter": b"Content-Type: multipart/mixed"
    + b"".join(b'; boundary*%d="x"' % number for number in range(8000))
    + b"\r\n\r\nx\r\n",
    "formatting": b"Content-Type: text/html\r\n\r\n"
    + b"".join(b"<b a%d>" % number for number in range(14_000))
    + b"\r\n",
}


async def test_hostile_mail_is_shown_and_listed_within_moments(database_url: str, tmp_path: Path) -> None:
    """TRAP-05, TRAP-06: what took the standard library minutes."""
    async with world(database_url, tmp_path, route="capture") as pillarbox, inbound_client(pillarbox) as post:
        team, operator = await pillarbox.team(), pillarbox.client("capture-token")
        await receiving_domain(team)
        for raw in HOSTILE.values():
            raw = raw.replace(b"; ", b";\r\n ").replace(b"= =", b"=\r\n =").replace(b", ", b",\r\n ")
            assert (await post.deliver(raw.replace(b";" * 900, b";" * 898 + b"\r\n "), [HELP])).startswith(
                "250"
            )
        start = time.monotonic()
        async with asyncio.timeout(30):
            listed = (await operator.get("/capture.json")).json()["data"]
            assert len(listed) == len(HOSTILE)
            for item in listed:
                for view in ("", "?view=headers", "?view=raw", "/html"):
                    assert (await operator.get(f"/capture/{item['id']}{view}")).status_code == 200
        assert time.monotonic() - start < 20


async def test_the_end_does_not_wait_for_pages_that_are_asked_for(database_url: str, tmp_path: Path) -> None:
    """SIGTERM: what is being made ends by its own bounds, the rest is not begun."""
    async with world(database_url, tmp_path, route="capture") as pillarbox, inbound_client(pillarbox) as post:
        team, operator = await pillarbox.team(), pillarbox.client("capture-token")
        await receiving_domain(team)
        for number in range(8):
            raw = b"Content-Type: text/html\r\n\r\n" + b"<p style='a:b'>%d\r\n" % number * 20_000
            assert (await post.deliver(raw, [HELP])).startswith("250")
        listed = (await operator.get("/capture.json")).json()["data"]
        views = [asyncio.create_task(operator.get(f"/capture/{item['id']}/html")) for item in listed]
        await asyncio.sleep(0.05)
        for view in views[1:]:
            view.cancel()
        start = time.monotonic()
    assert time.monotonic() - start < 10
    await asyncio.gather(*views, return_exceptions=True)
