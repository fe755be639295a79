"""Attachments of a send request (emails.md 1.4), as they are listed (4.3) and as they arrive."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kit.client import error
from kit.dumps import counts
from kit.manual_world import manual_world, parsed
from kit.smtp_sink import Sink
from kit.world import Team, World, mail
from pillarbox.emails.requests.attachment_input import BLOCKED

BAD = (422, "invalid_attachment")
VALIDATION = (422, "validation_error")
DATA = bytes(range(256)) + b"\r\n.\r\n"
TEXT = base64.b64encode(DATA).decode()
MIB = 1024 * 1024


async def listed(team: Team, email: str) -> list[dict[str, Any]]:
    answer = await team.get(f"/emails/{email}/attachments")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


async def content(team: Team, item: dict[str, Any]) -> bytes:
    data: bytes = (await team.world.client(None).get(item["download_url"])).content
    return data


CONTENTS: list[tuple[Any, bytes]] = [
    (TEXT, DATA),
    (TEXT.rstrip("="), DATA),
    ("\r\n".join(TEXT[at : at + 76] for at in range(0, len(TEXT), 76)) + " \t\n", DATA),
    (list(DATA), DATA),
    ({"type": "Buffer", "data": list(DATA)}, DATA),
    ("", b""),
    ([], b""),
    ({"type": "Buffer", "data": []}, b""),
    ("aGk=", b"hi"),
    ("aGk", b"hi"),
]


async def test_every_form_of_content_is_the_same_bytes(pillarbox: World) -> None:
    team = await pillarbox.team()
    wanted = [{"filename": f"{n}.bin", "content": given} for n, (given, _) in enumerate(CONTENTS)]
    items = await listed(team, await team.send(attachments=wanted))
    assert [item["filename"] for item in items] == [item["filename"] for item in wanted]
    for item, (_, meant) in zip(items, CONTENTS, strict=True):
        assert item["size"] == len(meant)
        assert await content(team, item) == meant


REFUSED: list[tuple[Any, tuple[int, str], str]] = [
    ({}, BAD, "Invalid `attachments[0]` field. Give either `content` or `path`."),
    ({"content": None, "path": None}, BAD, "Invalid `attachments[0]` field. "),
    ({"path": ""}, BAD, "Invalid `attachments[0]` field. "),
    ({"content": "a"}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": "a*=="}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": "aGk==="}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": "aG=k"}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": "aGké"}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": "data:text/plain;base64,aGk="}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": [256]}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": [-1]}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": [1.0]}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": [True]}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": ["1"]}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": [10**30]}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": {"data": [1]}}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": {"type": "Buffer", "data": "aGk="}}, BAD, "Invalid `attachments[0].content` field. "),
    ({"content": 7}, BAD, "Invalid `attachments[0].content` field. "),
    ({"path": "ftp://files.example/a"}, BAD, "Invalid `attachments[0].path` field. "),
    ({"path": "file:///etc/passwd"}, BAD, "Invalid `attachments[0].path` field. "),
    ({"path": "http://files.example/a b"}, BAD, "Invalid `attachments[0].path` field. "),
    ({"path": "http://files.example/\r\nX: y"}, BAD, "Invalid `attachments[0].path` field. "),
    ({"path": 7}, VALIDATION, "Invalid `attachments[0].path` field. "),
    ({"content": TEXT, "filename": "setup.EXE"}, BAD, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": "a.tar.ps1"}, BAD, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": "setup.exe "}, BAD, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": "setup.exe.."}, BAD, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": "setup.e\u200bxe"}, BAD, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": "fdp.\u202eexe"}, BAD, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": "a" * 256}, VALIDATION, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "filename": True}, VALIDATION, "Invalid `attachments[0].filename` field. "),
    ({"content": TEXT, "content_type": "pdf"}, VALIDATION, "Invalid `attachments[0].content_type` field. "),
    ({"content": TEXT, "content_type": "a/b\r\nX: y"}, VALIDATION, "Invalid `attachments[0].content_type`"),
    (
        {"content": TEXT, "content_type": "multipart/mixed"},
        VALIDATION,
        "Invalid `attachments[0].content_type`",
    ),
    ({"content": TEXT, "content_id": "a b"}, VALIDATION, "Invalid `attachments[0].content_id` field. "),
    ({"content": TEXT, "content_id": "<a>"}, VALIDATION, "Invalid `attachments[0].content_id` field. "),
    ({"content": TEXT, "content_id": "a" * 129}, VALIDATION, "Invalid `attachments[0].content_id` field. "),
    (
        {"content": TEXT, "inline_content_id": "a\r\nb"},
        VALIDATION,
        "Invalid `attachments[0].inline_content_id`",
    ),
    ("text", VALIDATION, "Invalid `attachments[0]` field. "),
    (None, VALIDATION, "Invalid `attachments[0]` field. "),
]


async def test_each_violation_has_its_answer_and_writes_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    for item, expected, message in REFUSED:
        status, name, said = error(await team.post("/emails", mail(attachments=[item])))
        assert (status, name) == expected, (item, said)
        assert said.startswith(message), (item, said)
    second = [{"content": "aGk="}, {"content": "?"}]
    assert "`attachments[1].content`" in error(await team.post("/emails", mail(attachments=second)))[2]
    many = [{"content": ""}] * 101
    assert error(await team.post("/emails", mail(attachments=many)))[:2] == VALIDATION
    assert await counts(pillarbox.pool) == before
    assert (await team.post("/emails", mail(attachments=many[:100]))).status_code == 200


async def test_blocked_extensions_are_those_of_the_contract(pillarbox: World) -> None:
    """Every one of them, in any case; and names that only look like one are taken."""
    team = await pillarbox.team()
    for extension in sorted(BLOCKED):
        item = {"filename": f"Report.{extension.upper()}", "content": "aGk="}
        status, name, message = error(await team.post("/emails", mail(attachments=[item])))
        assert (status, name) == BAD
        assert f".{extension}" in message
    names = ("exe", "setup.exe.txt", "mail.eml", "page.html", "archive.zip", "a.exemplar", "x.", "…")
    email = await team.send(attachments=[{"filename": name, "content": "aGk="} for name in names])
    assert [item["filename"] for item in await listed(team, email)] == list(names)


NAMED: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({}, ("attachment-0", "application/octet-stream")),
    ({"filename": None}, ("attachment-1", "application/octet-stream")),
    ({"filename": False}, ("attachment-2", "application/octet-stream")),
    ({"filename": ""}, ("attachment-3", "application/octet-stream")),
    ({"filename": "map.PDF"}, ("map.PDF", "application/pdf")),
    ({"filename": "html"}, ("html", "application/octet-stream")),
    ({"filename": "../../etc/passwd"}, (".._.._etc_passwd", "application/octet-stream")),
    ({"filename": "a\\b\r\nc.txt"}, ("a_b__c.txt", "text/plain")),
    ({"filename": "Plan für Zoë.docx"}, ("Plan für Zoë.docx", None)),
    ({"filename": "fwd.eml"}, ("fwd.eml", "message/rfc822")),
    ({"filename": "x.bin", "content_type": "Image/PNG"}, ("x.bin", "image/png")),
    (
        {"filename": "t.txt", "content_type": "text/plain; charset=ISO-8859-1"},
        ("t.txt", "text/plain; charset=ISO-8859-1"),
    ),
    ({"filename": "m", "content_type": "message/rfc822"}, ("m", "message/rfc822")),
    ({"filename": "n" * 251 + ".csv"}, ("n" * 251 + ".csv", "text/csv")),
]


async def test_names_and_types_as_they_are_listed(pillarbox: World) -> None:
    team = await pillarbox.team()
    wanted = [{"content": "aGk=", **fields} for fields, _ in NAMED]
    items = await listed(team, await team.send(attachments=wanted))
    for item, (_, (name, kind)) in zip(items, NAMED, strict=True):
        assert item["filename"] == name
        assert kind is None or item["content_type"] == kind, name


async def test_inline_attachments_arrive_beside_the_html(relayed: tuple[World, Sink]) -> None:
    """MSG-07: a content id makes the part inline, in multipart/related; the alias of the Python SDK too."""
    pillarbox, sink = relayed
    team = await pillarbox.team()
    await team.domain()
    email = await team.send(
        html='<p>Ready <img src="cid:logo@x"><img src="cid:second"></p>',
        attachments=[
            {"filename": "logo.png", "content": TEXT, "content_id": "logo@x"},
            {"filename": "two.png", "content": TEXT, "inline_content_id": "second"},
            {"filename": "map.pdf", "content": TEXT},
        ],
    )
    items = await listed(team, email)
    shown = [(item["content_disposition"], item.get("content_id", "-")) for item in items]
    assert shown == [("inline", "logo@x"), ("inline", "second"), ("attachment", "-")]
    await pillarbox.turn()
    [message] = await sink.messages(1)
    kinds = [
        (part.get_content_type(), part.get_content_disposition(), part["content-id"])
        for part in parsed(message).walk()
    ]
    assert kinds == [
        ("multipart/mixed", None, None),
        ("multipart/related", None, None),
        ("multipart/alternative", None, None),
        ("text/plain", None, None),
        ("text/html", None, None),
        ("image/png", "inline", "<logo@x>"),
        ("image/png", "inline", "<second>"),
        ("application/pdf", "attachment", None),
    ]
    attached = [part for part in parsed(message).walk() if part.get_content_disposition()]
    assert [part.get_payload(decode=True) for part in attached] == [DATA] * 3


@pytest.mark.parametrize("more", [0, 1])
async def test_forty_megabytes_after_base64_and_not_one_byte_more(
    database_url: str, tmp_path: Path, more: int
) -> None:
    """The sum of the base64 lengths counts; 30 MiB are exactly 40 MiB of it. Large ones become blobs."""
    whole = 30 * MIB + more
    first = b"A" * (20 * MIB // 3 * 3)
    second = b"B" * (whole - len(first) - 3)
    encoded = [base64.b64encode(first).decode(), base64.b64encode(second).decode().rstrip("=")]
    body = mail(attachments=[{"content": text, "filename": "x.bin"} for text in (*encoded, "AAAA")])
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        raw = json.dumps(body).encode()
        answer = await team.http.post("/emails", content=raw)
        if more:
            assert error(answer)[:2] == BAD
            assert await pillarbox.pool.fetchval("SELECT count(*) FROM attachments") == 0
            return
        assert answer.status_code == 200, answer.text[:200]
        items = await listed(team, answer.json()["id"])
        assert [item["size"] for item in items] == [len(first), len(second), 3]
        assert await content(team, items[0]) == first
