"""Sign-up forms (forms.md): people are added by their click alone; strangers cannot flood, learn or forge."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest

from kit.inbox_rows import an_inbox
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team, World
from pillarbox.forms import queries, sign_up_queries
from pillarbox.forms.form_links import confirmation_of, form_of
from pillarbox.forms.retention import SignUpRetention
from pillarbox.forms.submissions import MOST_OF_NETWORK, SubmissionOrigin
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults

FROM = "Harbor <hello@harbor.example>"
ADA = "ada@quay.example"


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with manual_world(database_url, tmp_path) as found:
        yield found


async def a_form(team: Team, **fields: Any) -> tuple[str, str]:
    """Make a form; return its id and the path of its page."""
    answer = await team.post("/forms", {"name": "Newsletter", "from": FROM, **fields})
    assert answer.status_code == 201, answer.text
    form = (await team.get(f"/forms/{answer.json()['id']}")).json()
    return form["id"], urlsplit(form["url"]).path


async def sign_up(here: World, page: str, email: str = ADA, **fields: Any) -> httpx.Response:
    clock_of(here).advance(10)
    return await here.client(None).post(page, data={"email": email, **fields}, follow_redirects=False)


async def mails(team: Team) -> list[dict[str, Any]]:
    """The mails of the team, the newest first."""
    listed = (await team.get("/emails")).json()["data"]
    return [(await team.get(f"/emails/{one['id']}")).json() for one in listed]


def link_of(mail: dict[str, Any]) -> str:
    """The path behind the link of a mail."""
    return urlsplit(re.findall(r"http\S+/sign-up/confirm/\S+", mail["text"])[0]).path


async def addresses(team: Team) -> set[str]:
    return {one["email"] for one in (await team.get("/contacts")).json()["data"]}


async def test_people_are_added_by_their_click_and_by_nothing_else(here: World) -> None:
    team = await here.team()
    topic = (await team.post("/topics", {"name": "News", "default_subscription": "opt_out"})).json()["id"]
    segment = (await team.post("/segments", {"name": "Readers"})).json()["id"]
    await team.post("/contact-properties", {"key": "seats", "type": "number"})
    fields = [
        {"key": "first_name", "label": "Your name", "required": True},
        {"key": "seats", "label": "Seats"},
    ]
    form_id, page = await a_form(team, fields=fields, topic_ids=[topic], segment_id=segment)
    guest = here.client(None)
    shown = await guest.get(page)
    assert shown.status_code == 200
    assert "Your name" in shown.text
    assert "script" not in shown.headers["content-security-policy"]

    missing = await sign_up(here, page)
    assert (missing.status_code, "Please fill in" in missing.text) == (422, True)
    wrong = await sign_up(here, page, "nobody", field_first_name="Ada", field_seats="many")
    assert wrong.status_code == 422
    assert await mails(team) == []
    answer = await sign_up(here, page, "Ada@Quay.example", field_first_name="<b>Ada</b>", field_seats="4")
    assert (answer.status_code, "look into your mailbox" in answer.text) == (200, True)
    [mail] = await mails(team)
    assert (mail["to"], "<b>" in mail["html"]) == ([ADA], False)
    assert await addresses(team) == set()

    link = link_of(mail)
    for method in ("GET", "HEAD", "GET"):
        assert (await guest.request(method, link)).status_code in (200, 405)
    assert await addresses(team) == set()
    both = await asyncio.gather(*[guest.post(link) for _ in range(3)])
    assert {one.status_code for one in both} == {200}
    contact = (await team.get(f"/contacts/{ADA}")).json()
    assert (contact["first_name"], contact["properties"]["seats"]["value"]) == ("<b>Ada</b>", 4)
    assert (await team.get(f"/contacts/{ADA}/topics")).json()["data"][0]["subscription"] == "opt_in"
    assert (await team.get(f"/contacts/{ADA}/segments")).json()["data"][0]["id"] == segment
    form = (await team.get(f"/forms/{form_id}")).json()
    assert form["counts"] == {"shown": 1, "sent": 1, "confirmed": 1}
    [consent] = (await team.get(f"/forms/{form_id}/sign-ups")).json()["data"]
    assert (consent["status"], consent["contact_id"]) == ("confirmed", contact["id"])
    assert "You agree that" in consent["consent_text"]
    assert consent["requested_from"] == consent["confirmed_from"] != ""

    await team.call("PATCH", f"/contacts/{ADA}", {"unsubscribed": True, "first_name": "Ada"})
    assert (await guest.post(link)).status_code == 200
    assert (await team.get(f"/contacts/{ADA}")).json()["unsubscribed"] is True


async def test_nobody_floods_a_mailbox_or_learns_who_is_known(here: World) -> None:
    team = await here.team()
    _, page = await a_form(team)
    _, other = await a_form(team, name="Other")
    await team.post("/contacts", {"email": "known@quay.example"})
    await team.post("/suppressions", {"email": "gone@quay.example"})
    answers = [await sign_up(here, page, f"{who}@quay.example") for who in ("known", "gone", "new")]
    answers += [await sign_up(here, path) for path in (page, page, other, page)]
    answers.append(await sign_up(here, page, "trap@quay.example", website="http://x.example"))
    assert {(one.status_code, one.text) for one in answers} == {(200, answers[0].text)}
    recipients = [mail["to"][0] for mail in await mails(team)]
    assert sorted(recipients) == sorted([ADA, *[f"{who}@quay.example" for who in ("known", "gone", "new")]])
    clock_of(here).advance(3600)
    await sign_up(here, other)
    assert len(await mails(team)) == 5
    both = await asyncio.gather(
        *[here.client(None).post(page, data={"email": "two@quay.example"}) for _ in range(4)]
    )
    assert {one.status_code for one in both} == {200}
    assert len(await mails(team)) == 6

    quay = await here.team("Quay")
    _, theirs = await a_form(quay, **{"from": "Quay <hello@harbor.example>"})
    answers = [await sign_up(here, page, f"n{number}@quay.example") for number in range(MOST_OF_NETWORK + 2)]
    assert answers[0].status_code == 200
    assert answers[-1].status_code == 429
    assert [one.status_code for one in answers].count(200) <= MOST_OF_NETWORK
    assert (await sign_up(here, theirs, "n1@quay.example")).status_code == 200


HOSTILE = '"><script>alert(1)</script>'


async def test_what_a_bound_refuses_uses_up_no_limit_of_the_inbox_that_sends(here: World) -> None:
    """Whoever sends a form again and again does not silence the inbox for others."""
    team = await here.team()
    await team.domain()
    await an_inbox(team, "hello")
    policy = await team.call("PUT", "/inboxes/hello@harbor.example/policy", {"messages_per_day": 3})
    assert policy.status_code == 200
    _, page = await a_form(team)
    answers = [await sign_up(here, page) for _ in range(6)]
    assert {one.status_code for one in answers} == {200}
    assert len(await mails(team)) == 1
    body = {"from": FROM, "to": ADA, "subject": "Berth 12", "text": "Hello"}
    assert [(await team.post("/emails", body)).status_code for _ in range(3)] == [200, 200, 429]


async def test_a_failure_leaves_what_was_there_before(here: World) -> None:
    """Neither a sign-up without its mail, nor a link that is used up and added nobody."""
    team = await here.team()
    await team.domain()
    _, page = await a_form(team)
    with faults.armed("forms.mail_written=raise"):
        assert (await sign_up(here, page)).status_code == 500
    assert await mails(team) == []
    assert (await sign_up(here, page)).status_code == 200
    [mail] = await mails(team)
    with faults.armed("forms.confirmed=raise"):
        assert (await here.client(None).post(link_of(mail))).status_code == 500
    assert await addresses(team) == set()
    assert (await here.client(None).post(link_of(mail))).status_code == 200
    assert await addresses(team) == {ADA}


async def test_hostile_texts_stay_text_and_nothing_leads_elsewhere(here: World) -> None:
    team = await here.team("Harbor <b>& Co</b>")
    for url in (
        "javascript:alert(1)",
        "//evil.example",
        "https://good.example@evil.example/",
        "https://good.example/\r\nSet-Cookie: a=b",
        "https://good.example/ x",
        'https://"onmouseover=',
        "ftp://good.example",
    ):
        answer = await team.post("/forms", {"name": "x", "from": FROM, "redirect_url": url})
        assert answer.status_code == 422, url
    for sender in ("a@harbor.example\r\nBcc: x@quay.example", "a@harbor.example, b@harbor.example", "nobody"):
        assert (await team.post("/forms", {"name": "x", "from": sender})).status_code == 422, sender
    subject = {"name": "x", "from": FROM, "subject": "a\r\nBcc: x@quay.example"}
    assert (await team.post("/forms", subject)).status_code == 422
    texts = dict.fromkeys(("title", "text", "button", "consent", "sent", "confirmed"), HOSTILE)
    fields = [{"key": "first_name", "label": HOSTILE}]
    form_id, page = await a_form(
        team, texts=texts, fields=fields, redirect_url="https://harbor.example/thanks"
    )
    html = (await here.client(None).get(page)).text
    assert "<script>" not in html
    snippet = (await team.get(f"/forms/{form_id}")).json()["html"]
    assert "<script>" not in snippet
    wrong = await sign_up(here, page, HOSTILE, field_first_name=HOSTILE, redirect_url="https://evil.example")
    assert (wrong.status_code, "<script>" in wrong.text) == (422, False)
    answer = await sign_up(here, page, "ada@quay.example", redirect_url="https://evil.example")
    assert answer.headers["location"] == "https://harbor.example/thanks"
    [mail] = await mails(team)
    assert "<script>" not in mail["html"]
    injected = await sign_up(here, page, "ben@quay.example\r\nBcc: eve@quay.example")
    assert injected.status_code == 422
    assert "<script>" not in (await here.client(None).get(link_of(mail))).text
    assert "<script>" not in (await here.client(None).post(link_of(mail))).text
    for body in (b"\xff\xfe", b"email=%00", b"&".join([b"a=b"] * 100)):
        headers = {"content-type": "application/x-www-form-urlencoded"}
        clock_of(here).advance(7)
        assert (await here.client(None).post(page, content=body, headers=headers)).status_code == 400
    large = await here.client(None).post(page, data={"email": "a" * 40_000})
    assert large.status_code == 413


async def test_links_are_forged_replayed_and_expired_in_vain(here: World) -> None:
    team, quay = await here.team(), await here.team("Quay")
    _, page = await a_form(team)
    await sign_up(here, page)
    [mail] = await mails(team)
    link, guest = link_of(mail), here.client(None)
    token = link.rpartition("/")[2]
    found = confirmation_of(token)
    assert found is not None
    own = page.rpartition("/")[2]
    assert form_of(own) is not None
    forged = [
        token[:-1] + ("A" if token[-1] != "A" else "B"),
        token[:-4],
        token + "A",
        own,
        "x" * 64,
        "é" * 64,
    ]
    for one in forged:
        clock_of(here).advance(7)
        assert (await guest.post(f"/sign-up/confirm/{one}")).status_code == 404, one
    assert (await guest.get("/sign-up/" + "A" * 43)).status_code == 404
    assert (await guest.get(f"/sign-up/{token}")).status_code == 404
    clock_of(here).advance(3 * 86_400)
    assert (await guest.post(link)).status_code == 410
    assert (await guest.get(link)).status_code == 410
    assert await addresses(team) | await addresses(quay) == set()
    clock_of(here).advance(5 * 86_400)
    assert await here.app.need(SignUpRetention).collect() == "1 sign-ups"
    assert (await guest.post(link)).status_code == 404


async def test_forms_are_changed_closed_and_deleted_by_their_team(here: World) -> None:
    team, quay = await here.team(), await here.team("Quay")
    form_id, page = await a_form(team)
    for answer in (
        await quay.get(f"/forms/{form_id}"),
        await quay.call("PATCH", f"/forms/{form_id}", {"name": "x"}),
        await quay.call("DELETE", f"/forms/{form_id}"),
        await quay.get(f"/forms/{form_id}/sign-ups"),
    ):
        assert answer.status_code == 404
    theirs = (await quay.post("/segments", {"name": "Theirs"})).json()["id"]
    assert (await team.call("PATCH", f"/forms/{form_id}", {"segment_id": theirs})).status_code == 404
    first = (await team.get(f"/forms/{form_id}")).json()
    clock_of(here).advance(1)
    change = {"name": "Weekly", "texts": {"title": "Weekly"}, "updated_at": first["updated_at"]}
    assert (await team.call("PATCH", f"/forms/{form_id}", change)).status_code == 200
    assert (await team.call("PATCH", f"/forms/{form_id}", change)).status_code == 409
    assert (
        await team.call("PATCH", f"/forms/{form_id}", {"fields": [{"key": "x", "label": "X"}]})
    ).status_code == 422
    theme = {"theme": {"page_color": "#ffffff", "text_color": "#fefefe"}}
    assert (await team.call("PATCH", f"/forms/{form_id}", theme)).status_code == 422
    assert "Weekly" in (await here.client(None).get(page)).text

    await sign_up(here, page)
    await sign_up(here, page, "ben@quay.example")
    ben, ada = await mails(team)
    assert (await here.client(None).post(link_of(ada))).status_code == 200
    assert (await team.call("PATCH", f"/forms/{form_id}", {"open": False})).status_code == 200
    assert (await sign_up(here, page, "nell@quay.example")).status_code == 404
    assert (await team.call("DELETE", f"/forms/{form_id}")).status_code == 200
    assert (await here.client(None).post(link_of(ben))).status_code == 404
    assert (await here.client(None).get(page)).status_code == 404
    assert await addresses(team) == {ADA}
    [kept] = (await team.get(f"/personal-data/{ADA}")).json()["form_sign_ups"]
    assert kept["confirmed_at"] is not None
    assert (await team.http.post(f"/personal-data/{ADA}/erase")).status_code == 202
    clock_of(here).advance(30)
    while await run_jobs(here):
        pass
    assert (await team.get(f"/personal-data/{ADA}")).json()["form_sign_ups"] == []
    assert await here.pool.fetchval("SELECT count(*) FROM form_sign_ups WHERE address = $1", ADA) == 0


async def test_somebody_who_was_erased_is_not_added_by_a_form(here: World) -> None:
    """Their link leads nowhere, and another sign-up looks the same to them and sends nothing."""
    team = await here.team()
    _, page = await a_form(team)
    first = await sign_up(here, page)
    [mail] = await mails(team)
    clock_of(here).advance(2 * 3600)
    erasing = await team.http.post(f"/personal-data/{ADA}/erase")
    assert erasing.status_code == 202
    assert (await here.client(None).post(link_of(mail))).status_code == 404
    again = await sign_up(here, page)
    assert (again.status_code, again.text) == (first.status_code, first.text)
    assert len(await mails(team)) == 1
    assert await addresses(team) == set()


FITTING = {"type": "rule", "field": "contact.first_name", "operator": "eq", "value": "Ada"}
LOCKED = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def test_the_click_counts_whatever_became_of_what_the_form_names(here: World) -> None:
    """A segment by conditions is none that people join, and a property may have been made anew with another
    type: neither turns away those who were asked to click."""
    team = await here.team()
    by_hand = (await team.post("/segments", {"name": "Readers"})).json()["id"]
    fitting = (await team.post("/segments", {"name": "Named", "conditions": FITTING})).json()["id"]
    refused = await team.post("/forms", {"name": "x", "from": FROM, "segment_id": fitting})
    assert (refused.status_code, "conditions" in refused.json()["message"]) == (422, True)
    seats = (await team.post("/contact-properties", {"key": "seats", "type": "string"})).json()["id"]
    fields = [{"key": "seats", "label": "Seats"}]
    form_id, page = await a_form(team, fields=fields, segment_id=by_hand)
    assert (await sign_up(here, page, field_seats="four")).status_code == 200
    await team.call("DELETE", f"/contact-properties/{seats}")
    await team.post("/contact-properties", {"key": "seats", "type": "number"})
    await here.pool.execute(
        "UPDATE forms SET settings = replace(settings::text, $2, $3)::json WHERE id = $1::text::uuid",
        *(form_id, by_hand, fitting),
    )
    [mail] = await mails(team)
    assert (await here.client(None).post(link_of(mail))).status_code == 200
    assert (await team.get(f"/contacts/{ADA}")).json()["properties"] == {}


async def test_a_form_that_is_deleted_takes_nobody_meanwhile(here: World) -> None:
    """Neither who fills it in nor who clicks while another process deletes it, and neither waits for the
    other without end."""
    team = await here.team()
    form_id, page = await a_form(team)
    await sign_up(here, page)
    [mail] = await mails(team)
    guest = here.client(None)
    async with TeamDb(here.pool, team.id).transaction() as db:
        assert await queries.delete(db, UUID(form_id), here.clock.now())
        both = asyncio.gather(guest.post(page, data={"email": "ben@quay.example"}), guest.post(link_of(mail)))
        async with asyncio.timeout(10):
            while await here.pool.fetchval(LOCKED) < 2:
                await asyncio.sleep(0.01)
        await sign_up_queries.remove_unconfirmed(db, UUID(form_id))
    assert [one.status_code for one in await both] == [404, 404]
    assert await here.pool.fetchval("SELECT count(*) FROM form_sign_ups") == 0
    assert await addresses(team) == set()


async def test_the_mail_comes_of_a_template(here: World) -> None:
    team = await here.team()
    body = {
        "name": "Confirm",
        "subject": "One click, please",
        "html": '<a href="{{{CONFIRM_URL}}}">Yes</a>',
        "variables": [{"key": "CONFIRM_URL", "type": "string"}],
    }
    template = (await team.post("/templates", body)).json()["id"]
    form = {"name": "x", "from": FROM, "template_id": template}
    assert (await team.post("/forms", form)).status_code == 422
    await team.http.post(f"/templates/{template}/publish")
    _, page = await a_form(team, template_id=template)
    await sign_up(here, page)
    [mail] = await mails(team)
    assert mail["subject"] == "One click, please"
    assert "/sign-up/confirm/" in mail["html"]
    other = (await team.post("/templates", {**body, "html": "<p>Hi</p>", "variables": []})).json()["id"]
    await team.http.post(f"/templates/{other}/publish")
    assert (await team.post("/forms", {**form, "template_id": other})).status_code == 422


def test_networks_are_those_of_neighbours() -> None:
    networks = [
        SubmissionOrigin(client=client).network
        for client in ("192.0.2.7", "::ffff:192.0.2.9", "2001:db8:1::5")
    ]
    assert networks == ["192.0.2", "192.0.2", "2001:0db8:0001"]
