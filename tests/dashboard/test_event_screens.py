"""Screens of events: definitions, the latest with their payloads, sending one."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from kit.automation_rows import an_automation
from kit.automation_runs import walk
from kit.manual_world import manual_world
from kit.people import a_person, logged_in, text_of
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/events"
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
