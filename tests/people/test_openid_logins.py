"""Logging in at an OpenID Connect provider: who comes in, and as whom."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.openid_provider import OpenIdProvider, goes_through, openid_world, sent_to_provider, user
from kit.passkey_device import PasskeyDevice
from kit.people import SESSION, a_person, heading, logged_in, text_of, visit
from kit.world import Team, World, world
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import links
from pillarbox.people.audit import OPERATOR
from pillarbox.people.factors.factor_logins import FactorLogins, FullSession
from pillarbox.people.links import LinkKind
from pillarbox.people.membership import members
from pillarbox.people.membership.invitations import NewInvitation, invite
from pillarbox.people.membership.members import MemberChangeActor
from pillarbox.people.openid import openid_queries
from pillarbox.people.openid.joined_team import joined_team
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.roles import TeamRole
from pillarbox.people.sessions import SessionOrigin
from pillarbox.teams import bootstrap
from pillarbox.teams.bootstrap import TeamStatus
from pillarbox.teams.team import DEMO_MARK

IDS = Ids(SystemClock())
ORIGIN = "https://mail.harbor.example"

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("openid")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place, **settings: str) -> AsyncIterator[tuple[World, OpenIdProvider]]:
    async with openid_world(*place, **settings) as found:
        yield found


async def test_the_owner_of_a_password_joins_once_and_then_comes_in_by_subject(place: Place) -> None:
    """OA-15."""
    async with opened(place) as (pillarbox, provider):
        ada = await a_person(await pillarbox.team(), "ada@quay.example")
        browser = visit(pillarbox)
        assert "Log in with Quay Login" in text_of(await browser.get("/login"))
        asked = await goes_through(browser, provider, user("ada"))
        assert asked.headers["location"] == "/login/openid/join"
        assert SESSION not in browser.cookies
        page = await browser.follow(asked)
        assert heading(page) == "Is this your account?"
        wrong = await browser.post("/login/openid/join", password="not this one at all")
        assert (wrong.status_code, SESSION in browser.cookies) == (403, False)
        joined = await browser.post("/login/openid/join", password=ada.password)
        assert (joined.status_code, joined.headers["location"]) == (303, "/dashboard")
        assert "ada@quay.example" in text_of(await browser.get("/account"))
        # The address at the provider means nothing any more.
        again = visit(pillarbox)
        moved = user("ada", email="elsewhere@quay.example", email_verified=False)
        answer = await goes_through(again, provider, moved, "/login/openid?to=/team")
        assert answer.headers["location"] == "/team"
        assert "ada@quay.example" in text_of(await again.get("/account"))


async def invited(team: Team, email: str, role: TeamRole = TeamRole.MEMBER) -> str:
    """Invite an address as the operator; the path of the link."""
    by = MemberChangeActor(OPERATOR, IDS.now())
    made = await invite(team.db, by, IDS, email_address(email), role, site="https://mail.harbor.example")
    assert isinstance(made, NewInvitation)
    return urlsplit(made.link).path


async def role_of(team: Team, email: str) -> str | None:
    found: str | None = await team.world.pool.fetchval(
        """
        SELECT m.role FROM team_members m JOIN people p ON p.id = m.person_id
         WHERE m.team_id = $1 AND p.email = $2
        """,
        team.id,
        email,
    )
    return found


async def acts_of(pillarbox: World, email: str) -> list[str]:
    """The acts that concern an address, the oldest first."""
    rows = await pillarbox.pool.fetch(
        "SELECT what FROM audit_entries WHERE actor = $1 OR target = $1 ORDER BY id", email
    )
    return [row[0] for row in rows]


async def test_an_invited_person_comes_in_without_a_password(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        team = await pillarbox.team()
        path = await invited(team, "Bea@quay.example", TeamRole.ADMIN)
        browser = visit(pillarbox)
        answer = await goes_through(browser, provider, user("bea"), f"/login/openid?to={path}")
        assert answer.headers["location"] == "/team?done=joined"
        assert await role_of(team, "bea@quay.example") == "admin"
        assert (await visit(pillarbox).get(path)).status_code == 404
        account = text_of(await browser.get("/account"))
        assert "You have no password." in account
        assert "It cannot be removed while Quay Login is your only way in." in account
        assert sorted(await acts_of(pillarbox, "bea@quay.example")) == [
            "invitation.accepted",
            "invitation.made",
            "login.succeeded",
            "openid.joined",
            "person.set_up",
        ]


async def test_an_account_that_the_operator_has_made_is_joined_and_its_link_ends(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        team = await pillarbox.team()
        cleo = await a_person(team, "cleo@quay.example", password=False)
        async with transaction(pillarbox.pool) as conn:
            token = await links.make(conn, IDS.now(), LinkKind.SET_UP, person_id=cleo.id)
        browser = visit(pillarbox)
        assert (await goes_through(browser, provider, user("cleo"))).headers["location"] == "/dashboard"
        assert (await visit(pillarbox).get(f"/set-up/{token}")).status_code == 404


async def test_people_of_a_named_domain_join_the_named_team_once(place: Place) -> None:
    async with opened(place) as (pillarbox, _):
        await pillarbox.team("Pier")
        named = str((await pillarbox.team("Pier")).id)
    async with opened(place, oidc_domains="pier.example", oidc_team=named, oidc_role="viewer") as here:
        pillarbox, provider = here
        pier = Team(pillarbox, UUID(named), "", pillarbox.client(""))
        dora = user("dora", email="Dora@Pier.example")
        browser = visit(pillarbox)
        await goes_through(browser, provider, dora)
        assert await role_of(pier, "dora@pier.example") == "viewer"
        member = await pillarbox.pool.fetchval(
            "SELECT id FROM team_members WHERE team_id = $1 AND email = 'dora@pier.example'", pier.id
        )
        await members.remove(pier.db, MemberChangeActor(OPERATOR, IDS.now()), member)
        again = visit(pillarbox)
        assert (await goes_through(again, provider, dora)).status_code == 303
        assert await role_of(pier, "dora@pier.example") is None
        for stranger in ("eve@sub.pier.example", "eve@pier.example.evil.example", "eve@quay.example"):
            refused = await goes_through(visit(pillarbox), provider, user("eve", email=stranger))
            assert (refused.status_code, heading(refused)) == (403, "Quay Login did not log you in")
            assert "comes in here by an invitation" in text_of(refused)
            assert not await pillarbox.pool.fetch("SELECT FROM people WHERE email = $1", stranger)
        assert await acts_of(pillarbox, "eve@quay.example") == ["login.failed"]


async def make_demo_team(pillarbox: World) -> None:
    """Make a team with the demo's mark, whose id is of a month ago."""
    await pillarbox.pool.execute(
        "INSERT INTO teams (id, name, email, created_at) VALUES ($1, 'Demo', 'demo@demo.example', now())",
        UUID(bytes=bytes.fromhex("0190000000007000") + DEMO_MARK),
    )


async def test_without_a_named_team_people_of_a_domain_join_the_only_one(
    database_url: str, tmp_path: Path
) -> None:
    """OA-15: never the demo's, and never that of somebody else where the only one is disabled."""
    async with opened((database_url, tmp_path), oidc_domains="pier.example") as (pillarbox, provider):

        async def comes(name: str) -> str:
            answer = await goes_through(visit(pillarbox), provider, user(name, email=f"{name}@pier.example"))
            return "joined" if answer.status_code == 303 else text_of(answer)

        await make_demo_team(pillarbox)
        policy = pillarbox.app.need(OpenIdPolicy)
        first = await bootstrap.operators_team(pillarbox.pool)
        assert await joined_team(pillarbox.pool, policy) is None
        assert "name it with --oidc-team" in await comes("una")
        harbor = await pillarbox.team()
        assert first != harbor.id
        assert await comes("uri") == "joined"
        assert await role_of(harbor, "uri@pier.example") == "member"
        await bootstrap.set_status(pillarbox.pool, harbor.id, TeamStatus.DISABLED)
        assert "name it with --oidc-team" in await comes("una")
        other = await pillarbox.team("Pier")
        assert "name it with --oidc-team" in await comes("una")
        assert await role_of(other, "una@pier.example") is None
        await bootstrap.set_status(pillarbox.pool, harbor.id, TeamStatus.ACTIVE)
        assert "name it with --oidc-team" in await comes("una")
        # An invitation lets in without the domain's team.
        path = await invited(other, "una@pier.example")
        browser = visit(pillarbox)
        somebody = user("una", email="una@pier.example")
        assert (
            await goes_through(browser, provider, somebody, f"/login/openid?to={path}")
        ).status_code == 303
        assert await role_of(other, "una@pier.example") == "member"


async def test_an_invitation_captures_nobody(place: Place) -> None:
    """OA-15: only the one whose link was opened is accepted, and the domain counts besides."""
    async with opened(place) as (pillarbox, _):
        named = str((await pillarbox.team("Slip")).id)
    async with opened(place, oidc_domains="slip.example", oidc_team=named) as (pillarbox, provider):
        slip = Team(pillarbox, UUID(named), "", pillarbox.client(""))
        stranger, friend = await pillarbox.team("Stranger"), await pillarbox.team("Friend")
        for name in ("abe", "bo"):
            await invited(stranger, f"{name}@slip.example")
        left = await invited(stranger, "cy@slip.example")
        meant = await invited(friend, "bo@slip.example", TeamRole.ADMIN)
        others = await invited(friend, "else@slip.example")
        # From the login page: the domain's team alone.
        abe = user("abe", email="abe@slip.example")
        assert (await goes_through(visit(pillarbox), provider, abe)).status_code == 303
        assert await role_of(slip, "abe@slip.example") == "member"
        assert await role_of(stranger, "abe@slip.example") is None
        # From the link of one team: that and the domain's.
        browser = visit(pillarbox)
        bo = user("bo", email="bo@slip.example")
        answer = await goes_through(browser, provider, bo, f"/login/openid?to={meant}")
        assert answer.headers["location"] == "/team?done=joined"
        found = [await role_of(team, "bo@slip.example") for team in (slip, friend, stranger)]
        assert found == ["member", "admin", None]
        assert "Friend" in text_of(await browser.get("/team"))
        # The link of somebody else's invitation stays open; one's own is accepted by a click.
        browser = visit(pillarbox)
        cy = user("cy", email="cy@slip.example")
        answer = await goes_through(browser, provider, cy, f"/login/openid?to={others}")
        assert answer.headers["location"] == others
        assert (await visit(pillarbox).get(others)).status_code == 200
        assert await role_of(friend, "cy@slip.example") is None
        assert (await browser.send(left)).headers["location"] == "/team?done=joined"
        assert await role_of(stranger, "cy@slip.example") == "member"
        acts = await pillarbox.pool.fetch(
            "SELECT actor FROM audit_entries WHERE team_id = $1 AND what = 'invitation.accepted'", stranger.id
        )
        assert [row[0] for row in acts] == ["cy@slip.example"]


async def test_the_page_of_an_invitation_leads_to_the_provider(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        path = await invited(await pillarbox.team(), "dot@quay.example")
        refused = await goes_through(visit(pillarbox), provider, user("dot"))
        assert (refused.status_code, "open its link and log in from there" in text_of(refused)) == (403, True)
        assert f'href="/login/openid?to={path}"' in (await visit(pillarbox).get(path)).text


async def test_the_address_of_an_id_token_may_stand_in_userinfo(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        path = await invited(await pillarbox.team(), "gus@quay.example")
        provider.left_out = frozenset({"email", "email_verified"})
        browser = visit(pillarbox)
        came = await goes_through(browser, provider, user("gus"), f"/login/openid?to={path}")
        assert came.status_code == 303
        assert provider.requests.count("/userinfo") == 1
        assert (await goes_through(visit(pillarbox), provider, user("gus"))).status_code == 303
        assert provider.requests.count("/userinfo") == 1


async def test_a_second_factor_is_asked_for_after_the_provider(place: Place) -> None:
    async with opened(place) as (pillarbox, provider):
        await a_person(await pillarbox.team(), "hal@quay.example", password=False)
        assert (await goes_through(visit(pillarbox), provider, user("hal"))).status_code == 303
        await pillarbox.pool.execute(
            "UPDATE people SET totp = 'seed', totp_confirmed_at = now() WHERE email = 'hal@quay.example'"
        )
        browser = visit(pillarbox)
        answer = await goes_through(browser, provider, user("hal"), "/login/openid?to=/team")
        assert answer.headers["location"] == "/login/factor?to=/team"
        assert (await browser.get("/account")).headers["location"] == "/login?to=/account"


async def test_the_provider_confirms_who_one_is_and_a_password_sets_one_free(place: Place) -> None:
    async with openid_world(*place, clock=(clock := ManualClock())) as (pillarbox, provider):
        await a_person(await pillarbox.team(), "ida@quay.example", password=False)
        browser = visit(pillarbox)
        provider.now = lambda: int(clock.now().timestamp())
        await goes_through(browser, provider, user("ida"))
        clock.advance(15 * 60)
        asked = await browser.get("/account/password")
        assert asked.headers["location"] == "/confirm?to=/account/password"
        page = await browser.follow(asked)
        assert "Confirm with Quay Login" in text_of(page)
        assert 'type="password"' not in page.text
        location = await sent_to_provider(browser, "/confirm/openid?to=/account/password")
        assert "prompt=login" in location
        provider.authenticated_at = int(clock.now().timestamp()) - 3600
        old = await browser.get(provider.sends_back(location))
        assert (old.status_code, "has not asked you who you are" in text_of(old)) == (403, True)
        provider.authenticated_at = None
        other = await goes_through(browser, provider, user("ivo"), "/confirm/openid?to=/account/password")
        assert (other.status_code, "you are somebody else than here" in text_of(other)) == (403, True)
        right = await goes_through(browser, provider, user("ida"), "/confirm/openid?to=/account/password")
        assert right.headers["location"] == "/account/password"
        # Who has no other proof is believed without a time.
        provider.alter = lambda claims: {name: value for name, value in claims.items() if name != "auth_time"}
        right = await goes_through(browser, provider, user("ida"), "/confirm/openid?to=/account/password")
        assert right.headers["location"] == "/account/password"
        provider.alter = lambda claims: claims
        kept = await browser.send("/account", "/account/openid/remove")
        assert "is your only way in" in text_of(await browser.follow(kept))
        await browser.send("/account/password", password="nine quiet boats at dusk")
        removed = await browser.send("/account", "/account/openid/remove")
        assert removed.headers["location"] == "/account?done=openid_removed"
        assert "can log you in, once it has verified" in text_of(await browser.follow(removed))
        connected = await goes_through(browser, provider, user("ida"), "/account/openid")
        assert connected.headers["location"] == "/account?done=openid"
        # Without `auth_time` a session at the provider of any age would prove it: the password does.
        provider.alter = lambda claims: {name: value for name, value in claims.items() if name != "auth_time"}
        undated = await goes_through(browser, provider, user("ida"), "/confirm/openid")
        assert (undated.status_code, "Confirm with your password" in text_of(undated)) == (403, True)
        acts = await acts_of(pillarbox, "ida@quay.example")
        assert [act for act in acts if act.startswith("openid.")] == [
            "openid.joined",
            "openid.removed",
            "openid.joined",
        ]


# The only way in ------------------------------------------------------------------------------------


async def test_passwords_and_passkeys_are_refused_where_the_provider_is_the_only_way_in(
    place: Place,
) -> None:
    async with opened(place, oidc_only="yes") as (pillarbox, provider):
        team = await pillarbox.team()
        jan = await a_person(team, "jan@quay.example")
        browser = visit(pillarbox)
        refused = await browser.log_in(jan)
        assert refused.status_code == 403
        assert "or this account logs in with Quay Login alone" in text_of(refused)
        assert SESSION not in browser.cookies
        # The password still joins the account, once.
        await goes_through(browser, provider, user("jan"))
        assert (await browser.send("/login/openid/join", password=jan.password)).status_code == 303
        page = text_of(await browser.get("/account"))
        assert "It cannot be removed while Quay Login is your only way in." in page
        async with transaction(pillarbox.pool) as conn:
            await openid_queries.set_password_use(conn, jan.id, may_use_password=True)
        assert (await visit(pillarbox).log_in(jan)).headers["location"] == "/dashboard"


async def test_a_passkey_lets_nobody_in_where_the_provider_is_the_only_way(place: Place) -> None:
    async with opened(place, oidc_only="yes", public_url="https://mail.harbor.example") as (pillarbox, _):
        ken = await a_person(await pillarbox.team(), "ken@quay.example")
        logins, device = pillarbox.app.need(FactorLogins), PasskeyDevice(ORIGIN, b"phone" + bytes(16))
        at, origin = IDS.now(), SessionOrigin("192.0.2.7", None)
        async with transaction(pillarbox.pool) as conn:
            made = await logins.passkeys.ask_for_new(conn, at, ken.id, ken.email, None)
            assert await logins.passkeys.add(conn, at, ken.id, made.token, device.makes(made.options), "key")
        for is_allowed in (False, True):
            async with transaction(pillarbox.pool) as conn:
                await openid_queries.set_password_use(conn, ken.id, may_use_password=is_allowed)
                asked = await logins.passkeys.ask_to_log_in(conn, at)
            found = await logins.by_passkey(at, asked.token, device.signs(asked.options), origin)
            assert isinstance(found, FullSession) is is_allowed


async def test_links_make_no_password_where_the_provider_is_the_only_way_in(place: Place) -> None:
    async with opened(place, oidc_only="yes") as (pillarbox, provider):
        team = await pillarbox.team()
        lea = await a_person(team, "lea@quay.example", password=False)
        async with transaction(pillarbox.pool) as conn:
            token = await links.make(conn, IDS.now(), LinkKind.SET_UP, person_id=lea.id)
        path = await invited(team, "mia@quay.example")
        browser = visit(pillarbox)
        shown = await browser.get(f"/set-up/{token}")
        assert (shown.status_code, "log in with Quay Login" in text_of(shown)) == (403, True)
        page = await browser.get(path)
        assert 'type="password"' not in page.text
        sent = await browser.send(path, password="nine quiet boats at dusk")
        assert (sent.status_code, SESSION in browser.cookies) == (403, False)
        set_up = await browser.send("/login", f"/set-up/{token}", password="nine quiet boats at dusk")
        assert (set_up.status_code, SESSION in browser.cookies) == (403, False)
        await goes_through(browser, provider, user("mia"), f"/login/openid?to={path}")
        assert await role_of(team, "mia@quay.example") == "member"
        assert (await goes_through(visit(pillarbox), provider, user("lea"))).status_code == 303


async def test_without_a_provider_the_pages_are_not_there(place: Place) -> None:
    async with world(*place, started=False) as pillarbox:
        nan = await a_person(await pillarbox.team(), "nan@quay.example")
        browser = visit(pillarbox)
        for path in ("/login/openid", "/login/openid/callback?state=a", "/login/openid/join"):
            assert (await browser.get(path)).status_code == 404
        assert (await browser.send("/login", "/login/openid/join", password="x")).status_code == 404
        assert "/login/openid" not in (await browser.get("/login")).text
        browser = await logged_in(pillarbox, nan)
        for path in ("/account/openid", "/confirm/openid"):
            assert (await browser.get(path)).status_code == 404
