"""The first steps on the overview: ticked by fact, shown to who may do them, and put away."""

from __future__ import annotations

import re

import pytest

from kit.people import Visit, a_person, logged_in, text_of
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.people.roles import TeamRole

HERE = "/dashboard"
TOKEN = re.compile(r"re_[A-Za-z0-9_]{20,}")
STEPS = {
    "Send the first email",
    "Add your domain",
    "Verify the domain",
    "Add a webhook",
    "Invite somebody",
    "Protect your account",
}


async def somebody(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    return await logged_in(team.world, await a_person(team, f"{role.value}@harbor.example", role))


async def open_steps(browser: Visit) -> set[str]:
    """Return the steps that are left to do."""
    page = (await browser.get(HERE)).text
    return {step for step in STEPS if f"<b>{step}</b></a>" in page}


async def test_each_step_is_ticked_by_what_is_there(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    browser = await somebody(team)
    assert await open_steps(browser) == STEPS
    await team.send()
    left = STEPS - {"Send the first email"}
    assert await open_steps(browser) == left
    domain = (await team.post("/domains", {"name": "quay.example"})).json()
    left = left - {"Add your domain"}
    assert await open_steps(browser) == left
    await pillarbox.pool.execute(
        "UPDATE domains SET sending_ok = true, trusted = true WHERE id = $1::uuid", domain["id"]
    )
    await hook(team, "email.bounced")
    await browser.get("/team/members")
    await browser.post("/team/invitations", email="ben@quay.example", role="viewer")
    assert await open_steps(browser) <= {"Verify the domain", "Protect your account"}
    await pillarbox.pool.execute("UPDATE people SET totp = '', totp_confirmed_at = now()")
    assert "Protect your account" not in await open_steps(browser)


@pytest.mark.parametrize(
    ("role", "steps"),
    [
        (TeamRole.ADMIN, STEPS - {"Invite somebody"}),
        (TeamRole.MEMBER, {"Send the first email", "Protect your account"}),
        (TeamRole.VIEWER, {"Protect your account"}),
    ],
)
async def test_people_see_the_steps_that_they_may_do(
    pillarbox: World, role: TeamRole, steps: set[str]
) -> None:
    """An owner and somebody else are two, so somebody was invited."""
    team = await pillarbox.team("Harbor")
    await a_person(team, "owner@harbor.example")
    assert await open_steps(await somebody(team, role)) == steps


async def test_a_key_for_the_first_email_is_shown_once_and_sends(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    browser = await somebody(team)
    shown = await browser.send(HERE, f"{HERE}/first-steps/key")
    [token] = set(TOKEN.findall(shown.text))
    assert shown.text.count(token) == 2
    assert "shown only now" in text_of(shown)
    assert TOKEN.search((await browser.get(HERE)).text) is None
    key = pillarbox.client(token)
    body = {"from": "hello@harbor.example", "to": "ada@quay.example", "subject": "Hello", "text": "It works."}
    assert (await key.post("/emails", json=body)).status_code == 200
    assert (await key.get("/domains")).status_code == 401
    acts = await pillarbox.pool.fetch("SELECT what, target FROM audit_entries WHERE what = 'key.created'")
    assert [row["target"] for row in acts] == ["First email"]


async def test_a_viewer_makes_no_key(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    browser = await somebody(team, TeamRole.VIEWER)
    assert (await browser.send(HERE, f"{HERE}/first-steps/key")).status_code == 403


async def test_a_person_puts_the_steps_away_for_one_team(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    ada = await a_person(harbor, "ada@harbor.example")
    browser, other = await logged_in(pillarbox, ada), await somebody(harbor, TeamRole.ADMIN)
    done = await browser.follow(await browser.send(HERE, f"{HERE}/first-steps/hide"))
    assert "First steps" not in text_of(done).replace("The first steps are put away.", "")
    assert await open_steps(browser) == set()
    assert await open_steps(await logged_in(pillarbox, ada)) == set()
    assert await open_steps(other) != set()
    assert await open_steps(await somebody(quay)) != set()


async def test_when_all_is_done_the_steps_are_gone(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    browser = await somebody(team, TeamRole.VIEWER)
    assert "First steps" in (await browser.get(HERE)).text
    await pillarbox.pool.execute("UPDATE people SET totp = '', totp_confirmed_at = now()")
    assert "First steps" not in (await browser.get(HERE)).text
