"""What every page of people is held to: headers, forms of its own, ways back to this site alone, sessions
that cannot be planted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kit.manual_world import clock_of, manual_world
from kit.people import FORM_COOKIE, PASSWORD, SESSION, Person, a_person, heading, logged_in, visit
from kit.world import World
from pillarbox.application import SLICES
from pillarbox.dashboard.people.local_paths import local_path
from pillarbox.dashboard.people.page_visits import FORM_MEDIA
from pillarbox.kernel.http.routing import Route
from pillarbox.people import sessions
from pillarbox.people.sessions import IDLE, LONGEST

Place = tuple[str, Path]

PAGES = [route for one in SLICES if one.name == "dashboard" for route in one.pages]
FORMS = [route for route in PAGES if route.method == "POST" and route.media == FORM_MEDIA]
NO_PAGES = ("/assets/", "/dashboard/live")
"""Files of the screens, and their stream: `tests/dashboard/test_live.py` has it."""

KEPT = ("/docs", "/llms.txt")
"""Pages that hold nothing of anybody: browsers keep them, and ask each time whether they are still so."""

MAIL_FRAME = "/dashboard/mail-theme/html"
FRAMED = ("/dashboard/unsubscribe-page/html", MAIL_FRAME, "/dashboard/forms/try")
"""Documents that stand in a frame of our own pages: they run and send nothing."""

SHOWN = [route for route in PAGES if route.method == "GET" and not route.path.startswith(NO_PAGES)]

MEDIA = ("text/html", "text/javascript", "text/csv", "text/plain", "image/")

ELSEWHERE = [
    "//evil.example",
    "https://evil.example/",
    "/\\evil.example",
    "\\\\evil.example",
    "/%2fevil.example",
    "/%5Cevil.example",
    "/x//evil.example",
    "/@evil.example",
    "/\tevil.example",
    "/ /evil.example",
    "javascript:alert(1)",
    "evil.example",
    "",
    "/" + "a" * 3000,
    "/\u2028evil",
]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("walls")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with manual_world(*place) as pillarbox:
        yield pillarbox


async def somebody(pillarbox: World, name: str) -> Person:
    return await a_person(await pillarbox.team(), f"{name}@walls.example")


def path_of(route: Route) -> str:
    """A path that the route takes, whatever it leads to."""
    values = {
        name: "00000000-0000-7000-8000-000000000000" if name in route.uuids else "nothing"
        for name in route.parameters
    }
    return route.path.format(**values)


def label(route: Route) -> str:
    return f"{route.method} {route.path}"


def in_groups(routes: Sequence[Route]) -> list[Sequence[Route]]:
    """Return the routes in groups that share an installation."""
    return [routes[first : first + 12] for first in range(0, len(routes), 12)]


def label_of_group(routes: Sequence[Route]) -> str:
    return f"{label(routes[0])} and {len(routes) - 1} more"


@pytest.mark.parametrize("routes", in_groups(FORMS), ids=label_of_group)
async def test_a_form_of_another_site_does_not_count(place: Place, routes: Sequence[Route]) -> None:
    """UI-06: without our token, or sent by a page of another site, a form changes nothing."""
    async with opened(place) as pillarbox:
        person = await somebody(pillarbox, f"form{FORMS.index(routes[0])}")
        browsers = (visit(pillarbox), await logged_in(pillarbox, person))
        for route, browser in product(routes, browsers):
            await browser.get("/login")
            await browser.get("/account")
            good, before = browser.csrf, dict(browser.cookies)
            ours = {"sec-fetch-site": "same-origin"}
            for token, headers in (
                ("", ours),
                ("x" * len(good), ours),
                (good, {"sec-fetch-site": "cross-site"}),
                (good, {"sec-fetch-site": "same-site"}),
                (good, {"origin": "https://evil.example"}),
                (good, {"origin": "null"}),
                (good, {}),
            ):
                browser.csrf = token
                answer = await browser.post(path_of(route), headers, password="x", email="x@walls.example")
                is_login = answer.status_code == 303 and answer.headers["location"].startswith("/login")
                assert answer.status_code == 403 or (is_login and SESSION not in before), label(route)
            browser.csrf = good
            assert browser.cookies == before, label(route)


@pytest.mark.parametrize("routes", in_groups(SHOWN), ids=label_of_group)
async def test_every_page_has_its_headers(place: Place, routes: Sequence[Route]) -> None:
    """UI-04: no code but our own, no frame around a page, nothing kept; the same for refusals."""
    async with opened(place) as pillarbox:
        person = await somebody(pillarbox, f"page{SHOWN.index(routes[0])}")
        browsers = (visit(pillarbox), await logged_in(pillarbox, person))
        for route, browser in product(routes, browsers):
            print(label(route))
            answer = await browser.get(path_of(route))
            # A request of a program that is not this browser's is refused like one that cannot be read.
            refused = 400 if route.path.startswith("/oauth/authorize") else 404
            assert answer.status_code in (200, 303, 403, 404, refused), answer.text
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            is_framed = route.path in FRAMED and answer.status_code == 200
            assert ("frame-ancestors 'self'" if is_framed else "frame-ancestors 'none'") in policy
            assert "; sandbox" in policy or not is_framed
            assert "base-uri 'none'" in policy
            # Where the answer of that form leads is any program's.
            sends_nothing = is_framed and "form-action 'none'" in policy
            sends_here = sends_nothing or "form-action 'self'" in policy
            assert sends_here or route.path.startswith("/oauth/authorize")
            # A mail has styles of its own, and its frame runs no script.
            assert "unsafe" not in policy or (route.path == MAIL_FRAME and "script-src" not in policy)
            assert answer.headers["x-frame-options"] == ("SAMEORIGIN" if is_framed else "DENY")
            kept = "no-cache" if route.path.startswith(KEPT) and answer.status_code == 200 else "no-store"
            assert answer.headers["cache-control"] in (kept, "no-store")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer")
            assert answer.headers["content-type"].startswith(MEDIA)
            assert "<script>" not in answer.text
            assert " style=" not in answer.text or route.path == MAIL_FRAME


async def test_cookies_are_for_this_host_alone(place: Place) -> None:
    """UI-05: the prefix, Secure, HttpOnly, SameSite; 256 random bits, of which the hash is stored."""
    async with opened(place) as pillarbox:
        person = await somebody(pillarbox, "cookie")
        browser = visit(pillarbox)
        first = await browser.get("/login")
        answer = await browser.log_in(person)
        for page, name in ((first, FORM_COOKIE), (answer, SESSION)):
            line = page.headers["set-cookie"]
            assert line.startswith(f"{name}=")
            parts = {part.strip().lower() for part in line.split(";")[1:]}
            assert {"path=/", "secure", "httponly", "samesite=lax"} <= parts
            assert not any(part.startswith("domain") for part in parts)
        token = browser.cookies[SESSION]
        assert len(token) >= 43
        [row] = await pillarbox.pool.fetch("SELECT hash FROM person_sessions WHERE person_id = $1", person.id)
        assert row["hash"] == sessions.token_hash(token)


async def test_a_planted_session_is_worth_nothing_after_the_login(place: Place) -> None:
    """UI-05: whatever cookie was there before, a login makes another one, and the old one is dead (session
    fixation); the same when somebody proves again who it is."""
    async with opened(place) as pillarbox:
        mallory, ada = await somebody(pillarbox, "mallory"), await somebody(pillarbox, "fixed")
        planted = (await logged_in(pillarbox, mallory)).cookies[SESSION]
        browser = visit(pillarbox)
        await browser.get("/login")
        browser.cookies[SESSION] = planted
        page = await browser.get("/account")
        assert "mallory" in page.text
        browser.cookies[SESSION] = "made-up"
        await browser.log_in(ada)
        token = browser.cookies[SESSION]
        assert token not in (planted, "made-up")
        await browser.send("/confirm", password=PASSWORD)
        renewed = browser.cookies[SESSION]
        assert renewed != token
        stale = visit(pillarbox)
        stale.cookies[SESSION] = token
        assert (await stale.get("/account")).status_code == 303
        assert (await browser.get("/account")).status_code == 200


async def test_a_login_over_a_session_ends_it(place: Place) -> None:
    async with opened(place) as pillarbox:
        ada = await somebody(pillarbox, "over")
        browser = await logged_in(pillarbox, ada)
        old = browser.cookies[SESSION]
        await browser.get("/account")
        answer = await browser.post("/login", email=ada.email, password=PASSWORD)
        assert answer.status_code == 303
        stale = visit(pillarbox)
        stale.cookies[SESSION] = old
        assert (await stale.get("/account")).status_code == 303


@pytest.mark.parametrize("to", ELSEWHERE, ids=range(len(ELSEWHERE)))
async def test_a_login_leads_to_this_site_alone(place: Place, to: str) -> None:
    """UI-07: whatever is asked for, the way back is a path of this site."""
    assert local_path(to) is None
    async with opened(place) as pillarbox:
        ada = await somebody(pillarbox, f"to{ELSEWHERE.index(to)}")
        browser = visit(pillarbox)
        await browser.get("/login")
        answer = await browser.post("/login", email=ada.email, password=PASSWORD, to=to)
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
        confirmed = await browser.send("/confirm", password=PASSWORD, to=to)
        assert confirmed.headers["location"] == "/dashboard"


@pytest.mark.parametrize("to", ["/account", "/oauth/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2Fx&a=b"])
async def test_a_login_leads_back_to_the_page_that_was_asked_for(place: Place, to: str) -> None:
    assert local_path(to) == to
    async with opened(place) as pillarbox:
        ada = await somebody(pillarbox, f"back{len(to)}")
        browser = visit(pillarbox)
        await browser.get("/login")
        answer = await browser.post("/login", email=ada.email, password=PASSWORD, to=to)
        assert answer.headers["location"] == to


async def test_a_session_ends_without_use_and_in_the_end(place: Place) -> None:
    async with opened(place) as pillarbox:
        ada, clock = await somebody(pillarbox, "idle"), clock_of(pillarbox)
        browser, began = await logged_in(pillarbox, ada), clock.now()
        for _ in range(int(LONGEST / IDLE * 1.2)):
            clock.advance(IDLE * 0.9)
            shown = await browser.get("/account")
            if shown.status_code == 303:
                break
        assert shown.status_code == 303
        assert clock.now() - began >= LONGEST - timedelta(seconds=1)
        again = await logged_in(pillarbox, ada)
        clock.advance(IDLE + timedelta(minutes=2))
        assert (await again.get("/account")).headers["location"] == "/login?to=/account"


async def test_forms_that_cannot_be_read_are_refused(place: Place) -> None:
    async with opened(place) as pillarbox:
        browser = visit(pillarbox)
        await browser.get("/login")
        ours = {"sec-fetch-site": "same-origin"}
        for content, media in (
            (b"csrf_token=%00", FORM_MEDIA),
            (b"\xff=1", FORM_MEDIA),
            (b"a=%ff", FORM_MEDIA),
            (b"&".join([b"a=1"] * 300), FORM_MEDIA),
            (b'{"csrf_token": "x"}', "application/json"),
            (b"", FORM_MEDIA),
        ):
            answer = await browser.ask(
                "POST", "/login", content=content, headers={**ours, "content-type": media}
            )
            assert answer.status_code in (400, 403), content
            assert heading(answer) in ("The form cannot be read", "This form does not count")
        large = await browser.ask(
            "POST", "/login", content=b"a=" + b"x" * 70_000, headers={**ours, "content-type": FORM_MEDIA}
        )
        assert large.status_code == 413


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
NO_PAGE = "There is no such page"


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/nothing", 404, NO_PAGE),
        ("GET", "/emails/nothing/at/all", 404, NO_PAGE),
        ("GET", "/account/nothing", 404, NO_PAGE),
        ("GET", "/oauth/nothing", 404, NO_PAGE),
        ("GET", "/team/people/x/y/z", 404, NO_PAGE),
        ("GET", "/logout", 405, NO_PAGE),
        ("PUT", "/login", 405, NO_PAGE),
        ("POST", "/oauth/authorize", 405, NO_PAGE),
        ("POST", "/login", 413, "That was too much"),
    ],
)
async def test_a_browser_sees_a_page_where_there_is_none(
    place: Place, method: str, path: str, status: int, says: str
) -> None:
    async with opened(place) as pillarbox:
        browser, content = visit(pillarbox), b"a=" + b"x" * (70_000 if status == 413 else 10)
        body = {} if method == "GET" else {"content": content}
        shown = await browser.ask(method, path, headers={"accept": BROWSER}, **body)
        assert (shown.status_code, heading(shown)) == (status, says)
        assert shown.headers["content-type"] == "text/html; charset=utf-8"
        assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
        assert ("allow" in shown.headers) is (status == 405)
        for accept in ("*/*", "application/json", "application/json, text/html;q=0.5"):
            told = await browser.ask(method, path, headers={"accept": accept}, **body)
            assert (told.status_code, told.json()["statusCode"]) == (status, status)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/emails", 401),
        ("PUT", "/emails", 405),
        ("GET", "/oauth/grants", 401),
        ("GET", "/oauth/token", 405),
    ],
)
async def test_a_browser_sees_json_of_the_api(place: Place, method: str, path: str, status: int) -> None:
    async with opened(place) as pillarbox:
        answer = await visit(pillarbox).ask(method, path, headers={"accept": BROWSER})
        assert (answer.status_code, answer.json()["statusCode"]) == (status, status)


async def test_what_is_no_id_is_said_on_a_page(place: Place) -> None:
    async with opened(place) as pillarbox:
        browser = await logged_in(pillarbox, await somebody(pillarbox, "no-id"))
        path = next(route.path for route in FORMS if route.uuids)
        for name in next(route.uuids for route in FORMS if route.path == path):
            path = path.replace(f"{{{name}}}", "nonsense")
        answer = await browser.ask("POST", path, headers={"accept": BROWSER})
        assert (answer.status_code, heading(answer)) == (422, "There is no such page")


async def test_cookies_mean_nothing_on_the_api(place: Place) -> None:
    """UI-06: a session is no credential of the API."""
    async with opened(place) as pillarbox:
        browser = await logged_in(pillarbox, await somebody(pillarbox, "api"))
        answer = await browser.get("/emails")
        assert (answer.status_code, answer.json()["name"]) == (401, "missing_api_key")


async def test_over_plain_http_the_login_says_what_to_do(place: Place) -> None:
    """Away from the machine itself browsers keep no cookie that is for HTTPS alone."""
    async with opened(place) as pillarbox:
        browser = visit(pillarbox)
        far = await browser.ask("GET", "/login", headers={"host": "mail.harbor.example"})
        assert "Logging in needs HTTPS" in far.text
        for headers in (
            {"host": "localhost:8080"},
            {"host": "[::1]:8080"},
            {"host": "mail.harbor.example", "sec-fetch-site": "none"},
        ):
            near = await browser.ask("GET", "/login", headers=headers)
            assert "Logging in needs HTTPS" not in near.text
