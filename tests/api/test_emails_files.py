"""Attachments given by `path` (emails.md 1.4), reading them (4.3), and `/files/{token}` (conventions 14)."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from email.utils import collapse_rfc2231_value
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from kit.client import error
from kit.file_server import file_server
from kit.manual_world import clock_of, manual_world, parsed, relayed_world, run_jobs
from kit.world import World

LOOPBACK = "127.0.0.0/8"
DATA = bytes(range(256)) * 8


async def test_a_path_is_fetched_after_the_answer_and_delivered(database_url: str, tmp_path: Path) -> None:
    """Listed only once fetched; name and type come from the request, not from the URL (MSG-16)."""
    files = {"/map": DATA, "/moved.exe": b"302 /map"}
    async with (
        file_server(files) as (origin, asked),
        relayed_world(database_url, tmp_path, allow_private=LOOPBACK) as (pillarbox, sink),
    ):
        team = await pillarbox.team()
        await team.domain()
        attachments = [
            {"filename": "first.txt", "content": "aGk="},
            {"filename": "map.pdf", "path": f"{origin}/map"},
            {"path": f"{origin}/moved.exe", "content_id": "moved"},
            {"content": "aGk=", "path": f"{origin}/never"},
        ]
        email = await team.send(attachments=attachments)
        assert asked == []
        names = [item["filename"] for item in (await team.get(f"/emails/{email}/attachments")).json()["data"]]
        assert names == ["first.txt", "attachment-3"]
        assert await pillarbox.turn() == 0, "the mail must wait for its files"
        assert await run_jobs(pillarbox) == 1
        assert asked == ["/map", "/moved.exe", "/map"]
        items = (await team.get(f"/emails/{email}/attachments")).json()["data"]
        shown = [(item["filename"], item["content_type"], item["size"]) for item in items]
        assert shown == [
            ("first.txt", "text/plain", 2),
            ("map.pdf", "application/pdf", len(DATA)),
            ("attachment-2", "application/octet-stream", len(DATA)),
            ("attachment-3", "application/octet-stream", 2),
        ]
        assert await pillarbox.turn() == 1
        [message] = await sink.messages(1)
        bodies: list[Any] = [p.get_payload(decode=True) for p in parsed(message).walk() if p.get_filename()]
        assert sorted(bodies) == sorted([b"hi", DATA, DATA, b"hi"])
        assert (await team.email(email))["last_event"] == "delivered"


async def test_a_path_that_cannot_be_had_fails_the_email_after_three_tries(
    database_url: str, tmp_path: Path
) -> None:
    """Contract decision 28: addresses that are not public are never asked; the reason can be read."""
    async with (
        file_server({"/file": DATA}) as (origin, asked),
        manual_world(database_url, tmp_path) as pillarbox,
    ):
        team = await pillarbox.team()
        port = origin.rpartition(":")[2]
        targets = [
            f"{origin}/file",
            f"http://localhost:{port}/file",
            f"http://[::1]:{port}/file",
            f"http://[::ffff:127.0.0.1]:{port}/file",
            f"http://2130706433:{port}/file",
            "http://169.254.169.254/latest/meta-data",
            "http://10.0.0.1/x",
            "http://nowhere.example/x",
        ]
        sent = [
            await team.send(to=["a@quay.example", "b@pier.example"], attachments=[{"path": url}])
            for url in targets
        ]
        for tries, pause in enumerate((30, 60, 0)):
            assert await run_jobs(pillarbox) == len(targets), tries
            assert await run_jobs(pillarbox) == 0
            clock_of(pillarbox).advance(pause)
        assert asked == []
        for email, url in zip(sent, targets, strict=True):
            assert (await team.email(email))["last_event"] == "failed", url
            last = (await team.events(email))[-2:]
            assert [event["event"] for event in last] == ["failed", "failed"]
            assert {event["reason"] for event in last} == {"attachment_download_failed"}
            assert {event["recipient"] for event in last} == {"a@quay.example", "b@pier.example"}
        assert await pillarbox.turn() == 0
        for table in ("jobs", "deliveries"):
            assert await pillarbox.pool.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_files_of_more_than_forty_megabytes_together_are_not_sent(
    database_url: str, tmp_path: Path
) -> None:
    """The limit of emails.md 1.4 is one for the mail, wherever its attachments come from (MSG-16)."""
    part = bytes(11 * 1024 * 1024)
    async with (
        file_server({"/part": part}) as (origin, asked),
        manual_world(database_url, tmp_path, allow_private="127.0.0.1/32") as pillarbox,
    ):
        team = await pillarbox.team()
        given = {"content": base64.b64encode(part).decode()}
        fits = await team.send(attachments=[given, {"path": f"{origin}/part"}])
        exceeds = await team.send(attachments=[given, *[{"path": f"{origin}/part"}] * 4])
        for pause in (30, 60, 0):
            await run_jobs(pillarbox)
            clock_of(pillarbox).advance(pause)
        assert len(asked) == 1 + 3 * 2, "what exceeds the limit ends the fetching"
        listed = (await team.get(f"/emails/{fits}/attachments")).json()["data"]
        assert [item["size"] for item in listed] == [len(part)] * 2
        assert (await team.email(exceeds))["last_event"] == "failed"
        assert {event["reason"] for event in (await team.events(exceeds))[-1:]} == {
            "attachment_download_failed"
        }


async def test_a_redirect_to_a_private_address_and_a_missing_file_fail(
    database_url: str, tmp_path: Path
) -> None:
    """Every hop is checked against the operator's list (MSG-16)."""
    files = {"/away": b"302 http://10.0.0.1/secret", "/round": b"302 /round"}
    async with (
        file_server(files) as (origin, asked),
        manual_world(database_url, tmp_path, allow_private="127.0.0.1/32") as pillarbox,
    ):
        team = await pillarbox.team()
        for path in ("/away", "/missing", "/round"):
            email = await team.send(attachments=[{"path": origin + path}])
            for pause in (30, 60, 0):
                assert await run_jobs(pillarbox) == 1
                clock_of(pillarbox).advance(pause)
            assert (await team.email(email))["last_event"] == "failed"
        assert asked.count("/round") == 3 * 6, "five redirects in each of three tries"


async def test_a_scheduled_email_fetches_at_once_and_leaves_when_due(
    database_url: str, tmp_path: Path
) -> None:
    """Rescheduling does not free an email that still waits for its file."""
    async with (
        file_server({"/map": DATA}) as (origin, _),
        manual_world(database_url, tmp_path, allow_private=LOOPBACK) as pillarbox,
    ):
        team = await pillarbox.team()
        email = await team.send(attachments=[{"path": f"{origin}/map"}], scheduled_at="in 1 hour")
        assert (await team.call("PATCH", f"/emails/{email}", {"scheduled_at": "in 1 min"})).status_code == 200
        clock_of(pillarbox).advance(61)
        assert await pillarbox.turn() == 0
        assert await run_jobs(pillarbox) == 1
        assert await pillarbox.turn() == 1
        assert await team.kinds(email) == ["scheduled", "queued", "sent", "delivered"]


async def test_an_attachment_reads_as_the_contract_shows_it(database_url: str, tmp_path: Path) -> None:
    """4.3: the keys in their order, byte by byte; the url names the public origin and ends in an hour."""
    async with manual_world(database_url, tmp_path, public_url="https://mail.harbor.example") as pillarbox:
        team = await pillarbox.team()
        files = [
            {"filename": "map.pdf", "content": "JVBERi0xLjcK"},
            {"filename": "l.png", "content": "", "content_id": "c1"},
        ]
        email = await team.send(attachments=files)
        many = await team.get(f"/emails/{email}/attachments")
        assert list(many.json()) == ["object", "has_more", "data"]
        first, second = many.json()["data"]
        keys = ["id", "filename", "size", "content_type", "content_disposition"]
        assert list(first) == [*keys, "download_url", "expires_at"]
        assert list(second) == [*keys, "content_id", "download_url", "expires_at"]
        one = await team.get(f"/emails/{email}/attachments/{first['id']}")
        url = one.json()["download_url"]
        assert url.startswith("https://mail.harbor.example/files/")
        expected = (
            f'{{"object":"attachment","id":"{first["id"]}","filename":"map.pdf","size":9,'
            f'"content_type":"application/pdf","content_disposition":"attachment","download_url":"{url}",'
            '"expires_at":"2026-10-03T09:15:00.000Z"}'
        )
        assert one.text == expected
        inline = await team.get(f"/emails/{email}/attachments/{second['id'].upper()}")
        assert inline.json()["content_disposition"] == "inline"
        assert inline.json()["content_id"] == "c1"


async def test_unknown_attachments_and_emails(pillarbox: World) -> None:
    team = await pillarbox.team()
    mine = await team.send(attachments=[{"content": "aGk="}])
    bare = await team.send()
    [item] = (await team.get(f"/emails/{mine}/attachments")).json()["data"]
    assert (await team.get(f"/emails/{bare}/attachments")).json() == {
        "object": "list",
        "has_more": False,
        "data": [],
    }
    for path in (f"{bare}/attachments/{item['id']}", f"{mine}/attachments/{uuid4()}"):
        assert error(await team.get(f"/emails/{path}")) == (404, "not_found", "Attachment not found")
    assert error(await team.get(f"/emails/{uuid4()}/attachments"))[:2] == (404, "not_found")
    for path in ("x/attachments", f"{mine}/attachments/x"):
        assert error(await team.get(f"/emails/{path}"))[:2] == (422, "invalid_parameter")


async def test_attachments_are_paged_in_the_order_of_the_request(pillarbox: World) -> None:
    team = await pillarbox.team()
    email = await team.send(attachments=[{"content": "", "filename": f"{n}"} for n in range(5)])

    async def page(query: str) -> tuple[str, bool]:
        body = (await team.get(f"/emails/{email}/attachments?{query}")).json()
        return "".join(item["filename"] for item in body["data"]), body["has_more"]

    ids = [item["id"] for item in (await team.get(f"/emails/{email}/attachments")).json()["data"]]
    assert await page("") == ("01234", False)
    assert await page("limit=2") == ("01", True)
    assert await page(f"limit=2&after={ids[1]}") == ("23", True)
    assert await page(f"limit=2&after={ids[3]}") == ("4", False)
    assert await page(f"after={ids[1]}") == ("234", False)
    assert await page(f"limit=2&before={ids[4]}") == ("23", True)
    assert await page(f"limit=2&before={ids[1]}") == ("0", False)
    path = f"/emails/{email}/attachments"
    assert error(await team.get(f"{path}?limit=101"))[:2] == (422, "validation_error")
    assert error(await team.get(f"{path}?after=x"))[:2] == (422, "validation_error")
    both = error(await team.get(f"{path}?after={ids[0]}&before={ids[1]}"))
    assert both[2] == "Use either `after` or `before`, not both."


async def test_downloads_are_exact_guarded_and_resumable(database_url: str, tmp_path: Path) -> None:
    """Conventions 14, for bytes in a row and bytes in the blob store."""
    large = bytes(range(256)) * 2000
    async with manual_world(database_url, tmp_path) as pillarbox:
        team, anyone = await pillarbox.team(), pillarbox.client(None)
        for data in (DATA, large):
            file = {"filename": 'Plan "für" Zoë.html', "content": base64.b64encode(data).decode()}
            email = await team.send(attachments=[file])
            [item] = (await team.get(f"/emails/{email}/attachments")).json()["data"]
            url = item["download_url"]
            whole = await anyone.get(url)
            assert (whole.status_code, whole.content) == (200, data)
            headers = whole.headers
            assert headers["content-type"] == "text/html"
            assert headers["content-length"] == str(len(data))
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-security-policy"] == "sandbox; default-src 'none'"
            assert headers["cache-control"] == "private, max-age=0"
            plain, starred = headers["content-disposition"].removeprefix("attachment; ").split("; ")
            assert plain == 'filename="Plan _f_r_ Zo_.html"'
            assert unquote(collapse_rfc2231_value(starred)).endswith(file["filename"])
            head = await anyone.head(url)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(data))
            for wanted, (start, end) in {
                "bytes=0-0": (0, 1),
                "bytes=0-": (0, len(data)),
                "Bytes=0-1": (0, 2),
                "bytes=5-9": (5, 10),
                "bytes=100-": (100, len(data)),
                "bytes=-7": (len(data) - 7, len(data)),
                f"bytes=10-{10**9}": (10, len(data)),
            }.items():
                part = await anyone.get(url, headers={"range": wanted})
                assert (part.status_code, part.content) == (206, data[start:end]), wanted
                assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{len(data)}"
            for wanted in (f"bytes={len(data)}-", "bytes=-0"):
                none = await anyone.get(url, headers={"range": wanted})
                assert (none.status_code, none.headers["content-range"]) == (416, f"bytes */{len(data)}")
            several = await anyone.get(url, headers={"range": "bytes=0-1,5-6"})
            assert several.status_code == 200


async def test_links_end_and_cannot_be_changed(pillarbox: World) -> None:
    """403 for a token that is not ours or over; every read gives a fresh link."""
    team, anyone = await pillarbox.team(), pillarbox.client(None)
    email = await team.send(attachments=[{"content": "aGk="}])
    path = f"/emails/{email}/attachments"
    url = (await team.get(path)).json()["data"][0]["download_url"]
    stem, _, token = url.rpartition("/")
    share = (await team.post(f"/emails/{email}/share")).json()["url"].rpartition("=")[2]
    changed = [token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :] for at in range(0, 60, 7)]
    for wrong in (*changed, token[:-1], token + "A", token + "=", "x", share, "é" * 10):
        answer = await anyone.get(f"{stem}/{wrong}")
        assert error(answer)[:2] == (403, "validation_error"), wrong
    assert (await anyone.post(url)).status_code == 405
    clock_of(pillarbox).advance(timedelta(minutes=59, seconds=59))
    assert (await anyone.get(url)).content == b"hi"
    clock_of(pillarbox).advance(1)
    assert error(await anyone.get(url))[:2] == (403, "validation_error")
    fresh = (await team.get(path)).json()["data"][0]["download_url"]
    assert fresh != url
    assert (await anyone.get(fresh)).content == b"hi"
    await pillarbox.pool.execute("DELETE FROM attachments")
    assert error(await anyone.get(fresh))[:2] == (404, "not_found")
    assert json.loads((await anyone.get(fresh)).content)["message"] == "File not found"
