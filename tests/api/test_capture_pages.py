"""The pages of captured mail, without a browser: what they hold and what their headers forbid."""

from __future__ import annotations

from uuid import UUID, uuid4

import httpx

from kit.captured import NOW, CaptureWorld
from pillarbox.capture.routes import SOURCE_SHOWN
from pillarbox.kernel.clock import SystemClock
from pillarbox.mail.message.compose import OutgoingFile
from pillarbox.timeline.plugin import timeline_of
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

MARKER = "<script>steal()</script><img src=x onerror=steal()>\"'"
LOGO = OutgoingFile("logo.png", "image/png", b"\x89PNG\r\n\x1a\n", cid="logo@harbor")
PAGE = OutgoingFile("page.html", "text/html", b"<script>steal()</script>")
DRAWING = OutgoingFile("drawing.svg", "image/svg+xml", b"<svg onload=steal()>", cid="drawing")


async def view(browser: httpx.AsyncClient, captured: UUID, name: str) -> str:
    answer = await browser.get(f"/capture/{captured}", params={"view": name})
    assert answer.status_code == 200
    return answer.text


async def test_the_list_is_newest_first_with_a_search(capture: CaptureWorld) -> None:
    async with capture.person() as browser:
        assert "No mail yet" in (await browser.get("/capture")).text
        await capture.mail(subject="First berth")
        await capture.mail(subject="Second berth", to=["bob@dock.example"])
        page = (await browser.get("/capture")).text
        assert "2 mails" in page
        assert page.index("Second berth") < page.index("First berth")
        found = (await browser.get("/capture", params={"q": "DOCK.example"})).text
        assert "Second berth" in found
        assert "First berth" not in found
        assert "No mail matches" in (await browser.get("/capture", params={"q": "%"})).text


async def test_the_list_turns_pages_both_ways(capture: CaptureWorld) -> None:
    async with capture.person() as browser:
        for n in range(52):
            await capture.mail(subject=f"Mail {n:02}")
        first = (await browser.get("/capture")).text
        assert "Newer" not in first
        older = first.split('<a href="/capture?after=')[1].split('"')[0]
        second = (await browser.get("/capture", params={"after": older})).text
        assert "Mail 01" in second
        assert "Mail 02" not in second
        assert "Older" not in second
        newer = second.split('<a href="/capture?before=')[1].split('"')[0]
        assert "Mail 51" in (await browser.get("/capture", params={"before": newer})).text


async def test_every_view_of_a_mail(capture: CaptureWorld) -> None:
    async with capture.person() as browser:
        html = '<p>Go <a href="https://quay.example/x">www.bank.example</a><img src="cid:logo@harbor"></p>'
        email = await capture.mail(
            html=html, text="Go & stay", headers=[("X-Ref", "7")], attachments=[LOGO, PAGE]
        )
        captured = await capture.captured_id(email)
        page = (await browser.get(f"/capture/{captured}")).text
        assert f'src="/capture/{captured}/html"' in page
        assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in page
        assert "Go &amp; stay" in await view(browser, captured, "text")
        assert "X-Ref" in await view(browser, captured, "headers")
        assert "boundary" in await view(browser, captured, "raw")
        assert "page.html" in await view(browser, captured, "attachments")
        links = await view(browser, captured, "links")
        assert 'href="https://quay.example/x" target="_blank" rel="noopener noreferrer"' in links
        assert "The text names www.bank.example, the link leads to quay.example." in links
        assert str(email) in page
        assert "token@send.harbor.example" in page


async def test_the_raw_message_is_the_message(capture: CaptureWorld) -> None:
    async with capture.person() as browser:
        big = OutgoingFile("map.bin", "application/octet-stream", bytes(500_000))
        for attachments in ([], [big]):
            email = await capture.mail(attachments=attachments)
            captured = await capture.captured_id(email)
            row = await capture.row("SELECT data, blob, size FROM captured WHERE id = $1", captured)
            kept = row["data"] if row["blob"] is None else await capture.blobs.get(row["blob"])
            answer = await browser.get(f"/capture/{captured}/raw")
            assert answer.content == kept
            assert answer.headers["content-type"] == "message/rfc822"
            assert answer.headers["content-disposition"].startswith(f'attachment; filename="{email}.eml"')
            assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert row["size"] > SOURCE_SHOWN
        assert "Only the beginning is shown" in await view(browser, captured, "raw")


async def test_the_frame_can_load_its_own_pictures_and_nothing_else(capture: CaptureWorld) -> None:
    """UI-02, UI-03: a policy of its own; a picture carries a key, since a frame sends no cookie."""
    async with capture.person() as browser:
        html = '<img src="cid:logo@harbor"><img src="cid:drawing"><img src="https://spy.example/p.gif">'
        captured = await capture.captured_id(await capture.mail(html=html, attachments=[LOGO, DRAWING]))
        answer = await browser.get(f"/capture/{captured}/html")
        policy = answer.headers["content-security-policy"]
        assert policy == (
            f"default-src 'none'; img-src data: {capture.http_server.url}/capture/{captured}/parts/; "
            "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
            "sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'"
        )
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "spy.example" not in answer.text
        sources = [piece.split('"')[0] for piece in answer.text.split('src="')[1:]]
        assert len(sources) == 1
        async with capture.http_server.client() as frame:
            picture = await frame.get(sources[0])
            assert (picture.status_code, picture.content) == (200, LOGO.content)
            assert picture.headers["content-type"] == "image/png"
            assert picture.headers["x-content-type-options"] == "nosniff"
            assert "content-disposition" not in picture.headers
            assert (await frame.get(sources[0].split("?")[0])).status_code == 403
        assert "1 picture from elsewhere is not loaded" in await view(browser, captured, "html")


async def test_attachments_are_always_downloads(capture: CaptureWorld) -> None:
    """No attachment is shown under our origin, whatever its type says."""
    async with capture.person() as browser:
        captured = await capture.captured_id(await capture.mail(attachments=[LOGO, PAGE, DRAWING]))
        parts = f"/capture/{captured}/parts"
        found = {}
        for number in range(8):
            answer = await browser.get(f"{parts}/{number}")
            if answer.status_code == 200:
                assert answer.headers["content-disposition"].startswith("attachment; ")
                assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
                found[answer.content] = answer.headers["content-type"]
        assert found == {
            LOGO.content: "image/png",
            PAGE.content: "text/html",
            DRAWING.content: "image/svg+xml",
        }
        for path in (
            f"{parts}/0",
            f"{parts}/99",
            f"{parts}/99999",
            f"{parts}/x",
            f"{parts}/²",
            "/capture/x/parts/1",
        ):
            assert (await browser.get(path)).status_code == 404, path


async def plant(world: CaptureWorld) -> UUID:
    """A mail with the marker wherever a sender can put one, and its history; the mail's id."""
    team, email = uuid4(), uuid4()
    quoted = MARKER.replace('"', '\\"')
    await world.mail(
        team=team,
        subject=MARKER,
        sender=f'"{quoted}" <notes@harbor.example>',
        html=f"<p>{MARKER}</p><a href='javascript:steal()'>{MARKER}</a>",
        text=MARKER,
        headers=[("X-Marker", MARKER)],
        attachments=[
            OutgoingFile(MARKER, "text/html", MARKER.encode()),
            OutgoingFile("a", "image/png", b"", cid="x'y"),
        ],
    )
    captured: UUID = await world.http_server.pool.fetchval("SELECT id FROM captured")
    email = await world.http_server.pool.fetchval("SELECT email_id FROM captured")
    await history_of(world, team, email, MARKER)
    return captured


async def history_of(world: CaptureWorld, team: UUID, email: UUID, reply: str) -> None:
    """An email with one recipient whose server said `reply`."""
    pool = world.http_server.pool
    await pool.execute(
        "INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,"
        " domain_name, last_event, last_event_at)"
        " VALUES ($1, $2, $3, $2, '', '', '[]', '', '', 'queued', $3)",
        team,
        email,
        NOW,
    )
    await pool.execute(
        "INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)"
        " VALUES ($1, $2, 0, 'to', $3, $3, 0, 'queued')",
        team,
        email,
        f"{reply}@x",
    )
    async with pool.acquire() as conn, conn.transaction():
        detail = EventDetail(host="capture", reply=reply)
        entry = TimelineEntry(
            team_id=team, email_id=email, position=0, kind=EventKind.DELIVERED, at=NOW, detail=detail
        )
        await timeline_of(SystemClock()).record(conn, [entry])


async def test_whatever_a_mail_holds_is_text_on_every_page(capture: CaptureWorld) -> None:
    """UI-01: one marker in every field, on every page."""
    async with capture.person() as browser:
        captured = await plant(capture)
        views = ("html", "text", "headers", "raw", "attachments", "links", "events")
        pages = ["/capture", f"/capture?q={MARKER}", *(f"/capture/{captured}?view={name}" for name in views)]
        shown = 0
        for path in pages:
            answer = await browser.get(path)
            assert answer.status_code == 200
            assert "<script" not in answer.text
            assert "<img" not in answer.text
            assert "'self'" in answer.headers["content-security-policy"]
            assert "script-src" not in answer.headers["content-security-policy"]
            shown += answer.text.count("&lt;script&gt;steal()")
        assert shown > 15
        frame = (await browser.get(f"/capture/{captured}/html")).text
        assert "steal" not in frame.replace("&lt;script&gt;steal()&lt;/script&gt;", "")


async def test_the_history_of_the_email_stands_beside_its_mail(capture: CaptureWorld) -> None:
    async with capture.person() as browser:
        team = uuid4()
        email = await capture.mail(team=team)
        captured = await capture.captured_id(email)
        assert "The email is gone" in await view(browser, captured, "events")
        await history_of(capture, team, email, "250 kept")
        events = await view(browser, captured, "events")
        assert "delivered" in events
        assert "250 kept" in events


async def test_every_page_has_the_headers_that_keep_it_apart(capture: CaptureWorld) -> None:
    """UI-04."""
    async with capture.person() as browser:
        captured = await capture.captured_id(await capture.mail())
        for path in ("/capture", f"/capture/{captured}", f"/capture/{UUID(int=1)}", "/capture/x"):
            headers = (await browser.get(path)).headers
            policy = dict(
                part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["base-uri"] == "'none'"
            assert policy["frame-ancestors"] == "'none'"
            assert policy["form-action"] == "'self'"
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"
            assert headers["x-robots-tag"] == "noindex"


async def test_an_unknown_mail_is_a_page_too(capture: CaptureWorld) -> None:
    async with capture.person() as browser:
        for path in (
            f"/capture/{UUID(int=1)}",
            "/capture/x",
            f"/capture/{UUID(int=1)}/html",
            "/capture/x/raw",
        ):
            answer = await browser.get(path)
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert "All captured mail" in answer.text
        assert (await browser.get("/capture?after=x")).status_code == 422
