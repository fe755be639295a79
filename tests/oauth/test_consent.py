"""The page on which somebody lets a program act (oauth.md 5.1)."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import pytest

from kit.manual_world import clock_of
from kit.oauth_flow import REDIRECT, Asking, answered, ask, exchange, register
from kit.people import PASSWORD, Visit, a_person, heading, logged_in, text_of, visit
from kit.world import Team, World
from pillarbox.dashboard.consent.pages import shown_name
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.oauth import grants
from pillarbox.people import accounts
from pillarbox.people.roles import TeamRole

SENDING = {"scope": "emails:send"}


async def asking(
    pillarbox: World, role: TeamRole = TeamRole.OWNER, **fields: str | None
) -> tuple[Team, Asking]:
    """A program that asks a new person of a new team."""
    team = await pillarbox.team()
    person = await a_person(team, f"{role.value}-{team.id.hex}@people.example", role)
    client_id = (await register(pillarbox))["client_id"]
    return team, await ask(await logged_in(pillarbox, person), client_id, **fields)


async def given(pillarbox: World) -> int:
    return int(await pillarbox.pool.fetchval("SELECT count(*) FROM oauth_grants"))


async def test_the_page_says_who_asks_for_what(pillarbox: World) -> None:
    """OA-10."""
    _, wanted = await asking(pillarbox)
    page = await wanted.page()
    text = text_of(page)
    for part in (
        "Quill",
        "unverified",
        "quill.example",
        "do everything in the team",
        "send mail",
        "Harbor",
    ):
        assert part in text
    assert "Approve" in text
    assert "Deny" in text
    await pillarbox.pool.execute("UPDATE oauth_clients SET is_verified = true")
    verified = await ask(wanted.visit, (await register(pillarbox))["client_id"], scope="emails:send")
    await pillarbox.pool.execute("UPDATE oauth_clients SET is_verified = true")
    row = await pillarbox.pool.fetchval("SELECT id FROM oauth_clients WHERE NOT is_built_in LIMIT 1")
    again = await ask(wanted.visit, str(row), scope="emails:send")
    assert "unverified" in text_of(await verified.page()), "as it was when the program asked"
    assert "unverified" not in text_of(await again.page())
    assert "do everything" not in text_of(await again.page())


async def test_the_page_lets_nobody_frame_it_and_sends_forms_anywhere(pillarbox: World) -> None:
    """OA-08, OA-12."""
    _, wanted = await asking(pillarbox)
    page = await wanted.page()
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "img-src 'self'" in policy
    assert "form-action" not in policy
    assert "script" not in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"
    answer = await wanted.decide("approve")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{REDIRECT}?code=")
    assert list(answered(answer)) == ["code", "state", "iss"]
    assert (answered(answer)["state"], answered(answer)["iss"]) == ("k7", pillarbox.url)
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == (
        "no-store",
        "no-referrer",
    )


async def test_without_a_session_the_browser_logs_in_and_comes_back(pillarbox: World) -> None:
    team = await pillarbox.team()
    person = await a_person(team, "ada@people.example")
    browser = visit(pillarbox)
    wanted = await ask(browser, (await register(pillarbox))["client_id"], **SENDING)
    page = await wanted.page()
    assert (page.status_code, page.headers["location"]) == (303, f"/login?to={wanted.path}")
    answer = await browser.log_in(person, wanted.path)
    assert answer.headers["location"] == wanted.path
    assert heading(await browser.follow(answer)) == "Let this program act for you?"
    code = await wanted.approve()
    assert (await pillarbox.pool.fetchval("SELECT count(*) FROM oauth_grants")) == 1
    assert len(code) == 43


async def test_a_request_is_for_one_browser_and_one_decision(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    team, wanted = await asking(pillarbox, **SENDING)
    other = await logged_in(pillarbox, await a_person(team, "eve@people.example"))
    assert (await Asking(other, wanted.path).page()).status_code == 400
    await other.get("/account")
    fields = {"decision": "approve", "team_id": str(team.id)}
    stolen = await other.post(wanted.path, **fields)
    assert (stolen.status_code, "location" in stolen.headers) == (400, False)
    await wanted.approve()
    for decision in ("approve", "deny"):
        again = await wanted.visit.post(wanted.path, decision=decision, team_id=str(team.id))
        assert (again.status_code, "location" in again.headers) == (400, False)
    assert heading(await wanted.page()) == "There is nothing to decide"
    assert await given(pillarbox) == 1
    team, late = await asking(pillarbox, **SENDING)
    await late.page()
    clock.advance(600.001)
    answer = await late.visit.post(late.path, decision="approve", team_id=str(team.id))
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert (await late.page()).status_code == 400
    unknown = f"/oauth/authorize/{'a' * 43}"
    assert (await late.visit.get(unknown)).status_code == 400


async def test_of_parallel_decisions_one_counts(pillarbox: World) -> None:
    team, wanted = await asking(pillarbox, **SENDING)
    await wanted.page()
    fields = {"team_id": str(team.id)}
    answers = await asyncio.gather(
        *(
            wanted.visit.post(wanted.path, decision=decision, **fields)
            for decision in ("approve", "deny", "approve", "deny")
        )
    )
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400]
    assert await given(pillarbox) <= 1


async def test_a_form_that_is_not_ours_decides_nothing(pillarbox: World) -> None:
    """OA-10: UI-06."""
    team, wanted = await asking(pillarbox, **SENDING)
    await wanted.page()
    fields = {"decision": "approve", "team_id": str(team.id)}
    good = wanted.visit.csrf
    for token, headers in (
        ("", None),
        ("x" * len(good), None),
        (good, {"sec-fetch-site": "cross-site"}),
        (good, {"origin": "https://evil.example"}),
    ):
        wanted.visit.csrf = token
        answer = await wanted.visit.post(wanted.path, headers, **fields)
        assert (answer.status_code, "location" in answer.headers) == (403, False)
    assert await given(pillarbox) == 0
    wanted.visit.csrf = good
    for wrong in (
        {"decision": "maybe"},
        {"decision": ""},
        {"team_id": ""},
        {"team_id": "x"},
        {"team_id": "\0"},
    ):
        answer = await wanted.visit.post(wanted.path, **{**fields, **wrong})
        assert (answer.status_code, "location" in answer.headers) == (400, False), wrong
    foreign = await pillarbox.team("Quay")
    answer = await wanted.visit.post(wanted.path, decision="approve", team_id=str(foreign.id))
    assert (answer.status_code, "location" in answer.headers) == (403, False)
    assert await given(pillarbox) == 0
    assert len(await wanted.approve()) == 43, "none of them has decided"


@pytest.mark.parametrize("role", list(TeamRole), ids=lambda role: role.value)
async def test_who_may_make_api_keys_may_let_programs_act(pillarbox: World, role: TeamRole) -> None:
    team, wanted = await asking(pillarbox, role, **SENDING)
    page = text_of(await wanted.page())
    answer = await wanted.visit.post(wanted.path, decision="approve", team_id=str(team.id))
    if role is TeamRole.VIEWER:
        assert "Your role does not let programs act" in page
        assert "Approve" not in page
        assert answer.status_code == 403
        assert answered(await wanted.decide("deny"))["error"] == "access_denied"
        assert await given(pillarbox) == 0
    else:
        assert "Approve" in page
        assert answer.status_code == 303
        assert await given(pillarbox) == 1


async def _joins(team: Team, person_id: UUID, email: str, role: TeamRole) -> None:
    ids = team.world.app.need(Ids)
    async with transaction(team.world.pool) as conn:
        await accounts.join(conn, ids.stamp(), person_id, email_address(email), team.id, role)


async def test_the_team_is_chosen_among_those_where_that_is_allowed(pillarbox: World) -> None:
    harbor = await pillarbox.team("Harbor")
    quay, inlet = await pillarbox.team("Quay"), await pillarbox.team("Inlet")
    person = await a_person(harbor, "ada@people.example")
    await _joins(quay, person.id, person.email, TeamRole.MEMBER)
    await _joins(inlet, person.id, person.email, TeamRole.VIEWER)
    browser = await logged_in(pillarbox, person)
    client_id = (await register(pillarbox))["client_id"]
    wanted = await ask(browser, client_id, **SENDING)
    page = (await wanted.page()).text
    assert '<select id="team_id"' in page
    assert page.count("<option") == 2
    assert str(inlet.id) not in page
    code = await wanted.approve(quay)
    tokens = (await exchange(pillarbox, client_id, code)).json()
    assert tokens["scope"] == "emails:send"
    [grant] = (await quay.get("/oauth/grants")).json()["data"]
    assert (grant["client_id"], grant["scopes"]) == (client_id, ["emails:send"])
    assert (await harbor.get("/oauth/grants")).json()["data"] == []
    [entry] = await pillarbox.pool.fetch("SELECT * FROM audit_entries WHERE what = 'grant.given'")
    assert (entry["team_id"], entry["person_id"], entry["target"]) == (quay.id, person.id, "Quill")
    assert json.loads(entry["details"]) == {"client_id": client_id, "scopes": ["emails:send"]}


async def test_full_access_is_given_by_who_has_just_proved_who_it_is(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    team = await pillarbox.team()
    browser: Visit = await logged_in(pillarbox, await a_person(team, "ada@people.example"))
    client_id = (await register(pillarbox))["client_id"]
    clock.advance(599)
    wanted = await ask(browser, client_id)
    assert (await wanted.page()).status_code == 200
    clock.advance(2)
    assert (await wanted.page()).headers["location"] == f"/confirm?to={wanted.path}"
    late = await browser.post(wanted.path, decision="approve", team_id=str(team.id))
    assert late.headers["location"] == f"/confirm?to={wanted.path}"
    assert await given(pillarbox) == 0
    small = await ask(browser, client_id, **SENDING)
    assert (await small.page()).status_code == 200
    back = await browser.send(f"/confirm?to={wanted.path}", "/confirm", password=PASSWORD, to=wanted.path)
    assert back.headers["location"] == wanted.path
    assert len(await wanted.approve()) == 43


async def test_each_approval_is_a_grant_of_its_own(pillarbox: World) -> None:
    """Nobody is let in silently because of an earlier grant (RFC 9700)."""
    _, first = await asking(pillarbox)
    await first.approve()
    client_id = str(await pillarbox.pool.fetchval("SELECT client_id FROM oauth_grants"))
    second = await ask(first.visit, client_id)
    assert heading(await second.page()) == "Let this program act for you?"
    await second.approve()
    assert await given(pillarbox) == 2


async def test_a_program_that_was_disabled_meanwhile_gets_nothing(pillarbox: World) -> None:
    team, wanted = await asking(pillarbox, **SENDING)
    await wanted.page()
    await pillarbox.pool.execute("UPDATE oauth_clients SET disabled_at = now()")
    answer = await wanted.visit.post(wanted.path, decision="approve", team_id=str(team.id))
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert await given(pillarbox) == 0


async def test_whoever_is_removed_while_approving_leaves_no_live_grant(pillarbox: World) -> None:
    """The row of the member settles who is first."""
    team, wanted = await asking(pillarbox, **SENDING)
    await wanted.page()
    person_id = await pillarbox.pool.fetchval("SELECT id FROM people")
    now = pillarbox.clock.now()
    async with transaction(pillarbox.pool) as conn:
        await conn.execute("DELETE FROM team_members WHERE person_id = $1", person_id)
        deciding = asyncio.create_task(
            wanted.visit.post(wanted.path, decision="approve", team_id=str(team.id))
        )
        async with asyncio.timeout(10):
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not await pillarbox.pool.fetchval(waits):
                await asyncio.sleep(0.01)
        assert await grants.revoke_of_person(conn, now, team.id, person_id) == []
    assert (await deciding).status_code == 403
    assert await given(pillarbox) == 0


async def test_names_of_programs_are_shown_as_text(pillarbox: World) -> None:
    """UI-01, OA-10: no markup, nothing that turns text around."""
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@people.example"))
    name = "<script>alert(1)</script>\u202egnp.exe\u200b"
    made = await register(pillarbox, client_name=name)
    page = (await (await ask(browser, made["client_id"])).page()).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;gnp.exe" in page
    assert "<script>" not in page
    assert "\u202e" not in page


def test_shown_names_have_no_invisible_characters() -> None:
    assert shown_name("Qu\u202eill\u2066 \u200bé\u2028") == "Quill é"


@pytest.mark.parametrize("uri", ["cursor://[x", "cursor://x]/cb", "com.quill.app:/cb?[", "quill://a@[v1/x"])
async def test_a_redirect_of_a_program_s_own_scheme_may_hold_brackets(pillarbox: World, uri: str) -> None:
    team = await pillarbox.team()
    visit = await logged_in(pillarbox, await a_person(team, "ada@people.example"))
    client_id = (await register(pillarbox, redirect_uris=[uri]))["client_id"]
    wanted = await ask(visit, client_id, redirect_uri=uri, **SENDING)
    page = await wanted.page()
    assert page.status_code == 200, page.text
    assert f"{uri.partition(':')[0]}:" in text_of(page)
    answer = await wanted.decide("deny")
    assert answer.headers["location"].startswith(uri)
