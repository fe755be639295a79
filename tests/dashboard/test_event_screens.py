"""Screens of events: definitions, the latest with their payloads, sending one."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from uuid import UUID

from kit.automation_rows import an_automation, lone_trigger
from kit.automation_runs import walk
from kit.manual_world import manual_world
from kit.people import a_person, logged_in, text_of
from pillarbox.automations.overview import views
from pillarbox.events import latest
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/events"
COPIES = """
    WITH copied AS (
        INSERT INTO automations
        SELECT (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid()))).*
          FROM automations a, generate_series(1, 220) WHERE a.id = $1
        RETURNING team_id, id
    )
    INSERT INTO automation_triggers
    SELECT (jsonb_populate_record(t, jsonb_build_object('automation_id', copied.id))).*
      FROM copied, automation_triggers t WHERE t.automation_id = $1
"""
BASE = re.compile(r'name="base" value="([^"]*)"')


async def test_events_are_defined_changed_sent_and_deleted(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@quay.example"))
        assert "No event is defined" in (await ada.get(LIST)).text
        for schema in ("plan string", "plan: array"):
            refused = await ada.send(f"{LIST}/new", name="user.signed_up", schema=schema)
            assert refused.status_code == 422
            assert schema in refused.text
        made = await ada.send(
            f"{LIST}/new", name="user.signed_up", schema="plan: string\r\nseats = number\r\n"
        )
        one = made.headers["location"].partition("?")[0]
        assert (await team.get("/events/user.signed_up")).json()["schema"] == {
            "plan": "string",
            "seats": "number",
        }
        automation = await an_automation(team, name="Welcome", status="enabled")

        wrong = {"name": "user.signed_up", "to": "ben@quay.example", "payload": '{"seats": "x"}'}
        refused = await ada.send(f"{LIST}/send", **wrong)
        assert refused.status_code == 422
        assert "payload.seats" in refused.text
        assert (await ada.post(f"{LIST}/send", **{**wrong, "payload": "{"})).status_code == 422
        sent = {"name": "user.signed_up", "to": "ben@quay.example", "payload": '{"seats": 3, "plan": "<b>"}'}
        latest = await ada.follow(await ada.post(f"{LIST}/send", **sent))
        assert "The event is accepted." in text_of(latest)
        assert "Waiting" in text_of(latest)
        await walk(here)
        page = await ada.get(one)
        assert "Started a run" in text_of(page)
        assert "Welcome" in text_of(page)
        assert '"seats": 3' in unescape(page.text)
        assert "<b>" not in page.text.partition("<h2>")[2].partition("</table>")[0]
        assert f"/dashboard/automations/{automation}/runs/" in page.text
        assert "No events" in (await ada.get(f"{LIST}/latest?name=other")).text

        base = BASE.search(page.text)
        assert base is not None
        await team.call("PATCH", "/events/user.signed_up", {"schema": {"plan": "string"}})
        await here.pool.execute("UPDATE event_definitions SET updated_at = updated_at + interval '1s'")
        fields = {"base": unescape(base[1]), "schema": "mine: date", "do": "save"}
        conflict = await ada.post(f"{one}/schema", **fields)
        assert conflict.status_code == 409
        assert "mine: date" in conflict.text
        assert (await ada.post(f"{one}/schema", **{**fields, "do": "overwrite"})).status_code == 303
        assert (await team.get("/events/user.signed_up")).json()["schema"] == {"mine": "date"}

        viewer = await logged_in(here, await a_person(team, "vi@quay.example", TeamRole.VIEWER))
        other = await here.team("Quay")
        stranger = await logged_in(here, await a_person(other, "nell@quay.example"))
        for browser, status in ((viewer, 403), (stranger, 404)):
            await browser.get("/account")
            for path in ("schema", "delete"):
                assert (await browser.post(f"{one}/{path}", **fields)).status_code == status
        deleted = await ada.follow(await ada.post(f"{one}/delete"))
        assert "The definition is deleted." in deleted.text
        assert (await ada.get(one)).status_code == 404


async def test_each_event_says_what_it_starts_and_large_payloads_stay_in_the_database(
    database_url: str, tmp_path: Path
) -> None:
    """An event that many automations listen to hid the listeners of all others."""
    async with manual_world(database_url, tmp_path) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@quay.example"))
        for name in ("a.many", "b.few"):
            await team.post("/events", {"name": name})
        await an_automation(team, lone_trigger("b.few"), name="Few", status="enabled")
        many = await an_automation(team, lone_trigger("a.many"), name="Many", status="enabled")
        await here.pool.execute(COPIES, UUID(many))
        page = text_of(await ada.get(LIST))
        assert "Few" in page
        assert page.count("Many") == 4
        large = {"event": "b.few", "email": "ben@quay.example", "payload": {"text": "x" * 90_000}}
        await team.post("/events/send", large)
        [waiting] = await latest.stored_events(team.db, None, 5, 100)
        await walk(here)
        [started] = await views.starting_events(team.db, None, 5, 100)
        assert (len(waiting.payload), len(started.payload)) == (100, 100)
