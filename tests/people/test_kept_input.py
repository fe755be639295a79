"""What somebody typed into a form survives the question who it is, for this form and this session alone
(docs/decisions/0106)."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world
from kit.oauth_flow import ask, register
from kit.people import PASSWORD, SESSION, Person, Visit, a_person, logged_in, text_of
from kit.world import Team
from pillarbox.dashboard.people.page_visits import form
from pillarbox.dashboard.people.saved_form import LASTS, MOST_BYTES, NAME, SECRETS
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import accounts
from pillarbox.people.membership import members
from pillarbox.people.roles import TeamRole

Place = tuple[str, Path]

AGAIN = "Nothing was done yet: press the button again."
LATE = 601
"""Seconds after which a proof of who one is counts no more."""

VALUE = re.compile(r'<input id="([a-z_]+)"[^>]* value="([^"]*)"')
CHOSEN = re.compile(r'<option value="([^"]*)" selected')


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("kept")
    databases.drop(url)


@asynccontextmanager
async def somebody(place: Place, name: str) -> AsyncIterator[tuple[Team, Person, Visit]]:
    """An owner who has logged in more than ten minutes ago."""
    async with manual_world(*place, ManualClock()) as box:
        team = await box.team()
        person = await a_person(team, f"{name}@kept.example")
        browser = await logged_in(box, person)
        await browser.get("/account")
        clock_of(box).advance(LATE)
        yield team, person, browser


async def proves(browser: Visit, asks: httpx.Response) -> httpx.Response:
    """Give the password where the answer leads, and come back."""
    assert asks.status_code == 303, asks.text
    assert asks.headers["location"].startswith("/confirm?to=")
    to = asks.headers["location"].partition("?to=")[2]
    await browser.follow(asks)
    return await browser.follow(await browser.post("/confirm", password=PASSWORD, to=to))


def filled(page: httpx.Response) -> dict[str, str]:
    return {name: unescape(value) for name, value in VALUE.findall(page.text)}


async def test_an_invitation_is_filled_in_again_and_sent_by_the_button(place: Place) -> None:
    async with somebody(place, "ada") as (team, _, browser):
        typed = {"email": 'guest"<b>@kept.example', "role": "admin"}
        asks = await browser.post("/team/invitations", **typed)
        shown = await browser.follow(asks)
        assert "What you have typed is kept." in text_of(shown)
        back = await proves(browser, asks)
        assert AGAIN in text_of(back)
        assert filled(back)["email"] == typed["email"]
        assert CHOSEN.findall(back.text)[-1] == "admin"
        assert "<b>@kept" not in back.text
        count = "SELECT count(*) FROM team_invitations WHERE team_id = $1"
        assert await team.world.pool.fetchval(count, team.id) == 0
        done = await browser.post("/team/invitations", email="guest@kept.example", role="admin")
        assert done.headers["location"] == "/team/members?done=invited"
        assert await team.world.pool.fetchval(count, team.id) == 1


async def test_what_was_filled_in_is_not_filled_in_again(place: Place) -> None:
    async with somebody(place, "bob") as (_, _, browser):
        asks = await browser.post("/team/invitations", email="guest@kept.example", role="admin")
        assert NAME in browser.cookies
        back = await proves(browser, asks)
        assert filled(back)["email"] == "guest@kept.example"
        assert NAME not in browser.cookies
        assert filled(await browser.get("/team/members"))["email"] == ""


async def test_an_api_key_keeps_its_name_and_what_it_may(place: Place) -> None:
    async with somebody(place, "cleo") as (team, _, browser):
        domain = await team.domain()
        typed = {"name": "printer", "permission": "full_access", "domain": str(domain)}
        back = await proves(browser, await browser.post("/team/keys", **typed))
        assert filled(back)["name"] == "printer"
        assert CHOSEN.findall(back.text) == ["full_access", str(domain)]
        assert len((await team.get("/api-keys")).json()["data"]) == 1


async def test_the_choice_of_a_role_and_of_keys_comes_back_to_its_member(place: Place) -> None:
    async with somebody(place, "dora") as (team, _, browser):
        ids = []
        for name in ("first", "second"):
            other = await a_person(team, f"dora-{name}@kept.example", TeamRole.VIEWER)
            ids.append(await members.member_of(team.db, other.id))
            await team.post("/api-keys", {"name": name})
            await team.world.pool.execute(
                "UPDATE api_keys SET created_by = $2 WHERE team_id = $1 AND name = $3",
                team.id,
                other.id,
                name,
            )
        back = await proves(browser, await browser.post(f"/team/members/{ids[1]}/role", role="admin"))
        assert CHOSEN.findall(back.text) == ["owner", "viewer", "admin", "member"]
        clock_of(team.world).advance(LATE)
        path = f"/team/members/{ids[0]}/remove"
        back = await proves(browser, await browser.post(path, keys="delete"))
        assert str(back.url).endswith(path)
        assert AGAIN in text_of(back)
        assert 'value="delete" selected>' in back.text
        count = "SELECT count(*) FROM team_members WHERE team_id = $1 AND person_id IS NOT NULL"
        assert await team.world.pool.fetchval(count, team.id) == 3


async def test_a_form_without_fields_is_opened_where_it_stands(place: Place) -> None:
    async with somebody(place, "emma") as (team, _, browser):
        back = await proves(browser, await browser.post("/team/leave"))
        assert '<details class="dialog " open>' in back.text
        assert AGAIN in text_of(back)
        clock_of(team.world).advance(LATE)
        key = (await team.get("/api-keys")).json()["data"][0]["id"]
        back = await proves(browser, await browser.post(f"/team/keys/{key}/delete"))
        assert '<details class="dialog " open>' in back.text
        assert len((await team.get("/api-keys")).json()["data"]) == 1


@pytest.mark.parametrize("path", ["/account/factor/begin", "/account/passkeys/begin", "/account/password"])
async def test_an_act_of_the_own_account_asks_for_its_button_again(place: Place, path: str) -> None:
    async with somebody(place, f"fay{path.replace('/', '')}") as (_, _, browser):
        back = await proves(browser, await browser.post(path, password="another nine words nobody has"))
        assert text_of(back).count(AGAIN) == 1
        assert "nine words" not in back.text


async def test_the_team_that_a_program_is_to_get_stays_chosen(place: Place) -> None:
    async with manual_world(*place, ManualClock()) as box:
        first, second = await box.team("First"), await box.team("Second")
        person = await a_person(first, "gwen@kept.example")
        await members_too(second, person)
        browser = await logged_in(box, person)
        clock_of(box).advance(LATE - 11)
        asking = await ask(browser, (await register(box))["client_id"], scope="full_access")
        chosen = CHOSEN.findall((await asking.page()).text)
        other = str(second.id if chosen == [str(first.id)] else first.id)
        clock_of(box).advance(11)
        back = await proves(browser, await browser.post(asking.path, decision="approve", team_id=other))
        assert CHOSEN.findall(back.text) == [other]
        assert AGAIN in text_of(back)
        assert await box.pool.fetchval("SELECT count(*) FROM oauth_grants") == 0


async def members_too(team: Team, person: Person) -> None:
    """The person belongs to this team as well."""
    stamp = team.world.app.need(Ids).stamp()
    async with transaction(team.world.pool) as conn:
        await accounts.join(conn, stamp, person.id, email_address(person.email), team.id, TeamRole.OWNER)


# What nobody gets ----------------------------------------------------------------------------------


async def test_secrets_are_not_kept(place: Place) -> None:
    """Neither in the cookie nor on the page, whatever a form sends with its own fields."""
    async with somebody(place, "hugo") as (team, hugo, browser):
        await browser.post("/account/password", password="another nine words nobody has", name="x")
        assert await kept_fields(team, hugo, browser) == {}
        await browser.post("/team/keys", name="printer", password="another nine words", code="123456", x="y")
        assert await kept_fields(team, hugo, browser) == {"name": "printer"}


async def kept_fields(team: Team, person: Person, browser: Visit) -> dict[str, str]:
    """What the cookie holds."""
    session = await team.world.pool.fetchval("SELECT id FROM person_sessions WHERE person_id = $1", person.id)
    sealed = urlsafe_b64decode(browser.cookies[NAME])
    plain = team.world.app.need(KeyRing).open(sealed, b"kept input" + session.bytes + team.id.bytes)
    found: dict[str, str] = json.loads(plain)["fields"]
    return found


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_form_that_would_keep_a_secret_is_not_made(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        form("POST", "/x", summary="x", confirm=True, keeps=["email", name])


async def test_the_cookie_of_somebody_else_fills_in_nothing(place: Place) -> None:
    """Planted in another browser it does not open, and neither does it after the next login."""
    async with somebody(place, "ida") as (team, ida, browser):
        await browser.post("/team/invitations", email="guest@kept.example", role="admin")
        planted = browser.cookies[NAME]
        other = await logged_in(team.world, await a_person(team, "jon@kept.example"))
        again = await logged_in(team.world, ida)
        for found in (other, again):
            found.cookies[NAME] = planted
            shown = await found.get("/team/members")
            assert (shown.status_code, "guest@kept" in shown.text, AGAIN in shown.text) == (200, False, False)
            shown = await found.get("/confirm?to=/team/members")
            assert "What you have typed" not in shown.text


async def test_a_form_about_one_team_is_not_filled_in_for_another(place: Place) -> None:
    async with somebody(place, "jim") as (team, jim, browser):
        second = await team.world.team("Second")
        await members_too(second, jim)
        for looked_at in (team, second):
            switched = await browser.send("/team", "/team/switch", team=str(looked_at.id))
            assert switched.status_code == 303
            if looked_at is team:
                asks = await browser.post("/team/invitations", email="guest@kept.example", role="admin")
        back = await proves(browser, asks)
        assert "guest@kept" not in back.text
        assert AGAIN not in text_of(back)


async def test_the_cookie_is_of_one_page_and_ends(place: Place) -> None:
    async with somebody(place, "kim") as (team, _, browser):
        await browser.post("/team/invitations", email="guest@kept.example", role="admin")
        kept = browser.cookies[NAME]
        for path in ("/team/keys", "/team", "/account"):
            shown = await browser.get(path)
            assert "guest@kept" not in shown.text
            assert AGAIN not in shown.text
        assert browser.cookies[NAME] == kept
        clock_of(team.world).advance(LASTS.total_seconds() + 1)
        assert "guest@kept" not in (await browser.get("/team/members")).text


@pytest.mark.parametrize("value", ["", "x", "Zm9v", "%e9", "A" * 3000, "A" * 9000])
async def test_a_cookie_that_is_not_ours_is_nothing(place: Place, value: str) -> None:
    async with somebody(place, f"lea{len(value)}{value[:1].encode().hex()}") as (_, _, browser):
        browser.cookies[NAME] = value
        for path in ("/team/members", "/confirm?to=/team/members"):
            assert (await browser.get(path)).status_code == 200


async def test_a_form_with_too_much_is_kept_without_its_fields(place: Place) -> None:
    async with somebody(place, "mia") as (_, _, browser):
        asks = await browser.post("/team/invitations", email="x" * (MOST_BYTES + 1), role="admin")
        assert max(len(line) for line in asks.headers.get_list("set-cookie")) < 4096
        back = await proves(browser, asks)
        assert filled(back)["email"] == ""
        assert AGAIN in text_of(back)


async def test_after_the_act_nothing_is_filled_in(place: Place) -> None:
    """Whoever confirms in one tab and sends the form of another is not told that nothing was done."""
    async with somebody(place, "nina") as (_, _, browser):
        asks = await browser.post("/team/invitations", email="guest@kept.example", role="viewer")
        to = asks.headers["location"].partition("?to=")[2]
        await browser.follow(asks)
        await browser.post("/confirm", password=PASSWORD, to=to)
        await browser.get("/account")
        done = await browser.post("/team/invitations", email="guest@kept.example", role="viewer")
        shown = await browser.follow(done)
        assert AGAIN not in shown.text
        assert NAME not in browser.cookies


async def test_a_form_of_another_site_keeps_nothing(place: Place) -> None:
    async with somebody(place, "otto") as (_, _, browser):
        fields = {"email": "evil@kept.example", "role": "owner"}
        foreign = await browser.post("/team/invitations", {"sec-fetch-site": "cross-site"}, **fields)
        assert foreign.status_code == 403
        browser.csrf = "x"
        assert (await browser.post("/team/invitations", **fields)).status_code == 403
        assert NAME not in browser.cookies


async def test_who_may_not_do_it_is_asked_nothing(place: Place) -> None:
    async with somebody(place, "pia") as (team, _, _):
        viewer = await logged_in(team.world, await a_person(team, "pia2@kept.example", TeamRole.VIEWER))
        await viewer.get("/account")
        clock_of(team.world).advance(LATE)
        assert (await viewer.post("/team/invitations", email="x@kept.example")).status_code == 403
        assert NAME not in viewer.cookies


async def test_the_cookie_is_for_us_alone(place: Place) -> None:
    async with somebody(place, "rosa") as (_, _, browser):
        asks = await browser.post("/team/invitations", email="guest@kept.example", role="admin")
        [line] = asks.headers.get_list("set-cookie")
        assert line.startswith(f"{NAME}=")
        assert "guest" not in line
        assert line.endswith("; Max-Age=1800; Path=/; Secure; HttpOnly; SameSite=Lax")
        assert SESSION not in line.replace(NAME, "")
