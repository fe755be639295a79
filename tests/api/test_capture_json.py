"""Captured mail as JSON."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.captured import CaptureWorld, capture_world
from kit.client import error
from kit.world import world as whole
from pillarbox.capture import json_routes
from pillarbox.mail.message.compose import OutgoingFile

LOGO = OutgoingFile("logo.png", "image/png", b"\x89PNG", cid="logo")
PLAN = OutgoingFile("Übersicht 1.pdf", "application/pdf", b"%PDF")


async def test_a_mail_shows_everything_that_a_test_suite_asks_for(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        email = await capture.mail(
            to=["ada@quay.example", "bob@quay.example"],
            subject="Grüße",
            html='<p>Ready <img src="cid:logo"></p>',
            text="Ready\nSteady",
            headers=[("X-Entity-Ref-ID", "42")],
            attachments=[LOGO, PLAN],
        )
        listed = (await program.get("/capture.json")).json()
        assert (listed["object"], listed["has_more"], len(listed["data"])) == ("list", False, 1)
        mail = listed["data"][0]
        assert mail["email_id"] == str(email)
        assert mail["from"] == "Harbor <notes@harbor.example>"
        assert mail["to"] == ["ada@quay.example", "bob@quay.example"]
        assert mail["subject"] == "Grüße"
        assert mail["html"] == '<p>Ready <img src="cid:logo"></p>'
        assert mail["text"].rstrip("\n") == "Ready\nSteady"
        assert {"name": "X-Entity-Ref-ID", "value": "42"} in mail["headers"]
        assert {"name": "Subject", "value": "Grüße"} in mail["headers"]
        names = [(part["filename"], part["content_type"], part["size"]) for part in mail["attachments"]]
        assert names == [("logo.png", "image/png", 4), ("Übersicht 1.pdf", "application/pdf", 4)]
        assert [part["content_disposition"] for part in mail["attachments"]] == ["inline", "attachment"]
        assert (await program.get(mail["attachments"][1]["url"])).content == b"%PDF"
        assert (await program.get(f"/capture.json/{mail['id']}")).json() == mail
        assert mail["size"] == len((await program.get(f"/capture/{mail['id']}/raw")).content)


async def test_the_list_is_newest_first_and_pages(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        emails = [str(await capture.mail(subject=f"Mail {n}")) for n in range(5)]
        first = (await program.get("/capture.json", params={"limit": 2})).json()
        assert first["has_more"]
        second = (
            await program.get("/capture.json", params={"limit": 2, "after": first["data"][1]["id"]})
        ).json()
        third = (
            await program.get("/capture.json", params={"limit": 2, "after": second["data"][1]["id"]})
        ).json()
        assert not third["has_more"]
        walked = [mail["email_id"] for page in (first, second, third) for mail in page["data"]]
        assert walked == emails[::-1]
        back = (
            await program.get("/capture.json", params={"limit": 2, "before": third["data"][0]["id"]})
        ).json()
        assert back == {**second, "has_more": True}


async def test_two_teams_mails_are_both_there_for_the_operator(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        one, two = await capture.mail(team=uuid4()), await capture.mail(team=uuid4())
        data = (await program.get("/capture.json")).json()["data"]
        assert {mail["email_id"] for mail in data} == {str(one), str(two)}


async def test_wait_answers_as_soon_as_a_mail_fits(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        asked = asyncio.create_task(
            program.get("/capture.json", params={"to": "ada@quay.example", "subject": "reset", "wait": 25})
        )
        await capture.mail(subject="Something else")
        email = await capture.mail(subject="Your password reset")
        answer = await asyncio.wait_for(asked, 10)
        assert [mail["email_id"] for mail in answer.json()["data"]] == [str(email)]


async def test_wait_gives_up_with_an_empty_list(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        answer = await program.get("/capture.json", params={"wait": 1})
        assert answer.text == '{"object":"list","has_more":false,"data":[]}'


async def test_wait_with_before_finds_newer_mails_alone(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        old = await capture.captured_id(await capture.mail())
        asked = asyncio.create_task(program.get("/capture.json", params={"before": str(old), "wait": 25}))
        email = await capture.mail()
        answer = await asyncio.wait_for(asked, 10)
        assert [mail["email_id"] for mail in answer.json()["data"]] == [str(email)]


async def test_a_page_of_large_mails_ends_early(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_routes, "MOST_BYTES", 5000)
    async with capture_world(database_url, tmp_path) as world, world.program() as program:
        for _ in range(3):
            await world.mail(text="x" * 3000)
        page = (await program.get("/capture.json")).json()
        assert (len(page["data"]), page["has_more"]) == (1, True)


WRONG = {
    "wait=-1": "`wait`",
    "wait=61": "`wait`",
    "wait=x": "`wait`",
    "limit=0": "`limit`",
    "limit=101": "`limit`",
    "after=x": "`after`",
    "to=%00": "`to`",
    "after=0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44&before=0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44": "`after`",
}


async def test_a_wrong_parameter_is_named(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        for query, named in WRONG.items():
            status, name, message = error(await program.get(f"/capture.json?{query}"))
            assert (status, name) == (422, "validation_error"), query
            assert named in message, query


async def test_an_unknown_mail_is_404_and_a_malformed_id_422(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        unknown = await program.get(f"/capture.json/{UUID(int=7)}")
        assert error(unknown) == (404, "not_found", "Captured mail not found")
        assert error(await program.get("/capture.json/seven"))[:2] == (422, "invalid_parameter")


async def test_a_program_clears_with_its_token(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        await capture.mail()
        await capture.mail()
        assert (await program.delete("/capture.json")).json() == {"object": "captured", "deleted": 2}
        assert (await program.get("/capture.json")).json()["data"] == []


async def test_an_unreadable_message_is_still_listed(capture: CaptureWorld) -> None:
    async with capture.program() as program:
        await capture.mail()
        await capture.http_server.pool.execute("UPDATE captured SET data = '\\x00ff0d0a00', size = 5")
        mail = (await program.get("/capture.json")).json()["data"][0]
        assert (mail["subject"], mail["headers"]) == ("Berth 12", [])


async def test_a_sent_email_can_be_waited_for_in_the_whole_product(database_url: str, tmp_path: Path) -> None:
    """What the README promises to other people's test suites."""
    async with whole(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        email = await team.send(to=["ada@quay.example", "bob@dock.example"], bcc="eve@pier.example")
        program = pillarbox.client("capture-token")
        for address in ("ada@quay.example", "bob@dock.example", "eve@pier.example"):
            answer = await program.get("/capture.json", params={"to": address, "wait": 10})
            (mail,) = answer.json()["data"]
            assert mail["email_id"] == email
            assert address in mail["to"]
            assert "pier" not in str(mail["headers"])
