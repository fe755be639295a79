"""A program from its registration to the end of its grant (oauth.md 3 to 7)."""

from __future__ import annotations

from kit.oauth_flow import REDIRECT, allowed, answered, ask, exchange, refresh, register
from kit.people import a_person, logged_in
from kit.world import World


async def test_a_program_is_let_in_acts_and_is_sent_away(running: World) -> None:
    program = await allowed(running)
    assert list(program.tokens) == ["access_token", "token_type", "expires_in", "refresh_token", "scope"]
    assert (program.tokens["token_type"], program.tokens["expires_in"]) == ("Bearer", 900)
    assert program.tokens["scope"] == "full_access emails:send"
    assert (await program.acting.get("/domains")).status_code == 200
    renewed = await refresh(running, program.client_id, program.tokens["refresh_token"])
    assert renewed.status_code == 200, renewed.text
    assert renewed.json()["refresh_token"] != program.tokens["refresh_token"]
    again = program.team.using(renewed.json()["access_token"])
    assert (await again.get("/domains")).status_code == 200
    answer = await running.client(None).post(
        "/oauth/revoke",
        data={"client_id": program.client_id, "token": renewed.json()["refresh_token"]},
    )
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")
    for team in (program.acting, again):
        assert (await team.get("/domains")).status_code == 401
    [grant] = (await program.team.get("/oauth/grants")).json()["data"]
    assert grant["revoked_reason"] == "revoked_by_client"
    assert grant["client"] == {"name": "Quill", "logo_uri": None}


async def test_somebody_who_denies_sends_a_refusal(running: World) -> None:
    team = await running.team()
    visit = await logged_in(running, await a_person(team, "ada@people.example"))
    client_id = (await register(running))["client_id"]
    asking = await ask(visit, client_id)
    answer = await asking.decide("deny")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{REDIRECT}?error=access_denied&")
    assert answered(answer)["state"] == "k7"
    assert answered(answer)["iss"] == running.url
    assert (await asking.page()).status_code == 400
    assert (await team.get("/oauth/grants")).json()["data"] == []
    assert (await exchange(running, client_id, "nothing")).json()["error"] == "invalid_grant"
