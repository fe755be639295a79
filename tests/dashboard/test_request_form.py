"""The form that sends a call of the API: with the rights of a role, after confirming, its answer as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import a_webhook
from kit.world import Team, World
from pillarbox.dashboard.docs.request_form import SHOWN
from pillarbox.people.roles import TeamRole

HERE = "/dashboard/request"


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    person = await a_person(team, f"{role.value}-{team.id.hex[:6]}@harbor.example", role)
    found = await logged_in(team.world, person)
    await found.get(HERE)
    return found


async def test_a_read_is_sent_and_its_answer_is_shown(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    email_id = await team.send(to="ada@quay.example", subject="It's <b>late</b>")
    viewer = await browser(team, TeamRole.VIEWER)
    answer = await viewer.post(HERE, operation="get-emails-email-id", **{"path.email_id": email_id})
    assert answer.status_code == 200
    assert '"id": "' + email_id in text_of(answer).replace("&#34;", '"')
    assert "<b>late</b>" not in answer.text
    assert "content-type" in text_of(answer)
    listed = await viewer.post(HERE, operation="get-emails", **{"query.limit": "0"})
    assert "422" in text_of(listed)
    assert "/emails?limit=0" in listed.text, "the same by API"


async def test_a_write_is_sent_after_confirming_once(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    member = await browser(team, TeamRole.MEMBER)
    body = json.dumps({"email": "ada@quay.example"})
    refused = await member.post(HERE, operation="post-contacts", body=body)
    assert refused.status_code == 422
    assert "ada@quay.example" in refused.text, "what was typed stays"
    assert (await team.get("/contacts")).json()["data"] == []
    answer = await member.post(HERE, operation="post-contacts", body=body, confirmed="yes")
    assert (answer.status_code, "201" in text_of(answer)) == (200, True)
    assert [entry["email"] for entry in (await team.get("/contacts")).json()["data"]] == ["ada@quay.example"]


@pytest.mark.parametrize(
    ("role", "operation", "fields"),
    [
        (TeamRole.VIEWER, "post-contacts", {"body": '{"email": "ada@quay.example"}'}),
        (TeamRole.VIEWER, "get-oauth-grants", {}),
        (TeamRole.MEMBER, "get-oauth-grants", {}),
        (TeamRole.MEMBER, "post-domains", {"body": '{"name": "harbor.example"}'}),
        (TeamRole.MEMBER, "post-api-keys", {"body": '{"name": "x"}'}),
    ],
)
async def test_a_role_sends_what_it_may(
    pillarbox: World, role: TeamRole, operation: str, fields: dict[str, Any]
) -> None:
    team = await pillarbox.team("Harbor")
    answer = await (await browser(team, role)).post(HERE, operation=operation, confirmed="yes", **fields)
    assert answer.status_code == 403
    for path in ("/contacts", "/domains"):
        assert (await team.get(path)).json()["data"] == []


async def test_secrets_are_shown_to_those_who_manage_the_team(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    webhook_id = await a_webhook(team)
    for role, is_shown in ((TeamRole.VIEWER, False), (TeamRole.MEMBER, False), (TeamRole.ADMIN, True)):
        ada = await browser(team, role)
        fields = {"operation": "get-webhooks-webhook-id", "path.webhook_id": webhook_id}
        assert ("whsec_" in (await ada.post(HERE, **fields)).text) is is_shown, role


async def test_a_form_that_is_sent_twice_acts_once(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    member = await browser(team, TeamRole.MEMBER)
    page = await member.get(f"{HERE}?operation=post-emails")
    key = page.text.partition('name="header.Idempotency-Key" value="')[2].partition('"')[0]
    body = json.dumps({"from": "a@harbor.example", "to": "ada@quay.example", "subject": "x", "text": "x"})
    fields = {"operation": "post-emails", "body": body, "confirmed": "yes", "header.Idempotency-Key": key}
    answers = [await member.post(HERE, **fields) for _ in range(2)]
    assert len((await team.get("/emails")).json()["data"]) == 1
    assert key
    assert all(f'value="{key}"' not in answer.text for answer in answers), "the next one has another key"


async def test_a_member_sees_the_link_of_an_email_that_it_shared(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    email_id = await team.send()
    member = await browser(team, TeamRole.MEMBER)
    fields = {"operation": "post-emails-email-id-share", "path.email_id": email_id, "body": "{}"}
    assert "/shared?token=" in (await member.post(HERE, confirmed="yes", **fields)).text


async def test_a_new_key_asks_for_a_recent_login(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    owner = await browser(team)
    fields = {"operation": "post-api-keys", "body": '{"name": "printer"}', "confirmed": "yes"}
    assert "re_" in text_of(await owner.post(HERE, **fields)).replace("re_…", "")
    await pillarbox.pool.execute("UPDATE person_sessions SET confirmed_at = confirmed_at - interval '1 day'")
    later = await owner.post(HERE, **fields)
    assert later.headers["location"].startswith("/confirm?")
    keys = [key["name"] for key in (await team.get("/api-keys")).json()["data"]]
    assert keys.count("printer") == 1


async def test_a_foreign_form_sends_nothing(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    owner = await browser(team)
    fields = {"operation": "post-contacts", "body": '{"email": "a@quay.example"}', "confirmed": "yes"}
    answer = await owner.post(HERE, {"sec-fetch-site": "cross-site"}, **fields)
    assert answer.status_code == 403
    assert (await owner.post(HERE, **{**fields, "csrf_token": "x"})).status_code == 403
    assert (await team.get("/contacts")).json()["data"] == []


async def test_what_another_team_has_is_not_there(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    email_id = await harbor.send(subject="Of Harbor")
    ben = await browser(quay)
    answer = await ben.post(HERE, operation="get-emails-email-id", **{"path.email_id": email_id})
    assert "404" in text_of(answer)
    assert "Of Harbor" not in answer.text


@pytest.mark.parametrize(
    ("operation", "fields", "status"),
    [
        ("none", {}, 404),
        ("get-health", {}, 404),
        ("post-contacts-imports", {"confirmed": "yes"}, 404),
        ("get-login", {}, 404),
        ("get-emails-email-id", {}, 422),
        ("get-emails-email-id", {"path.email_id": "metrics"}, 422),
        ("get-emails-email-id", {"path.email_id": "../contacts"}, 200),
        ("get-emails-email-id", {"path.email_id": "a/b"}, 200),
        ("get-emails-email-id", {"path.email_id": "%00"}, 200),
        ("get-contacts-contact", {"path.contact": "ä\ud7ff@quay.example"}, 200),
        ("post-contacts", {"body": "{", "confirmed": "yes"}, 422),
        ("post-contacts", {"body": "[" * 60_000, "confirmed": "yes"}, 422),
        ("post-contacts", {"body": '"\\ud800"', "confirmed": "yes"}, 422),
        ("post-contacts", {"body": "", "confirmed": "yes"}, 200),
        ("post-contacts", {"body": "[1]", "confirmed": "yes"}, 200),
        ("post-emails", {"body": "{}", "confirmed": "yes", "header.Idempotency-Key": "ä"}, 422),
        ("post-emails", {"body": "{}", "confirmed": "yes", "header.Idempotency-Key": "x" * 300}, 200),
    ],
)
async def test_odd_requests_are_no_failures(
    pillarbox: World, operation: str, fields: dict[str, Any], status: int
) -> None:
    """Some are refused by the form, the others are answered by the API."""
    owner = await browser(await pillarbox.team())
    answer = await owner.post(HERE, operation=operation, **fields)
    assert answer.status_code == status, text_of(answer)
    assert "application_error" not in answer.text


async def test_a_long_answer_is_shown_in_part(pillarbox: World) -> None:
    team = await pillarbox.team()
    email_id = await team.send(html="<i>" + "x" * 500_000)
    owner = await browser(team)
    answer = await owner.post(HERE, operation="get-emails-email-id", **{"path.email_id": email_id})
    assert len(answer.content) < 60_000 + SHOWN
    assert "The beginning of the answer" in text_of(answer)


async def test_every_operation_that_can_be_sent_has_a_form(pillarbox: World) -> None:
    owner = await browser(await pillarbox.team())
    page = await owner.get(HERE)
    slugs = [part.partition('"')[0] for part in page.text.split('<option value="')[1:]]
    assert len(slugs) > 120
    for slug in slugs:
        assert (await owner.get(f"{HERE}?operation={slug}")).status_code == 200, slug
    assert (await owner.get(f"{HERE}?operation=get-login")).status_code == 404


async def test_the_calls_of_a_screen_lead_to_their_reference(pillarbox: World) -> None:
    team = await pillarbox.team()
    email_id = await team.send()
    owner = await browser(team)
    page = await owner.get(f"/dashboard/emails/{email_id}")
    assert 'href="/docs/api/get-emails-email-id"' in page.text
    assert 'href="/docs"' in page.text
