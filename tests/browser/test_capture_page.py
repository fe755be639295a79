"""Hostile mail in a real browser: no script runs, nothing is asked for, and each wall holds alone."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from uuid import UUID, uuid4

import asyncpg
import pytest

from kit.browser import TOO_WIDE, Chromium, Tab, chromium
from kit.canary import Canary, canary
from kit.captured import NOW, RING, TOKEN, CaptureWorld
from pillarbox.capture.message import CapturedPart
from pillarbox.capture.queries import CapturedRow
from pillarbox.capture.reading import Reader
from pillarbox.capture.routes import SANDBOX
from pillarbox.dashboard import mail_html
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.pages import message_page
from pillarbox.dashboard.shared import SharedPages
from pillarbox.emails.sharing.shared_page import SharedEmail
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.team_turns import IsGone, never
from pillarbox.mail.message.compose import OutgoingFile

RUN = "fetch('{bird}/script');alert('script')"

SCRIPTS = (
    "<script>{run}</script>",
    "<SCRIPT/x>{run}</SCRIPT>",
    '<img src=x onerror="{run}">',
    '<svg onload="{run}"></svg>',
    "<svg><script>{run}</script></svg>",
    '<svg><animate onbegin="{run}" attributeName=x dur=1s></svg>',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={run}&gt;">',
    '<body onload="{run}">',
    '<iframe srcdoc="<script>{run}</script>"></iframe>',
    '<iframe src="javascript:{run}"></iframe>',
    '<object data="javascript:{run}"></object>',
    '<embed src="javascript:{run}">',
    '<details open ontoggle="{run}">x</details>',
    '<input autofocus onfocus="{run}">',
    '<video><source onerror="{run}"></video>',
    '<style onload="{run}"></style>',
    '<noscript><p title="</noscript><img src=x onerror={run}>">',
    "<template><script>{run}</script></template>",
    '<a href="javascript:{run}" id=bait>bait</a><a href="java\tscript:{run}" id=bait2>bait</a>',
    '<form action="javascript:{run}"><button>x</button></form>',
    '<meta http-equiv=refresh content="0;url=javascript:{run}">',
    '<base href="javascript:{run}//">',
    '<marquee onstart="{run}">x</marquee>',
    '<select onfocus="{run}" autofocus><option>x</select>',
    '<textarea></textarea><img src=x onerror="{run}">',
    '<img src="cid:x&quot; onerror=&quot;{run}">',
)

LOADS = (
    '<img src="{bird}/img"><img srcset="{bird}/srcset 1x"><img src="//{host}/relative">',
    '<picture><source srcset="{bird}/source"><img></picture>',
    '<video poster="{bird}/poster" src="{bird}/video" autoplay></video>',
    '<audio src="{bird}/audio" autoplay></audio>',
    '<table background="{bird}/background"><tr><td background="{bird}/cell">x</td></tr></table>',
    '<p style="background:url({bird}/style)">x</p><p style="background-image:u\\72l({bird}/escape)">x</p>',
    "<p style=\"background:image-set('{bird}/set' 1x);list-style:url('{bird}/list')\">x</p>",
    '<p style=\'background:url("{bird}/quoted")\'>x</p><p style="content:url({bird}/content)">x</p>',
    "<style>@import url({bird}/import);@import '{bird}/import2';p{{background:url({bird}/sheet)}}</style>",
    "<style>@font-face{{font-family:f;src:url({bird}/font)}} *{{font-family:f}} </style>",
    "<style>@media all{{p{{background:url({bird}/media)}}}}</style>",
    "<style>p{{background:/**/url/**/({bird}/comment)}}</style>",
    "<style>p{{color:red}}}}@import '{bird}/late';{{</style><style><!-- @import '{bird}/cdo'; --></style>",
    '<link rel=stylesheet href="{bird}/link"><link rel=prefetch href="{bird}/prefetch">',
    '<link rel=icon href="{bird}/icon">',
    '<link rel=preload as=image href="{bird}/preload"><link rel=dns-prefetch href="{bird}">',
    '<svg><image href="{bird}/svg" xlink:href="{bird}/xlink"/><use href="{bird}/use#a"/></svg>',
    '<svg><filter id=f><feImage href="{bird}/fe"/></filter><rect filter="url(#f)"/></svg>',
    '<iframe src="{bird}/iframe"></iframe><object data="{bird}/object"></object><embed src="{bird}/embed">',
    '<input type=image src="{bird}/input"><body background="{bird}/body">',
    '<meta http-equiv=refresh content="0;url={bird}/refresh">',
    "<img src=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'%3E"
    "%3Cimage href='{bird}/data'/%3E%3C/svg%3E\">",
    '<base href="{bird}/base/"><img src="relative">',
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


def hostile(bird: Canary, *kinds: tuple[str, ...]) -> str:
    run = RUN.format(bird=bird.url)
    host = bird.url.removeprefix("http://")
    return "\n".join(text.format(run=run, bird=bird.url, host=host) for kind in kinds for text in kind)


async def visit(tab: Tab, bird: Canary, page: str, headers: dict[str, str] | None = None) -> None:
    """Look at a page without any wall but those in it."""
    bird.pages["/page"] = (page, headers or {})
    await tab.open(f"{bird.url}/page")


async def plant(world: CaptureWorld, bird: Canary) -> UUID:
    """A mail with hostile text in every place where a sender can put some."""
    html = hostile(bird, SCRIPTS, LOADS)
    marker = f"</title></bdi></pre>\"'><img src={bird.url}/marker onerror=alert(1)>"
    quoted = marker.replace('"', '\\"')
    email = await world.mail(
        subject=marker,
        sender=f'"{quoted}" <notes@harbor.example>',
        html=html,
        text=marker,
        headers=[("X-Marker", marker)],
        attachments=[
            OutgoingFile(marker, "image/png", b"x"),
            OutgoingFile("x.html", "text/html", html.encode()),
        ],
    )
    return await world.captured_id(email)


async def test_hostile_mail_runs_nothing_and_loads_nothing(browser: Chromium, capture: CaptureWorld) -> None:
    """UI-01, UI-02, UI-03, UI-04: every page of the capture view."""
    async with canary() as bird, browser.tab() as tab:
        captured = await plant(capture, bird)
        await tab.open(f"{capture.http_server.url}/capture?token={TOKEN}")
        assert await tab.run("location.search") == ""
        views = ("html", "text", "headers", "raw", "attachments", "links", "events")
        paths = [f"/capture/{captured}?view={view}" for view in views]
        for path in (*paths, f"/capture/{captured}/html", "/capture?q=%3Cimg%20src=x%20onerror=alert(1)%3E"):
            await tab.open(capture.http_server.url + path)
            assert await tab.run("document.scripts.length") == 0, path
        assert bird.asked == []
        assert tab.dialogs == []
        assert tab.violations == []


async def test_without_the_walls_the_same_mail_does_run_and_load(browser: Chromium) -> None:
    """The proof that the other tests of this file can fail."""
    async with canary() as bird, browser.tab() as tab:
        await visit(tab, bird, hostile(bird, SCRIPTS[:4]))
        await visit(tab, bird, hostile(bird, LOADS[:10]))
        assert {"/script", "/img", "/srcset", "/background", "/style", "/escape", "/import", "/sheet"} <= set(
            bird.asked
        )
        assert tab.dialogs


async def test_the_cleaning_holds_alone(browser: Chromium) -> None:
    """UI-02: the frame and its policy are off."""
    async with canary() as bird, browser.tab() as tab:
        each = [mail_html.clean(hostile(bird, (text,))) for text in (*SCRIPTS, *LOADS)]
        for cleaned in ([mail_html.clean(hostile(bird, SCRIPTS, LOADS))], each):
            styles = "\n".join(shown.styles for shown in cleaned)
            divs = [f'<div style="{escape(shown.body_style)}">{shown.body}</div>' for shown in cleaned]
            await visit(tab, bird, f"<style>{styles}</style>{''.join(divs)}")
            await tab.run("document.querySelectorAll('[id^=bait]').forEach(link => link.click())")
            assert (bird.asked, tab.dialogs) == ([], [])


async def test_the_policy_holds_alone(browser: Chromium) -> None:
    """UI-02: neither cleaned nor framed."""
    async with canary() as bird, browser.tab() as tab:
        policy = f"{mail_html.POLICY.format(images='data:')}; {SANDBOX}"
        # A refresh is a navigation, which no policy of a page forbids; the cleaning does.
        texts = [text for text in (*SCRIPTS, *LOADS) if "http-equiv=refresh" not in text]
        await visit(tab, bird, hostile(bird, tuple(texts)), {"content-security-policy": policy})
        assert (bird.asked, tab.dialogs) == ([], [])


async def test_the_sandbox_lets_no_script_run_alone(browser: Chromium) -> None:
    """UI-02: neither cleaned nor with a policy."""
    async with canary() as bird, browser.tab() as tab:
        frame = escape(hostile(bird, SCRIPTS))
        await visit(tab, bird, f'<iframe sandbox="allow-popups" srcdoc="{frame}"></iframe>')
        assert "/script" not in bird.asked
        assert tab.dialogs == []


class CountingReader(Reader):
    """The reader, with a note of the parts that were asked for."""

    def __init__(self, pool: asyncpg.Pool, blobs: BlobStore) -> None:
        super().__init__(pool, blobs, PageWork(), RING)
        self.parts: list[int] = []

    async def part(
        self, row: CapturedRow, number: int, is_gone: IsGone = never
    ) -> tuple[CapturedPart, bytes]:
        self.parts.append(number)
        return await super().part(row, number, is_gone)


async def test_the_mails_own_pictures_are_shown_in_the_frame(
    browser: Chromium, capture: CaptureWorld
) -> None:
    async with browser.tab() as tab:
        reader = CountingReader(capture.http_server.pool, capture.blobs)
        capture.http_server.services.add(reader, Reader)
        logo = OutgoingFile("logo.png", "image/png", b"\x89PNG", cid="logo")
        captured = await capture.captured_id(
            await capture.mail(html="<img src='cid:logo'>", attachments=[logo])
        )
        await tab.open(f"{capture.http_server.url}/capture?token={TOKEN}")
        await tab.open(f"{capture.http_server.url}/capture/{captured}")
        assert reader.parts == [2]
        assert tab.violations == []


async def test_the_clear_button_works_without_scripts(browser: Chromium, capture: CaptureWorld) -> None:
    """UI-06: a real browser sends what the check asks for."""
    async with browser.tab() as tab:
        await capture.mail()
        await tab.open(f"{capture.http_server.url}/capture?token={TOKEN}")
        await tab.submit("form[method=post]")
        assert await tab.run("document.querySelector('.empty').innerText.includes('No mail yet')")
        assert await capture.http_server.pool.fetchval("SELECT count(*) FROM captured") == 0


async def test_a_form_of_another_site_clears_nothing(browser: Chromium, capture: CaptureWorld) -> None:
    """UI-06: even where the browser would send the cookie (another port is the same site)."""
    async with canary() as bird, browser.tab() as tab:
        await capture.mail()
        await tab.open(f"{capture.http_server.url}/capture?token={TOKEN}")
        form = capture.guard.derived("form")
        target = f"{capture.http_server.url}/capture/clear"
        page = f'<form method=post action="{target}"><input name=form value="{form}"></form>'
        await visit(tab, bird, page)
        await tab.submit("form")
        assert await tab.run("document.body.innerText.includes('does not come from the capture page')")
        assert await capture.http_server.pool.fetchval("SELECT count(*) FROM captured") == 1


async def test_a_shared_email_runs_nothing_and_loads_nothing(browser: Chromium) -> None:
    """UI-01, UI-02, UI-03: the public page of a shared email."""
    async with canary() as bird, browser.tab() as tab:
        marker = f"</title></bdi></pre>\"'><img src={bird.url}/marker onerror=alert(1)>"
        shared = SharedEmail(
            sender=marker,
            to=[marker],
            cc=[marker],
            date=NOW,
            subject=marker,
            html=hostile(bird, SCRIPTS, LOADS),
            text=marker,
            attachments=[marker],
            pictures={},
        )
        work = PageWork()
        reply = await SharedPages(work).email(uuid4(), shared, never)
        work.close()
        await visit(tab, bird, reply.body.decode(), reply.headers)
        assert await tab.run("document.scripts.length") == 0
        assert (bird.asked, tab.dialogs, tab.violations) == ([], [], [])


async def test_the_capture_pages_keep_nobody_out(browser: Chromium, capture: CaptureWorld) -> None:
    async with browser.tab() as tab:
        await tab.open(f"{capture.http_server.url}/capture?token={TOKEN}")
        assert await tab.barriers() == []
        email = await capture.captured_id(await capture.mail(html="<p lang=en>Hello</p>"))
        views = [f"/capture/{email}?view={view}" for view in ("html", "text", "headers", "raw", "events")]
        for path in ("/capture", *views):
            await tab.open(capture.http_server.url + path)
            assert await tab.barriers() == [], path
        await tab.run("document.body.append(document.createElement('img'))")
        assert len(await tab.barriers()) == 1, "the check can fail"


NARROW_CELLS = """
    [...document.querySelectorAll('td, th, dd, li')]
        .filter(cell => cell.offsetParent !== null && cell.getBoundingClientRect().right > 0)
        .filter(cell => cell.innerText.trim().length > 8 && cell.clientWidth < 100)
        .map(cell => cell.innerText)
"""
EVENT = """
    INSERT INTO timeline (team_id, id, email_id, at, kind, detail) VALUES ($1, $2, $3, $4, 'bounced', $5)
"""
BOUNCE = '{"host": "mx.quay.example", "reply": "550 5.1.1 the mailbox of that recipient does not exist"}'
VIEWS = ("html", "text", "headers", "raw", "attachments", "links", "events")


async def test_on_a_phone_everything_can_be_read(browser: Chromium, capture: CaptureWorld) -> None:
    """No page is wider than the screen, and no cell so narrow that words stand letter below letter."""
    async with browser.tab() as tab:
        await tab.open(f"{capture.http_server.url}/capture?token={TOKEN}")
        long = "a-name-of-a-file-that-is-as-long-as-people-make-them-final-version-2.pdf"
        email = await capture.mail(
            html=f"<p>Hello</p><a href='https://quay.example/{'berth/' * 30}'>the berths of the quay</a>",
            headers=[("X-Long", "word" * 60), ("List-Unsubscribe", "<https://quay.example/unsubscribe>")],
            attachments=[OutgoingFile(long, "application/vnd.openxmlformats-officedocument", b"x")],
        )
        captured = await capture.captured_id(email)
        team = await capture.http_server.pool.fetchval("SELECT team_id FROM captured WHERE id = $1", captured)
        await capture.http_server.pool.execute(EVENT, team, uuid4(), email, NOW, BOUNCE)
        for path in ("/capture", *(f"/capture/{captured}?view={view}" for view in VIEWS)):
            await tab.open(capture.http_server.url + path)
            for width in (320, 390, 1100):
                for is_dark in (False, True):
                    await tab.look(width, is_dark=is_dark)
                    assert not await tab.run(TOO_WIDE), (path, width)
                    assert await tab.run(NARROW_CELLS) == [], (path, width)
                    await tab.picture(f"capture-{path.rpartition('=')[2].strip('/')}", width, is_dark=is_dark)


async def test_a_shared_email_and_a_message_fit_on_a_phone(browser: Chromium) -> None:
    long = "a-subject-without-any-blank-" * 8
    name = "report-of-the-berths-of-all-quays-final-version.pdf"
    shared = SharedEmail(
        sender=long,
        to=[f"{'harbor' * 9}@quay.example"],
        cc=[f"{'ada' * 20}@quay.example"],
        date=NOW,
        subject=long,
        html=None,
        text=long,
        attachments=[name],
        pictures={},
    )
    work = PageWork()
    reply = await SharedPages(work).email(uuid4(), shared, never)
    work.close()
    message = message_page("There is no such page", f"Nothing is at {long}.", status=404, link=("/", "Home"))
    async with canary() as bird, browser.tab() as tab:
        for shown in (reply, message):
            await visit(tab, bird, shown.body.decode(), shown.headers)
            for width in (320, 390):
                for is_dark in (False, True):
                    await tab.look(width, is_dark=is_dark)
                    assert not await tab.run(TOO_WIDE), width
                    assert await tab.run(NARROW_CELLS) == []
