"""Mail as it really is, through the real server (receiving.md 10; INB-02, INB-03, INB-04)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kit.inbound_client import InboundClient, InboundSession, inbound_client, receiving_domain
from kit.manual_world import manual_world
from kit.world import Team, World

HELP = "help@harbor.example"
MULTIPART = b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n"
TEXT = b"Content-Type: text/plain\r\n\r\nhello\r\n"
SEED = 20261003
FORMS = (
    "<img src='cid:a'><td background=cid:a><img srcset=\"cid:a 2x, cid:b 1x\">"
    '<i style="background:url(cid:a)">'
)


def nested(depth: int) -> bytes:
    body = TEXT
    for level in range(depth):
        mark = b"l%d" % level
        body = b"Content-Type: multipart/mixed; boundary=%s\r\n\r\n--%s\r\n%s\r\n--%s--\r\n" % (
            mark,
            mark,
            body,
            mark,
        )
    return b"Subject: nested\r\n" + body


CORPUS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "nested multiparts": (nested(10), {"text": "hello\n"}),
    "more levels than are divided": (nested(200), {"subject": "nested"}),
    "no end boundary": (MULTIPART + b"\r\n--b\r\n" + TEXT, {"text": "hello\n"}),
    "a boundary that never comes": (MULTIPART + b"\r\nhello", {"html": None}),
    "8 bits without a charset": (b"Subject: x\r\n\r\nsch\xf6n \x80\r\n", {"text": "schön €\n"}),
    "a charset that lies": (
        b"Content-Type: text/plain; charset=us-ascii\r\n\r\nsch\xc3\xb6n\r\n",
        {"text": "schön\n"},
    ),
    "a charset that nobody knows": (
        b"Content-Type: text/plain; charset=x-tide\r\n\r\nsch\xc3\xb6n\r\n",
        {"text": "schön\n"},
    ),
    "utf-7": (
        b"Content-Type: text/plain; charset=utf-7\r\n\r\n+ADw-b\r\n",
        {"text": "<b\n"},
    ),
    "utf-7 in html is not decoded": (
        b"Content-Type: text/html; charset=utf-7\r\n\r\n+ADw-b\r\n",
        {"html": "+ADw-b\r\n"},
    ),
    "addresses without a domain": (
        b"To: root, postmaster, ben@quay.example\r\nCc: <ada>\r\n"
        b"Reply-To: Doe, John <j@quay.example>\r\n\r\nx",
        {"to": ["root", "postmaster", "ben@quay.example"], "cc": ["ada"], "reply_to": ["j@quay.example"]},
    ),
    "an RFC 2231 name": (
        MULTIPART
        + b"\r\n--b\r\n"
        + TEXT
        + b"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment;"
        b" filename*0*=UTF-8''t%C3%A4g;\r\n filename*1=lich.pdf\r\n\r\nx\r\n--b--\r\n",
        {"names": ["täglich.pdf"]},
    ),
    "an encoded word as a name": (
        b"Content-Type: application/pdf; name==?utf-8?q?t=C3=A4g.pdf?=\r\n\r\nx",
        {"names": ["täg.pdf"], "text": None},
    ),
    "two parts with one Content-ID": (
        MULTIPART + b"\r\n--b\r\nContent-Type: text/html\r\n\r\n<img src=cid:a>\r\n"
        b"--b\r\nContent-Type: image/gif\r\nContent-ID: <a>\r\n\r\nfirst\r\n"
        b"--b\r\nContent-Type: image/gif\r\nContent-ID: <a>\r\n\r\nsecond\r\n--b--\r\n",
        {"html": "<img src=data:image/gif;base64,Zmlyc3Q=>"},
    ),
    "every form of a reference": (
        MULTIPART
        + b"\r\n--b\r\nContent-Type: text/html\r\n\r\n"
        + FORMS.encode()
        + b"\r\n--b\r\nContent-Type: image/gif\r\nContent-ID: <a>\r\n\r\nA\r\n"
        b"--b\r\nContent-Type: text/css\r\nContent-ID: <b>\r\n\r\nB\r\n--b--\r\n",
        {"html": FORMS.replace("cid:a", "data:image/gif;base64,QQ==")},
    ),
    "nothing but a header": (b"Subject: empty\r\n\r\n", {"text": "", "subject": "empty"}),
    "nothing but an attachment": (
        b"Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n",
        {"text": None, "sizes": [4]},
    ),
    "a calendar": (
        MULTIPART
        + b"\r\n--b\r\n"
        + TEXT
        + b"--b\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR"
        b"\r\n--b--\r\n",
        {"types": ["text/calendar"]},
    ),
    "an S/MIME signature": (
        b"Content-Type: multipart/signed; boundary=b; protocol=x\r\n\r\n--b\r\n"
        + TEXT
        + b"--b\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nx\r\n--b--\r\n",
        {"types": ["application/pkcs7-signature"], "names": ["smime.p7s"]},
    ),
    "a message in the message": (
        MULTIPART
        + b"\r\n--b\r\n"
        + TEXT
        + b"--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: Old tide\r\n\r\nx\r\n"
        b"--b--\r\n",
        {"types": ["message/rfc822"], "names": ["Old tide.eml"]},
    ),
    "a TNEF file": (
        b"Content-Type: application/ms-tnef; name=winmail.dat\r\n\r\nx",
        {"names": ["winmail.dat"]},
    ),
    "a uuencoded file": (
        b"Subject: uu\r\n\r\nsee\r\nbegin 644 a.txt\r\n#:&D*\r\n`\r\nend\r\n",
        {"names": ["a.txt"], "sizes": [3]},
    ),
    "bad base64": (
        b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\naGVs!!!bG8\r\n",
        {"text": "hello"},
    ),
    "a header of ten thousand lines": (
        b"Subject: long\r\nX-Long: a" + b"\r\n b" * 10_000 + b"\r\n\r\nx\r\n",
        {"subject": "long", "text": "x\n"},
    ),
    "a header of a megabyte": (b"X-Wide: " + b"w" * 1_000_000 + b"\r\nSubject: wide\r\n\r\nx\r\n", {}),
    "five thousand fields": (b"X-Many: 1\r\n" * 5000 + b"Subject: late\r\n\r\nx\r\n", {"text": "x\n"}),
    "five thousand parts": (MULTIPART + b"\r\n" + b"--b\r\n\r\nx\r\n" * 5000 + b"--b--\r\n", {}),
    "8 bits in the header": (b"Subject: sch\xf6n\r\nFrom: \xff <a@b.example>\r\n\r\nx\r\n", {"text": "x\n"}),
    "an encoded word inside a character": (
        b"Subject: =?utf-8?b?w7w=?= =?utf-8?b?w7==?= =?utf-8?b?w7w=?=\r\n\r\nx\r\n",
        {"text": "x\n"},
    ),
    "a NUL in an encoded word": (b"Subject: =?utf-8?b?YQBi?=\r\n\r\nx\r\n", {"subject": "a\ufffdb"}),
    "a NUL in an encoded body": (
        b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nYQBi\r\n",
        {"text": "a\ufffdb"},
    ),
    "a NUL in names and types": (
        MULTIPART
        + b"\r\n--b\r\n"
        + TEXT
        + b"--b\r\nContent-Type: image/gif; name==?utf-8?b?YQBi?=\r\nContent-ID:"
        b" <=?utf-8?b?YQBi?=>\r\n\r\nx\r\n--b--\r\n",
        {"types": ["image/gif"]},
    ),
    "a line of a megabyte": (b"Subject: x\r\n\r\n" + b"y" * 1_000_000 + b"\r\n", {}),
}
"""A message, and what of it is shown."""


async def stored(team: Team, post: InboundClient, raw: bytes) -> dict[str, Any]:
    answer = await post.deliver(raw, [HELP])
    assert answer.startswith("250 2.0.0 Ok, stored as "), answer
    return dict((await team.get(f"/emails/receiving/{answer.split()[-1]}")).json())


async def test_everything_is_stored_and_shown_as_far_as_it_can_be(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team, anyone = await pillarbox.team(), pillarbox.client(None)
        await receiving_domain(team)
        wrong: list[object] = []
        for name, (raw, expected) in CORPUS.items():
            shown = await stored(team, post, raw)
            parts = shown["attachments"]
            shown["names"] = [part["filename"] for part in parts if part["filename"]]
            shown["types"] = [part["content_type"] for part in parts]
            shown["sizes"] = [part["size"] for part in parts]
            wrong += [(name, f, shown[f], v) for f, v in expected.items() if shown[f] != v]
            whole = (await anyone.get(shown["raw"]["download_url"])).content
            assert whole.removesuffix(b"\r\n").endswith(raw.removesuffix(b"\r\n")), name
            links = (await team.get(f"/emails/receiving/{shown['id']}/attachments?limit=5")).json()["data"]
            for link in links:
                got = await anyone.get(link["download_url"])
                assert (got.status_code, len(got.content)) == (200, link["size"]), name
        listed = (await team.get("/emails/receiving")).json()["data"]
        assert len(listed) == len(CORPUS)
        assert wrong == []


async def test_what_was_not_wholly_divided_says_so(pillarbox: World) -> None:
    """INB-03: a flag, and all of it in the raw message."""
    async with inbound_client(pillarbox) as post:
        team = await pillarbox.team()
        await receiving_domain(team)
        for name, is_complete in (
            ("five thousand parts", False),
            ("five thousand fields", False),
            ("a calendar", True),
        ):
            shown = await stored(team, post, CORPUS[name][0])
            [row] = await pillarbox.pool.fetch(
                "SELECT complete FROM received_emails WHERE id = $1", shown["id"]
            )
            assert row["complete"] is is_complete, name


@pytest.mark.parametrize("seed", [SEED, pytest.param(SEED + 1, marks=pytest.mark.slow)])
async def test_whatever_comes_gets_one_answer_and_can_be_read(
    database_url: str, tmp_path: Path, seed: int
) -> None:
    """Malformed by mutation: one reply each, and every stored message is listed, shown and downloaded."""
    chance = random.Random(seed)
    originals = [raw for raw, _ in CORPUS.values() if len(raw) < 20_000]
    async with manual_world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await pillarbox.team()
        await receiving_domain(team)
        dialogue = await post.connect()
        for _ in range(150 if seed == SEED else 1500):
            answer = await mutated(dialogue, chance, originals)
            assert answer[:3] in ("250", "550"), answer
            if "stored as" in answer:
                shown = await team.get(f"/emails/receiving/{answer.split()[-1]}")
                assert shown.status_code == 200
                for part in shown.json()["attachments"][:2]:
                    path = f"/emails/receiving/{shown.json()['id']}/attachments/{part['id']}"
                    link = (await team.get(path)).json()["download_url"]
                    assert (await pillarbox.client(None).get(link)).status_code == 200
        assert (await team.get("/emails/receiving")).status_code == 200


async def mutated(dialogue: InboundSession, chance: random.Random, originals: list[bytes]) -> str:
    raw = bytearray(chance.choice(originals))
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(raw) + 1)
        match chance.randrange(4):
            case 0:
                raw[at : at + chance.randint(1, 20)] = b""
            case 1:
                raw[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
            case 2:
                raw[at:at] = chance.choice(
                    [b"\r\n", b"--b\r\n", b'"', b"=?utf-8?q?", b";", b"\r\n\r\n", b"--b--"]
                )
            case _:
                raw[at : at + 1] = bytes([chance.randrange(256)])
        raw = raw or bytearray(b"x")
    await dialogue.offer([HELP])
    return await dialogue.text(bytes(raw).replace(b"\r\n.\r\n", b"\r\n"))
