"""Grants for one inbox, which the person who approves chooses (oauth.md 5.2)."""

from __future__ import annotations

from typing import Any

import pytest

from kit.client import error
from kit.inbox_rows import Inbox, an_inbox
from kit.oauth_flow import Asking, answered, ask, exchange, refresh, register
from kit.people import a_person, logged_in, text_of
from kit.world import Team, World
from pillarbox.oauth.bearer.tokens import BearerTokens
from pillarbox.people.roles import TeamRole

MAY_NOT = (
    403,
    "invalid_permission",
    "This API key or token is for one inbox, and its rights do not allow this.",
)
UNKNOWN = (404, "not_found", "Inbox not found")


async def asked(pillarbox: World, **fields: str | None) -> tuple[Inbox, Asking, str]:
    """Return an inbox, and a program that asks for a grant in its team."""
    team = await pillarbox.team()
    inbox = await an_inbox(team, f"help-{team.id.hex[:8]}")
    person = await a_person(team, f"owner-{team.id.hex}@people.example", TeamRole.OWNER)
    client_id = (await register(pillarbox))["client_id"]
    return inbox, await ask(await logged_in(pillarbox, person), client_id, **fields), client_id


async def decided(wanted: Asking, team: Team, **fields: str) -> Any:
    await wanted.page()
    return await wanted.visit.post(wanted.path, decision="approve", team_id=str(team.id), **fields)


async def test_a_program_gets_one_inbox_and_the_rights_that_were_ticked(pillarbox: World) -> None:
    inbox, wanted, client_id = await asked(pillarbox)
    other = await an_inbox(inbox.team, f"other-{inbox.team.id.hex[:8]}")
    assert "Only in one inbox" in text_of(await wanted.page())
    answer = await decided(wanted, inbox.team, inbox=inbox.address, right_read="1", right_draft="1")
    tokens = (await exchange(pillarbox, client_id, answered(answer)["code"])).json()
    assert tokens["scope"] == "inbox:read inbox:draft"
    again = (await refresh(pillarbox, client_id, tokens["refresh_token"])).json()
    for token in (tokens["access_token"], again["access_token"]):
        program = inbox.team.using(token)
        assert (await program.get(f"{inbox.url}/threads")).status_code == 200
        assert [item["id"] for item in (await program.get("/inboxes")).json()["data"]] == [str(inbox.id)]
        assert error(await program.post(f"{inbox.url}/labels", {"name": "x"})) == MAY_NOT
        assert error(await program.get(f"{other.url}/threads")) == UNKNOWN
        for path in ("/emails", "/api-keys", "/oauth/grants", "/usage"):
            assert error(await program.get(path)) == MAY_NOT, path
        assert error(await program.post("/emails", {})) == MAY_NOT
        assert error(await program.post("/api-keys", {"name": "more"})) == MAY_NOT
    [grant] = (await inbox.team.get("/oauth/grants")).json()["data"]
    assert grant["scopes"] == ["inbox:read", "inbox:draft"]


async def test_a_refresh_asks_for_less_and_never_for_more(pillarbox: World) -> None:
    inbox, wanted, client_id = await asked(pillarbox)
    answer = await decided(wanted, inbox.team, inbox=inbox.address, right_read="1", right_label="1")
    tokens = (await exchange(pillarbox, client_id, answered(answer)["code"])).json()
    for scope in ("full_access", "inbox:send", "emails:send"):
        more = await refresh(pillarbox, client_id, tokens["refresh_token"], scope=scope)
        assert more.json()["error"] == "invalid_scope"
    less = (await refresh(pillarbox, client_id, tokens["refresh_token"], scope="inbox:read")).json()
    program = inbox.team.using(less["access_token"])
    assert (await program.get(f"{inbox.url}/threads")).status_code == 200
    assert error(await program.post(f"{inbox.url}/labels", {"name": "x"})) == MAY_NOT


@pytest.mark.parametrize(
    "fields",
    [
        {"inbox": "{own}"},
        {"right_read": "1"},
        {"inbox": "", "right_read": "1"},
        {"inbox": "x", "right_read": "1"},
        {"inbox": "none@harbor.example", "right_read": "1"},
        {"inbox": "{foreign}", "right_read": "1"},
    ],
)
async def test_half_a_choice_grants_nothing(pillarbox: World, fields: dict[str, str]) -> None:
    inbox, wanted, _ = await asked(pillarbox)
    quay = await pillarbox.team("Quay")
    foreign = await an_inbox(quay, f"theirs-{quay.id.hex[:8]}")
    named = {"{own}": inbox.address, "{foreign}": foreign.address}
    answer = await decided(
        wanted, inbox.team, **{name: named.get(text, text) for name, text in fields.items()}
    )
    assert (answer.status_code, "location" in answer.headers) == (422, False)
    assert await inbox.team.db.value("SELECT count(*) FROM oauth_grants WHERE team_id = $1") == 0
    assert len(await wanted.approve()) == 43, "nothing was decided"


async def test_a_program_that_may_only_send_is_given_no_more(pillarbox: World) -> None:
    inbox, wanted, _ = await asked(pillarbox, scope="emails:send")
    assert "Only in one inbox" not in text_of(await wanted.page())
    answer = await decided(wanted, inbox.team, inbox=inbox.address, right_read="1")
    assert answer.status_code == 422
    assert await inbox.team.db.value("SELECT count(*) FROM oauth_grants WHERE team_id = $1") == 0


@pytest.mark.parametrize("scope", ["inbox:read", "full_access inbox:read"])
async def test_a_program_does_not_ask_for_rights_in_an_inbox(pillarbox: World, scope: str) -> None:
    answer = await pillarbox.client(None).post(
        "/oauth/register",
        json={"client_name": "Quill", "redirect_uris": ["https://q.example/cb"], "scope": scope},
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")


async def test_the_access_ends_with_the_inbox(pillarbox: World) -> None:
    inbox, wanted, client_id = await asked(pillarbox)
    answer = await decided(wanted, inbox.team, inbox=inbox.address, right_read="1")
    tokens = (await exchange(pillarbox, client_id, answered(answer)["code"])).json()
    program = inbox.team.using(tokens["access_token"])
    assert (await program.get(inbox.url)).status_code == 200
    assert (await inbox.team.call("DELETE", inbox.url)).status_code == 200
    pillarbox.app.need(BearerTokens).forget(inbox.team.id)
    assert (await program.get("/inboxes")).status_code == 401
