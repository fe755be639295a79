"""Screens of one contact, of topics and of properties: what they show, and what is changed there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.manual_world import clock_of, manual_world
from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import a_consent, a_contact, a_form, a_received_email, a_sign_up, an_import
from kit.world import Team, World
from pillarbox.dashboard.contact.contact_timeline import START, position_of, timeline_page
from pillarbox.people.roles import TeamRole

HOSTILE = "<b>Tides</b>"
ADA = "ada@quay.example"

HAD_EVENT = """
    INSERT INTO contact_events (team_id, name, contact_id, first_at, last_at, occurrences)
    VALUES ($1, $2, $3, $4, $5, $6)
"""
SIGNED_UP = """
    INSERT INTO form_sign_ups (team_id, id, form_id, address, email, digest, content, consent_text, client,
                               network, requested_at, expires_at)
    VALUES ($1, $2, $3, $4, $4, '', '{}', 'Yes', '192.0.2.7', '192.0.2.7', $5, $5)
"""


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with manual_world(database_url, tmp_path) as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    return await logged_in(team.world, await a_person(team, f"{uuid4().hex[:8]}@quay.example", role))


async def test_a_contact_shows_what_happened_to_it(here: World) -> None:
    team = await here.team("Harbor")
    contact_id = await a_contact(team)
    await here.turn()
    ada = await browser(team)
    page = await ada.get(f"/dashboard/contacts/{contact_id}")
    shown = text_of(page)
    for text in (
        "Ada Quill",
        "Email Your invoice",
        "Joined the segment Customers",
        "Left the topic Tides",
        "lantern",
    ):
        assert text in shown, text
    assert "Delivered" in shown
    assert shown.index("Email Your invoice") < shown.index("Joined the segment")


async def test_the_timeline_has_every_mail_once_page_by_page(here: World) -> None:
    team = await here.team("Harbor")
    contact = (await team.post("/contacts", {"email": "ada@quay.example"})).json()["id"]
    sent = []
    for number in range(60):
        clock_of(here).advance(timedelta(seconds=1).total_seconds())
        sent.append(await team.send(to="Ada@quay.example", subject=f"Mail {number}"))
        if number % 20 == 0:
            segment = (await team.post("/segments", {"name": f"S{number}"})).json()["id"]
            await team.http.post(f"/contacts/{contact}/segments/{segment}")
    await team.send(to="ben@quay.example", subject="Another's")
    seen, titles, before = [], [], START
    while True:
        page = await timeline_page(team.db, UUID(contact), "ada@quay.example", before)
        seen += [
            entry.href.rpartition("/")[2] for entry in page.entries if entry.href and "emails" in entry.href
        ]
        titles += [entry.title for entry in page.entries]
        assert page.entries == sorted(page.entries, key=lambda entry: entry.position, reverse=True)
        if page.older is None:
            break
        before = position_of(page.older)
    assert seen == sent[::-1]
    assert titles.count("Joined the segment") == 3
    assert titles[-1] == "Became a contact"


async def test_a_contact_shows_its_import_its_forms_its_events_and_its_mail(here: World) -> None:
    team, other = await here.team("Harbor"), await here.team("Quay")
    await an_import(team)
    [contact] = [row for row in (await team.get("/contacts")).json()["data"] if row["email"] == ADA]
    form_id = await a_form(team)
    clock_of(here).advance(4000)
    await a_consent(team, form_id, ADA)
    clock_of(here).advance(4000)
    await a_sign_up(team, form_id, ADA)
    for owner in (team, other):
        clock_of(here).advance(60)
        await a_received_email(owner)
    now = here.clock.now()
    for name, count in (("order.<i>placed", 3), ("cart.left", 1)):
        clock_of(here).advance(60)
        args = (team.id, name, UUID(contact["id"]), now - timedelta(days=2), here.clock.now(), count)
        await here.pool.execute(HAD_EVENT, *args)
    page = await (await browser(team)).get(f"/dashboard/contacts/{contact['id']}")
    shown = text_of(page)
    texts = (
        "Had the event cart.left",
        "Had the event order.<i>placed",
        "3 times · First",
        "Wrote the email Re: Your invoice",
        "Signed up at the form News <b>from the harbor</b>",
        "News <b>once</b> a month",
        "Not confirmed; the link works until",
        "Signed up at the form News <b>from the harbor</b>",
        "News <b>once</b> a month",
        "Confirmed",
        "Became a contact by the import <b>people.csv",
        "They signed up at the <b>fair</b> in May.",
    )
    place = 0
    for text in texts:
        place = shown.find(text, place)
        assert place >= 0, text
    assert shown.count("Wrote the email") == 1
    for text in ("<b>from", "<b>once", "<b>people", "<b>fair", "order.<i>"):
        assert text not in page.text
    held = (await team.get(f"/personal-data/{ADA}")).json()["contacts"][0]
    assert held["import"]["consent_note"] == "They signed up at the <b>fair</b> in May."
    assert [event["name"] for event in held["events"]] == ["cart.left", "order.<i>placed"]
    for path in ("/dashboard/contacts/imports/", "/dashboard/forms/", "/dashboard/emails/receiving/"):
        assert f'href="{path}' in page.text


async def test_each_page_of_a_timeline_goes_on_behind_the_last(here: World) -> None:
    team = await here.team("Harbor")
    contact_id = UUID((await team.post("/contacts", {"email": "ada@quay.example"})).json()["id"])
    expected = 1
    for number in range(30):
        clock_of(here).advance(60)
        now = here.clock.now()
        await here.pool.execute(HAD_EVENT, team.id, f"event {number}", contact_id, now, now, 1)
        await here.pool.execute(SIGNED_UP, team.id, uuid4(), uuid4(), "ada@quay.example", now)
        expected += 2
    await a_received_email(team)
    seen, before = [], START
    while True:
        page = await timeline_page(team.db, contact_id, "ada@quay.example", before)
        seen += [entry.position for entry in page.entries]
        if page.older is None:
            break
        before = position_of(page.older)
    assert len(seen) == len(set(seen)) == expected + 1
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(
    "text", ["", "x", "1.2", "99999999999999999999." + "0" * 32, "5." + "z" * 32, "-1." + "0" * 32]
)
def test_a_position_that_is_none_is_the_newest_end(text: str) -> None:
    assert position_of(text) == START


async def test_a_contact_is_changed_on_its_page(here: World) -> None:
    team = await here.team("Harbor")
    contact_id = await a_contact(team)
    await team.post("/contact-properties", {"key": "orders", "type": "number"})
    segment = (await team.post("/segments", {"name": HOSTILE})).json()["id"]
    topic = (await team.get("/topics")).json()["data"][0]["id"]
    ada, path = await browser(team), f"/dashboard/contacts/{contact_id}"
    await ada.get(path)
    fields = {"first_name": "Ann", "last_name": "", "property.plan": "", "property.orders": "x"}
    refused = await ada.post(f"{path}/edit", **fields)
    assert refused.status_code == 422
    assert "Enter a number" in text_of(refused)
    assert 'value="Ann"' in refused.text
    await ada.follow(await ada.post(f"{path}/edit", **{**fields, "property.orders": "12"}))
    await ada.post(f"{path}/topics", shown=topic, topic=topic)
    await ada.post(f"{path}/segments", segment=segment)
    done = await ada.follow(await ada.post(f"{path}/subscription", unsubscribed="yes"))
    assert "Unsubscribed from everything" in text_of(done)
    assert HOSTILE not in done.text
    contact = (await team.get(f"/contacts/{contact_id}")).json()
    assert (contact["first_name"], contact["last_name"], contact["unsubscribed"]) == ("Ann", None, True)
    assert contact["properties"] == {"orders": {"value": 12, "type": "number"}}
    assert (await team.get(f"/contacts/{contact_id}/topics")).json()["data"][0]["subscription"] == "opt_in"
    assert len((await team.get(f"/contacts/{contact_id}/segments")).json()["data"]) == 2
    await ada.post(f"{path}/segments/leave", segment=segment)
    assert len((await team.get(f"/contacts/{contact_id}/segments")).json()["data"]) == 1
    assert (await ada.post(f"{path}/delete", typed_name="someone")).status_code == 422
    await ada.post(f"{path}/delete", typed_name=contact["email"])
    assert (await team.get(f"/contacts/{contact_id}")).status_code == 404


async def test_topics_and_properties_are_made_changed_and_deleted(here: World) -> None:
    team = await here.team("Harbor")
    ada = await browser(team)
    assert "No topic yet" in text_of(await ada.get("/dashboard/topics"))
    assert "No property yet" in text_of(await ada.get("/dashboard/contact-properties"))
    topic = {"name": HOSTILE, "description": "", "default_subscription": "opt_in", "visibility": "public"}
    assert (await ada.post("/dashboard/topics/new", **{**topic, "name": ""})).status_code == 422
    made = await ada.follow(await ada.post("/dashboard/topics/new", **topic))
    assert HOSTILE in text_of(made)
    assert HOSTILE not in made.text
    await team.post("/contacts", {"email": "ada@quay.example"})
    await team.post("/contacts", {"email": "ben@quay.example", "unsubscribed": True})
    assert f"{HOSTILE} Gets it Public 1" in text_of(await ada.get("/dashboard/topics"))
    [row] = (await team.get("/topics")).json()["data"]
    path = f"/dashboard/topics/{row['id']}"
    await ada.post(path, **{**topic, "name": "Moon"})
    assert (await ada.post(f"{path}/delete", typed_name="Tides")).status_code == 422
    await ada.post(f"{path}/delete", typed_name="Moon")
    assert (await team.get("/topics")).json()["data"] == []
    new = "/dashboard/contact-properties/new"
    assert "Enter a number" in text_of(await ada.post(new, key="orders", type="number", fallback="many"))
    await ada.post(new, key="orders", type="number", fallback="1.5")
    [row] = (await team.get("/contact-properties")).json()["data"]
    assert row["fallback_value"] == 1.5
    path = f"/dashboard/contact-properties/{row['id']}"
    await ada.post(path, fallback="")
    assert (await team.get(f"/contact-properties/{row['id']}")).json()["fallback_value"] is None
    assert (await ada.post(f"{path}/delete", typed_name="")).status_code == 422
    await ada.post(f"{path}/delete", typed_name="orders")
    assert (await team.get("/contact-properties")).json()["data"] == []
