"""Screens of webhooks: adding one, events, replays, test events, secrets, and the signature checker."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from kit.people import Visit, a_person, heading, logged_in, text_of
from kit.receiver import WEBHOOKS
from kit.webhooks import Hook, hook, publish
from kit.world import Team, World, world
from pillarbox.people.roles import TeamRole
from pillarbox.webhooks.dispatch.posting import headers
from pillarbox.webhooks.signing_secrets import key_of

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{32}")


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world(database_url, tmp_path, started=False, **WEBHOOKS) as made:
        yield made


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    person = await a_person(team, f"{role.value}-{team.id.hex[:6]}@harbor.example", role)
    return await logged_in(team.world, person)


async def failed_hook(team: Team) -> Hook:
    """A webhook with two events that failed and one that is open."""
    subject = await hook(team, "domain.updated")
    await publish(team, "domain.updated", "domain.updated", "domain.updated")
    first, second, _ = await subject.events()
    await subject.ends(first["id"], "failed")
    await subject.ends(second["id"], "failed")
    return subject


async def test_a_webhook_is_added_and_its_secret_is_shown_once(here: World) -> None:
    team = await here.team("Harbor")
    ada = await browser(team)
    await ada.get("/dashboard/webhooks/new")
    fields = {"endpoint": "https://hooks.harbor.example/in", "event": ["email.bounced", "email.delivered"]}
    answer = await ada.post("/dashboard/webhooks", **fields)
    assert SECRET.search(answer.text)
    webhook_id = (await team.get("/webhooks")).json()["data"][0]["id"]
    for path in ("", f"/{webhook_id}", f"/{webhook_id}/edit"):
        assert not SECRET.search((await ada.get(f"/dashboard/webhooks{path}")).text)


async def test_what_was_typed_stays_where_a_webhook_is_refused(here: World) -> None:
    ada = await browser(await here.team("Harbor"))
    await ada.get("/dashboard/webhooks/new")
    answer = await ada.post("/dashboard/webhooks", endpoint='ftp://"harbor', event="topic.created")
    assert answer.status_code == 422
    assert 'value="ftp://&#34;harbor"' in answer.text
    assert 'value="topic.created" checked' in answer.text
    nothing = await ada.post("/dashboard/webhooks", endpoint="https://hooks.harbor.example/in")
    assert (nothing.status_code, "Name at least one event." in text_of(nothing)) == (422, True)


async def test_a_webhook_is_changed_disabled_enabled_and_deleted(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await hook(team, "domain.updated"), await browser(team)
    place = f"/dashboard/webhooks/{subject.id}"
    await ada.get(f"{place}/edit")
    answer = await ada.post(f"{place}/edit", endpoint="https://new.harbor.example/in", event="topic.created")
    assert "The webhook is changed." in text_of(await ada.follow(answer))
    for status in ("disabled", "enabled"):
        await ada.follow(await ada.post(f"{place}/status", status=status))
        assert (await subject.get())["status"] == status
    assert (await ada.post(f"{place}/delete", typed_name="something else")).status_code == 422
    gone = await ada.post(f"{place}/delete", typed_name="https://new.harbor.example/in")
    assert "The webhook is deleted." in text_of(await ada.follow(gone))
    assert (await team.get("/webhooks")).json()["data"] == []


async def test_a_rotated_secret_is_shown_once(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await hook(team), await browser(team)
    await ada.get(f"/dashboard/webhooks/{subject.id}")
    found = SECRET.search((await ada.post(f"/dashboard/webhooks/{subject.id}/rotate")).text)
    assert found
    assert found[0] == (await subject.get())["signing_secret"] != subject.secret


async def test_what_failed_is_listed_and_sent_once_more(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await failed_hook(team), await browser(team)
    place = f"/dashboard/webhooks/{subject.id}"
    shown = await ada.get(f"{place}?state=failed")
    assert shown.text.count("/events/msg_") == 2
    done = await ada.follow(await ada.post(f"{place}/replay", period="24h"))
    assert "Failed events that are sent once more: 2." in text_of(done)
    assert done.text.count("/events/msg_") == 2
    assert len([row for row in await subject.owed() if row["replay"].int]) == 2
    again = await ada.post(f"{place}/replay", period="nonsense")
    assert again.headers["location"] == f"{place}?state=failed&replayed=2"


async def test_lists_and_overview_say_how_many_deliveries_failed(here: World) -> None:
    team = await here.team("Harbor")
    await failed_hook(team)
    ada = await browser(team)
    for path in ("/dashboard/webhooks", "/dashboard"):
        assert "2 failed in 24 hours" in text_of(await ada.get(path))


async def test_a_refused_address_names_the_setting(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await failed_hook(team), await browser(team)
    event = (await subject.events())[0]
    await subject.attempt(event["id"], 0, "address not allowed")
    shown = await ada.get(f"/dashboard/webhooks/{subject.id}/events/{event['id']}")
    assert "--allow-private" in shown.text


async def test_nothing_is_sent_where_nothing_failed(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await hook(team), await browser(team)
    await ada.get("/dashboard")
    answer = await ada.post(f"/dashboard/webhooks/{subject.id}/replay", period="7d")
    assert "Nothing failed in this period." in text_of(await ada.follow(answer))


async def test_events_of_a_disabled_webhook_have_failed_and_are_not_replayed(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await failed_hook(team), await browser(team)
    await subject.change(status="disabled")
    place = f"/dashboard/webhooks/{subject.id}"
    assert (await ada.get(f"{place}?state=failed")).text.count("/events/msg_") == 3
    assert (await ada.post(f"{place}/replay")).status_code == 422


async def test_an_event_shows_its_request_and_its_answers(here: World) -> None:
    team = await here.team("Harbor")
    subject, ada = await hook(team), await browser(team)
    await publish(team, name="<script>alert(1)</script>")
    [event] = await subject.events()
    await subject.attempt(event["id"], 503, "<img src=x onerror=alert(1)>")
    await subject.attempt(event["id"], 200, '{"ok":true}')
    place = f"/dashboard/webhooks/{subject.id}/events/{event['id']}"
    shown = await ada.get(place)
    assert heading(shown) == "domain.updated"
    assert "<script>alert" not in shown.text
    assert "<img src=x" not in shown.text
    assert "503" in text_of(shown)
    assert "0 ms" in text_of(shown)
    answer = await ada.post(f"{place}/replay")
    assert "The event is sent once more." in text_of(await ada.follow(answer))
    assert len([row for row in await subject.owed() if row["replay"].int]) == 1


async def test_a_test_event_goes_to_one_webhook_alone(here: World) -> None:
    team = await here.team("Harbor")
    subject, other, ada = await hook(team), await hook(team), await browser(team)
    place = f"/dashboard/webhooks/{subject.id}"
    await ada.get(place)
    answer = await ada.follow(await ada.post(f"{place}/test", kind="domain.updated"))
    assert "The test event is on its way." in text_of(answer)
    assert await subject.kinds() == ["domain.updated"]
    assert await other.events() == []
    assert (await ada.post(f"{place}/test", kind="domain.sunk")).status_code == 422
    await subject.change(status="disabled")
    assert (await ada.post(f"{place}/test", kind="domain.updated")).status_code == 422


async def test_a_viewer_reads_and_changes_nothing(here: World) -> None:
    team = await here.team("Harbor")
    subject, viewer = await failed_hook(team), await browser(team, TeamRole.VIEWER)
    place = f"/dashboard/webhooks/{subject.id}"
    assert (await viewer.get(place)).status_code == 200
    for below in ("/status", "/rotate", "/delete", "/test", "/replay", "/edit"):
        assert (await viewer.post(place + below)).status_code == 403, below
    assert (await viewer.get("/dashboard/webhooks/new")).status_code == 403
    assert (await viewer.post("/dashboard/webhooks", endpoint="https://x.example")).status_code == 403


async def test_a_webhook_of_another_team_is_not_there(here: World) -> None:
    subject = await failed_hook(await here.team("Harbor"))
    [event, *_] = await subject.events()
    ben = await browser(await here.team("Quay"))
    place = f"/dashboard/webhooks/{subject.id}"
    await ben.get("/dashboard")
    for below in ("", "/edit", f"/events/{event['id']}", "?state=failed"):
        assert (await ben.get(place + below)).status_code == 404, below
    for below in ("/rotate", "/delete", "/test", "/replay", f"/events/{event['id']}/replay"):
        assert (await ben.post(place + below, kind="domain.updated")).status_code == 404, below
    assert (await ben.get(f"/dashboard/webhooks/{uuid4()}")).status_code == 404


async def test_the_checker_says_whether_a_signature_fits(here: World) -> None:
    ada = await browser(await here.team("Harbor"))
    body, secret = '{"type":"domain.updated"}', "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
    now = int(here.clock.now().timestamp())

    async def verdict(body: str, secret: str, seconds: int = 0, drop: str = "none") -> str:
        signed = headers(
            [key_of("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX")],
            "msg_1",
            now - seconds,
            b'{"type":"domain.updated"}',
        )
        lines = "\r\n".join(f"{name}: {value}" for name, value in signed.items() if drop not in name)
        await ada.get("/dashboard/webhooks/signature")
        answer = await ada.post("/dashboard/webhooks/signature", body=body, header_lines=lines, secret=secret)
        assert secret not in answer.text
        return text_of(answer)

    assert "The signature is valid." in await verdict(body + "\r\n", secret)
    assert "does not fit" in await verdict(body.replace("updated", "deleted"), secret)
    assert "does not fit" in await verdict(body, "whsec_" + "A" * 32)
    assert "5 minutes away" in await verdict(body, secret, 301)
    assert "Headers are missing" in await verdict(body, secret, drop="timestamp")
    assert "no signing secret" in await verdict(body, "swordfish!")
