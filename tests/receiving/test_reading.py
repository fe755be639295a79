"""Received mail over the API (receiving.md 1 to 4 and 7; conventions 14; INB-07)."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any
from uuid import UUID

from kit.client import error
from kit.inbound_client import InboundClient, inbound_client, receiving_domain
from kit.manual_world import clock_of, manual_world
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.work.team_turns import MOST_OF_ONE, never
from pillarbox.receiving.reading import MessageReader

HELP = "help@harbor.example"

PLAN = bytes(range(256)) * 16

FIELDS = (
    "Received: from pier by quay.example with ESMTP for <board@quay.example>; Sat, 3 Oct 2026 08:40:00 +0000",
    'From: "Ada Quay" <ada@quay.example>',
    "To: Help <help@Harbor.example>, other@pier.example, HELP@pier.example, other@PIER.example",
    "Cc: =?utf-8?q?J=C3=BCrgen?= <j@pier.example>",
    "Bcc: hidden@pier.example",
    "Reply-To: desk@quay.example, Ada <ada@quay.example>",
    "Subject: =?utf-8?b?V2hlcmUgaXMgYmVydGggMTI/?=",
    "Message-ID: <c81@quay.example>",
    "X-Twice: one",
    "X-Twice: two\r\n\tand more",
    "MIME-Version: 1.0",
)


def part(kind: str, body: str, *fields: str) -> str:
    return "\r\n".join([f"Content-Type: {kind}", *fields, "", body])


def mixed(*parts: str, fields: tuple[str, ...] = FIELDS) -> bytes:
    head = "\r\n".join([*fields, 'Content-Type: multipart/mixed; boundary="b1"'])
    return (head + "\r\n\r\n" + "".join(f"--b1\r\n{p}\r\n" for p in parts) + "--b1--\r\n").encode()


ENCODED = "Content-Transfer-Encoding: base64"
HTML = '<p>See <img src="cid:plan1"> and <a href="cid:plan1">it</a><img src="cid:gone"></p>'
LETTER = mixed(
    part("text/html; charset=utf-8", HTML),
    part("text/plain; charset=utf-8", "See plan\r\n.\r\nü"),
    part(
        'image/png; name="plan.png"',
        base64.b64encode(PLAN).decode(),
        ENCODED,
        "Content-ID: <plan1>",
        "Content-Disposition: inline",
    ),
    part(
        "text/html; name=evil.html",
        "<script>alert(1)</script>",
        "Content-Disposition: attachment;filename=x.html",
    ),
    part("application/octet-stream", base64.b64encode(b"no name").decode(), ENCODED),
)


async def harbor(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await receiving_domain(team)
    return team


async def stored(team: Team, post: InboundClient, raw: bytes = LETTER) -> str:
    """The id of a message that was just received."""
    answer = await post.deliver(raw, [HELP])
    assert answer.startswith("250 2.0.0 Ok, stored as "), answer
    return answer.split()[-1]


async def test_the_list_and_the_single_email_show_the_contracts_fields_in_its_order(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        email = await stored(team, post)
        listed = (await team.get("/emails/receiving")).json()
        assert list(listed) == ["object", "has_more", "data"]
        [item] = listed["data"]
        shown = (await team.get(f"/emails/receiving/{email}?html_format=cid")).json()
        assert " ".join(item) == (
            "id to from created_at subject bcc cc reply_to received_for message_id attachments"
        )
        assert " ".join(shown) == (
            "object id to from created_at subject html html_format text headers bcc cc reply_to received_for "
            "message_id raw attachments"
        )
        assert shown["object"] == "email"
        for name in item:
            assert item[name] == shown[name], name
        assert shown["to"] == ["help@Harbor.example", "other@pier.example", "HELP@pier.example"]
        assert shown["from"] == "Ada Quay <ada@quay.example>"
        assert shown["cc"] == ["j@pier.example"]
        assert shown["bcc"] == ["hidden@pier.example"]
        assert shown["reply_to"] == ["desk@quay.example", "ada@quay.example"]
        assert shown["subject"] == "Where is berth 12?"
        assert shown["created_at"] == "2026-10-03T08:15:00.000Z"
        assert shown["received_for"] == [HELP, "board@quay.example"]
        assert shown["message_id"] == "<c81@quay.example>"
        assert shown["html"] == HTML
        assert shown["text"] == "See plan\n.\nü"
        headers = shown["headers"]
        assert headers["x-twice"] == "one, two and more"
        assert headers["cc"] == "Jürgen <j@pier.example>"
        assert headers["subject"] == "Where is berth 12?"
        assert "authentication-results" not in headers
        assert [list(found) for found in shown["attachments"]] == [
            ["id", "filename", "content_type", "content_disposition", "content_id", "size"]
        ] * 3
        assert [list(found.values())[1:] for found in shown["attachments"]] == [
            ["plan.png", "image/png", "inline", "plan1", len(PLAN)],
            ["x.html", "text/html", "attachment", None, 25],
            [None, "application/octet-stream", None, None, 7],
        ]


async def test_what_a_mail_does_not_have_is_empty_and_never_missing(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        for raw in (b"\r\n", b"no header at all", b"Subject:\r\n\r\n", b"X-A: b"):
            email = await stored(team, post, raw)
            shown = (await team.get(f"/emails/receiving/{email}")).json()
            for name in ("to", "cc", "bcc", "reply_to", "attachments"):
                assert shown[name] == [], name
            assert (shown["from"], shown["subject"], shown["html"]) == ("", "", None)
            assert shown["html_format"] == "data_uri"
            assert shown["message_id"] == f"<{email}@mx.pillar.example>"
            assert shown["received_for"] == [HELP]
            assert isinstance(shown["headers"], dict)
            assert shown["raw"]["download_url"].startswith(pillarbox.app.kit.settings.public_url)


async def test_images_stand_in_the_html_unless_references_are_asked_for(
    database_url: str, tmp_path: Path
) -> None:
    """Section 3; for small messages and for large ones, of which only the image is read."""
    filler = part("application/zip", "z" * 300_000)
    large = LETTER.removesuffix(b"--b1--\r\n") + f"--b1\r\n{filler}\r\n--b1--\r\n".encode()
    data = f"data:image/png;base64,{base64.b64encode(PLAN).decode()}"
    async with manual_world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        for raw in (LETTER, large):
            email = await stored(team, post, raw)
            shown = (await team.get(f"/emails/receiving/{email}")).json()
            assert shown["html_format"] == "data_uri"
            assert shown["html"] == HTML.replace('src="cid:plan1"', f'src="{data}"')
            same = (await team.get(f"/emails/receiving/{email}?html_format=data_uri")).json()
            assert same["html"] == shown["html"]
            plain = (await team.get(f"/emails/receiving/{email}?html_format=cid")).json()
            assert (plain["html"], plain["html_format"]) == (HTML, "cid")
            for wrong in ("", "CID", "inline"):
                answer = await team.get(f"/emails/receiving/{email}?html_format={wrong}")
                assert error(answer)[:2] == (422, "validation_error")


async def test_html_that_would_be_too_long_comes_with_references(pillarbox: World) -> None:
    """Section 3, the size guard, with a limit for the test."""
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        email = await stored(team, post)
        for longest, form in ((6000, "data_uri"), (5000, "cid"), (100, "cid")):
            pillarbox.app.need(MessageReader).longest = longest
            shown = (await team.get(f"/emails/receiving/{email}")).json()
            assert shown["html_format"] == form
            assert (shown["html"] == HTML) == (form == "cid")


async def test_attachments_have_links_and_leave_out_what_they_lack(pillarbox: World) -> None:
    """Section 4."""
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        email = await stored(team, post)
        listed = (await team.get(f"/emails/receiving/{email}/attachments")).json()
        assert (listed["object"], listed["has_more"]) == ("list", False)
        image, page, unnamed = listed["data"]
        assert " ".join(image) == (
            "id filename size content_type content_disposition content_id download_url expires_at"
        )
        assert " ".join(page) == "id filename size content_type content_disposition download_url expires_at"
        assert " ".join(unnamed) == "id size content_type content_disposition download_url expires_at"
        dispositions = [found["content_disposition"] for found in listed["data"]]
        assert dispositions == ["inline", "attachment", "attachment"]
        assert image["expires_at"] == "2026-10-03T09:15:00.000Z"
        one = (await team.get(f"/emails/receiving/{email}/attachments/{image['id']}")).json()
        assert list(one) == ["object", *image]
        assert one["object"] == "attachment"
        first = (await team.get(f"/emails/receiving/{email}/attachments?limit=1")).json()
        assert ([f["id"] for f in first["data"]], first["has_more"]) == ([image["id"]], True)
        rest = (await team.get(f"/emails/receiving/{email}/attachments?after={image['id']}")).json()
        assert [f["id"] for f in rest["data"]] == [page["id"], unnamed["id"]]
        before = (
            await team.get(f"/emails/receiving/{email}/attachments?limit=1&before={unnamed['id']}")
        ).json()
        assert ([f["id"] for f in before["data"]], before["has_more"]) == ([page["id"]], True)


async def test_a_part_that_the_html_shows_is_inline_whatever_it_says(
    database_url: str, tmp_path: Path
) -> None:
    raw = mixed(
        part("text/html", '<img src="cid:a"><img src="cid:b%20c">'),
        part("image/png", "x", "Content-ID: <a>"),
        part("image/png", "x", "Content-ID: <b c>", "Content-Disposition: attachment"),
        part("image/png", "x", "Content-ID: <d>"),
        part("image/png", "x", "Content-Disposition: form-data"),
    )
    async with manual_world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        email = await stored(team, post, raw)
        listed = (await team.get(f"/emails/receiving/{email}/attachments")).json()["data"]
        assert [f["content_disposition"] for f in listed] == ["inline", "inline", "attachment", "attachment"]
        shown = (await team.get(f"/emails/receiving/{email}")).json()["attachments"]
        assert [f["content_disposition"] for f in shown] == [None, "attachment", None, "attachment"]


async def test_a_link_gives_the_bytes_and_pieces_of_them_for_an_hour(pillarbox: World) -> None:
    """Conventions 14, INB-07: nothing of it is run by a browser; HEAD, ranges, an end, no forgery."""
    async with inbound_client(pillarbox) as post:
        team, anyone = await harbor(pillarbox), pillarbox.client(None)
        email = await stored(team, post)
        raw = (await team.get(f"/emails/receiving/{email}")).json()["raw"]["download_url"]
        image, page, unnamed = (await team.get(f"/emails/receiving/{email}/attachments")).json()["data"]
        for link, kind, body in (
            (raw, "message/rfc822", None),
            (image["download_url"], "image/png", PLAN),
            (page["download_url"], "text/html", b"<script>alert(1)</script>"),
            (unnamed["download_url"], "application/octet-stream", b"no name"),
        ):
            whole = await anyone.get(link)
            assert whole.status_code == 200
            assert body is None or whole.content == body
            assert whole.headers["content-type"] == kind
            assert whole.headers["content-length"] == str(len(whole.content))
            assert whole.headers["content-disposition"].startswith("attachment; filename=")
            assert whole.headers["x-content-type-options"] == "nosniff"
            assert whole.headers["content-security-policy"] == "sandbox; default-src 'none'"
            head = await anyone.head(link)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == whole.headers["content-length"]
            size = len(whole.content)
            for asked, start, end in (
                ("bytes=0-0", 0, 1),
                ("bytes=3-6", 3, 7),
                ("bytes=2-", 2, size),
                ("bytes=-5", size - 5, size),
                (f"bytes=1-{size * 2}", 1, size),
            ):
                piece = await anyone.get(link, headers={"range": asked})
                assert piece.status_code == 206
                assert piece.content == whole.content[start:end], asked
                assert piece.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
            assert (await anyone.get(link, headers={"range": f"bytes={size}-"})).status_code == 416
            spoilt = link[:-1] + ("A" if link[-1] != "A" else "B")
            assert error(await anyone.get(spoilt))[:2] == (403, "validation_error")
        assert (await anyone.get(raw)).content.endswith(LETTER)
        clock_of(pillarbox).advance(3601)
        for link in (raw, image["download_url"]):
            assert error(await anyone.get(link))[:2] == (403, "validation_error")


async def test_links_of_another_team_lead_nowhere(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team, other = await harbor(pillarbox), await pillarbox.team("Quay")
        email = await stored(team, post)
        [image, *_] = (await team.get(f"/emails/receiving/{email}")).json()["attachments"]
        app, anyone = pillarbox.app, pillarbox.client(None)
        for kind, found in (("received", email), ("received-attachment", image["id"]), ("attachment", email)):
            link, _ = app.need(FileLinks).link(kind, other.id, UUID(found))
            assert error(await anyone.get(link)) == (404, "not_found", "File not found")


async def test_a_large_message_is_downloaded_in_pieces(database_url: str, tmp_path: Path) -> None:
    """Its trace fields are in the row and the rest in the blob: ranges cross the seam."""
    body = base64.b64encode(PLAN * 80).decode()
    raw = mixed(part("image/png", body, ENCODED, "Content-Disposition: attachment; filename=big.png"))
    async with manual_world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team, anyone = await harbor(pillarbox), pillarbox.client(None)
        email = await stored(team, post, raw)
        link = (await team.get(f"/emails/receiving/{email}")).json()["raw"]["download_url"]
        whole = (await anyone.get(link)).content
        assert whole.endswith(raw)
        seam = len(whole) - len(raw)
        for start, end in (
            (0, seam),
            (seam - 5, seam + 5),
            (seam, seam + 1),
            (seam + 300_000, seam + 300_010),
        ):
            piece = await anyone.get(link, headers={"range": f"bytes={start}-{end - 1}"})
            assert piece.content == whole[start:end]
        [big] = (await team.get(f"/emails/receiving/{email}/attachments")).json()["data"]
        assert big["size"] == len(PLAN) * 80
        assert (await anyone.get(big["download_url"])).content == PLAN * 80
        piece = await anyone.get(big["download_url"], headers={"range": "bytes=262140-262150"})
        assert piece.content == (PLAN * 80)[262140:262151]


async def test_what_is_not_there_is_said_in_the_contracts_words(pillarbox: World) -> None:
    """Section 9; an id of a sent email is no received one, nor the other way round."""
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        email, sent = await stored(team, post), await team.send()
        for path, expected in (
            (f"/emails/receiving/{sent}", (404, "not_found", "Email not found")),
            (f"/emails/receiving/{sent}/attachments", (404, "not_found", "Email not found")),
            (f"/emails/receiving/{sent}/attachments/{sent}", (404, "not_found", "Email not found")),
            (f"/emails/receiving/{email}/attachments/{sent}", (404, "not_found", "Attachment not found")),
            (f"/emails/{email}", (404, "not_found", "Email not found")),
        ):
            assert error(await team.get(path)) == expected, path
        for path in (
            "/emails/receiving/x",
            "/emails/receiving/x/attachments",
            f"/emails/receiving/{email}/attachments/x",
        ):
            assert error(await team.get(path))[:2] == (422, "invalid_parameter"), path
        for query in ("limit=0", "limit=101", "limit=x", "after=x", f"after={email}&before={email}"):
            for path in ("/emails/receiving", f"/emails/receiving/{email}/attachments"):
                assert error(await team.get(f"{path}?{query}"))[:2] == (422, "validation_error"), query


async def test_a_sending_key_sees_no_received_mail(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        email = await stored(team, post)
        sender = team.using(await team.key(permission="sending_access"))
        for path in ("", f"/{email}", f"/{email}/attachments"):
            assert error(await sender.get(f"/emails/receiving{path}"))[:2] == (401, "restricted_api_key")


async def test_the_list_is_walked_from_the_newest(pillarbox: World) -> None:
    """Section 2: whole without `limit`, newest first, in pages both ways."""
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        ids = []
        for number in range(25):
            ids.insert(0, await stored(team, post, f"Subject: {number}\r\n\r\n{number}\r\n".encode()))
        assert await listed(team, "") == (ids, False)
        assert await listed(team, "?limit=1") == (ids[:1], True)
        assert await listed(team, f"?limit=10&after={ids[9]}") == (ids[10:20], True)
        assert await listed(team, f"?limit=10&after={ids[19]}") == (ids[20:], False)
        assert await listed(team, f"?limit=10&before={ids[15]}") == (ids[5:15], True)
        assert await listed(team, f"?limit=10&before={ids[5]}") == (ids[:5], False)
        assert await listed(team, f"?after={ids[2]}") == (ids[3:], False)


async def listed(team: Team, query: str) -> tuple[list[str], bool]:
    found = (await team.get(f"/emails/receiving{query}")).json()
    return [item["id"] for item in found["data"]], found["has_more"]


async def test_a_received_email_is_shared_by_a_link(pillarbox: World) -> None:
    """emails.md 5.3: a received id too; its pictures stand in the page, its bcc does not."""
    async with inbound_client(pillarbox) as post:
        team, anyone = await harbor(pillarbox), pillarbox.client(None)
        email = await stored(team, post)
        shared = await team.post(f"/emails/{email}/share", {"expires_in": "1h"})
        assert list(shared.json()) == ["object", "id", "url"]
        page = await anyone.get(shared.json()["url"])
        assert page.status_code == 200
        for text in ("ada@quay.example", "j@pier.example", "Where is berth 12?", "x.html"):
            assert text in page.text
        assert "hidden@pier.example" not in page.text
        assert base64.b64encode(PLAN).decode()[:200] in page.text
        clock_of(pillarbox).advance(3601)
        assert (await anyone.get(shared.json()["url"])).status_code == 410
        other = await pillarbox.team("Quay")
        assert error(await other.post(f"/emails/{email}/share", {})) == (404, "not_found", "Email not found")


async def test_webhooks_are_told_of_every_message(pillarbox: World) -> None:
    """Section 7: metadata alone, in the contract's order; spam included."""
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        other = await hook(team, "email.sent")
        told = await hook(team, "email.received")
        email = await stored(team, post)
        [event] = await told.payloads()
        assert await other.payloads() == []
        shown = (await team.get(f"/emails/receiving/{email}")).json()
        assert list(event) == ["type", "created_at", "data"]
        assert event["type"] == "email.received"
        data: dict[str, Any] = event["data"]
        assert " ".join(data) == (
            "email_id created_at from to bcc cc received_for message_id subject attachments"
        )
        assert data["email_id"] == email
        for name in ("created_at", "from", "to", "bcc", "cc", "received_for", "message_id", "subject"):
            assert data[name] == shown[name], name
        assert data["attachments"] == [
            {name: value for name, value in found.items() if name != "size"} for found in shown["attachments"]
        ]


async def test_received_mail_is_no_figure_of_sent_mail(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        await stored(team, post)
        for table in ("metric_increments", "timeline", "emails"):
            assert await pillarbox.pool.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_large_emails_are_read_in_turn_and_small_ones_at_once(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        team = await harbor(pillarbox)
        small = await stored(team, post)
        large = await stored(team, post, mixed(part("text/plain", "Where is berth 12?\r\n" * 20_000)))
        async with pillarbox.app.need(MessageReader).turn(UUID(int=1), 100 * 1024 * 1024, never):
            asked = [
                asyncio.create_task(team.get(f"/emails/receiving/{large}")) for _ in range(MOST_OF_ONE + 1)
            ]
            [refused], waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert len(waiting) == MOST_OF_ONE
            answer = refused.result()
            assert error(answer) == (
                503,
                "service_unavailable",
                "Too many large emails are being read. Try again in a moment.",
            )
            assert answer.headers["retry-after"] == "2"
            assert (await team.get(f"/emails/receiving/{small}")).status_code == 200
        for task in waiting:
            assert (await task).json()["text"].startswith("Where is berth 12?\n")
