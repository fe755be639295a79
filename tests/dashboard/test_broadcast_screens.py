"""Screens of broadcasts: a draft as steps, sending it, its progress and its report, and who may do what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.audience import a_segment, joins, some_contacts
from kit.broadcasts import made
from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import a_broadcast
from kit.world import Team, World, world
from pillarbox.dashboard.broadcasts.heat_list import with_clicks
from pillarbox.people.audit import Act
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/broadcasts"
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world(database_url, tmp_path, started=False) as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    """A browser in which somebody of the team has logged in."""
    return await logged_in(
        team.world, await a_person(team, f"{role.value}-{uuid4().hex[:6]}@quay.example", role)
    )


async def test_a_draft_goes_through_its_steps_and_is_sent(here: World) -> None:
    team = await here.team("Harbor")
    await team.domain()
    ada = await browser(team)
    assert "There is no segment yet" in text_of(await ada.get(f"{LIST}/new"))
    segment = await a_segment(team, f"Crew {HOSTILE}")
    await joins(team, segment, await some_contacts(team, 3))
    crew = (await team.get("/contacts")).json()["data"][0]["email"]
    content = {"from": "news@harbor.example", "subject": f"Tides {HOSTILE}", "html": "<p>High</p>"}
    wrong = await ada.send(f"{LIST}/new", LIST, **content | {"from": "nobody"}, segment_id=str(segment))
    assert (wrong.status_code, "Invalid `from` field" in wrong.text) == (422, False)
    answer = await ada.send(f"{LIST}/new", LIST, **content, segment_id=str(segment))
    here_is = answer.headers["location"].partition("?")[0]
    assert f"Tides {HOSTILE}" in text_of(await ada.get(LIST))
    shown = await ada.follow(answer)
    assert HOSTILE not in shown.text
    assert "3 contacts get it" in text_of(shown)

    assert (await ada.send(here_is, f"{here_is}/content", **content)).status_code == 303
    stale = await ada.send(here_is, f"{here_is}/content", **content | {"name": "Ebb"}, revision="0" * 32)
    assert (stale.status_code, "Somebody else" in stale.text, "Ebb" in stale.text) == (409, True, True)
    copy = await ada.send(here_is, f"{here_is}/copy", contact=crew, send_to="ada@quay.example")
    assert copy.status_code == 303, text_of(copy)

    page = f"{here_is}?step=pace"
    pace = {"has_canary": "on", "canary_percent": "5", "canary_time": "2", "canary_unit": "hours"}
    refused = await ada.send(page, f"{here_is}/pace", **pace | {"canary_percent": "90"})
    assert (refused.status_code, 'value="90"' in refused.text) == (422, True)
    answer = await ada.send(page, f"{here_is}/pace", **pace, has_speed="on", per_hour="500")
    assert answer.headers["location"].startswith(f"{here_is}?step=test")
    stale = await ada.send(page, f"{here_is}/pace", **pace, revision="0" * 32)
    assert (stale.status_code, "has changed since you read it" in stale.text) == (409, True)
    test = {"count": "2", "percent": "20", "winner_by": "clicks", "test_time": "4", "test_unit": "hours"}
    answer = await ada.send(f"{here_is}?step=test", f"{here_is}/test", **test, subject_2="Low water")
    assert answer.status_code == 303, answer.text
    plan = (await team.get(f"/broadcasts/{here_is.rpartition('/')[2]}/plan")).json()
    assert (plan["canary"], plan["per_hour"]) == ({"percent": 5, "minutes": 120}, 500)
    assert [one["subject"] for one in plan["ab_test"]["variants"]] == [None, "Low water"]

    review = text_of(await ada.get(f"{here_is}?step=review"))
    assert "5 % get it first; 2 h later the others" in review
    assert "No link in the text leads to unsubscribing" in review
    later = await ada.send(
        f"{here_is}?step=review", f"{here_is}/send", when="later", scheduled_at="in 1 hour"
    )
    assert "It is scheduled." in text_of(await ada.follow(later))
    assert (await ada.send(f"{here_is}?step=review", f"{here_is}/cancel")).status_code == 303
    answer = await ada.send(f"{here_is}?step=review", f"{here_is}/send")
    assert "The recipients are being found." in text_of(await ada.follow(answer))
    answer = await ada.send(here_is, f"{here_is}/pause")
    assert "Paused by owner-" in text_of(await ada.follow(answer))
    assert (await ada.send(here_is, f"{here_is}/resume")).status_code == 303
    assert (await ada.send(here_is, f"{here_is}/cancel")).status_code == 303
    assert "Canceled" in text_of(await ada.get(here_is))
    assert await recorded(here) == [
        *(Act.BROADCAST_CREATED, Act.BROADCAST_CHANGED, Act.EMAILS_SENT),
        *(Act.BROADCAST_CHANGED, Act.BROADCAST_CHANGED, Act.BROADCAST_SENT, Act.BROADCAST_CANCELED),
        *(Act.BROADCAST_SENT, Act.BROADCAST_PAUSED, Act.BROADCAST_RESUMED, Act.BROADCAST_CANCELED),
    ]


async def recorded(here: World) -> list[Act]:
    """What the log of acts has of broadcasts and copies, oldest first."""
    rows = await here.pool.fetch(
        "SELECT what FROM audit_entries WHERE what LIKE 'broadcast.%' OR what LIKE 'email%' ORDER BY id"
    )
    return [Act(row["what"]) for row in rows]


async def test_a_report_has_views_a_heat_list_and_a_file(here: World) -> None:
    team = await here.team("Harbor")
    broadcast_id = await a_broadcast(team)
    ada, url = await browser(team), f"{LIST}/{broadcast_id}"
    report = text_of(await ada.get(url))
    for text in ("<b>Tides</b>", "6 of 20 copies are made", "A/B test waits", "The tides <i>of October</i>"):
        assert text in report
    clicked = text_of(await ada.get(f"{url}?view=recipients&type=clicked"))
    assert "https://harbor.example/tides" in clicked
    assert "Nobody is in this list" in text_of(await ada.get(f"{url}?view=recipients&type=bounced"))
    assert "quay.example" in text_of(await ada.get(f"{url}?view=parts"))
    heat = (await ada.get(f"{url}/heat/html")).text
    assert ("100.0" in heat, "onerror" in heat) == (True, False)
    lines = (await ada.get(f"{url}/csv?type=clicked")).text.splitlines()
    assert len(lines) == 4
    assert lines[1].endswith("https://harbor.example/tides (1)")
    answer = await ada.send(url, f"{url}/winner", variant="2")
    assert "Winner" in text_of(await ada.follow(answer))
    again = await ada.send(url, f"{url}/winner", variant="1")
    assert again.status_code == 403
    await here.pool.execute("UPDATE broadcasts SET status = 'sent', sent_at = now()")
    answer = await ada.send(url, f"{url}/resend")
    assert "This is a draft for who did not open it." in text_of(await ada.follow(answer))
    draft = answer.headers["location"].partition("?")[0]
    assert "3 contacts get it" in text_of(await ada.get(f"{draft}?step=audience"))
    winner = (await team.get(f"/broadcasts/{broadcast_id}/plan")).json()["ab_test"]["variants"][1]
    content = (await team.get(f"/broadcasts/{draft.rpartition('/')[2]}")).json()
    assert content["subject"] == winner["subject"] != "The tides"
    answer = await ada.send(url, f"{url}/duplicate")
    assert "<b>Tides</b> (copy)" in text_of(await ada.follow(answer))
    draft = answer.headers["location"].partition("?")[0]
    assert (await ada.send(draft, f"{draft}/delete")).status_code == 303
    assert (await recorded(here))[-4:] == [
        *(Act.BROADCAST_WINNER_CHOSEN, Act.BROADCAST_CREATED, Act.BROADCAST_CREATED, Act.BROADCAST_DELETED),
    ]


async def test_viewers_look_and_others_find_nothing(here: World) -> None:
    team, other = await here.team("Harbor"), await here.team("Quay")
    draft, url = await made(team), f"{LIST}/{await a_broadcast(team)}"
    viewer, stranger = await browser(team, TeamRole.VIEWER), await browser(other)
    assert "Pause" not in text_of(await viewer.get(url))
    await stranger.get(LIST)
    forms: dict[str, dict[str, Any]] = {
        f"{url}/{act}": {} for act in ("pause", "resume", "cancel", "winner", "duplicate", "resend")
    } | {
        f"{LIST}/{draft}/{act}": {}
        for act in ("content", "audience", "pace", "test", "copy", "send", "delete")
    }
    for action, fields in forms.items():
        assert (await viewer.post(action, **fields)).status_code == 403, action
        assert (await stranger.post(action, **fields)).status_code == 404, action
    for path in (url, f"{url}/heat/html", f"{url}/csv", f"{url}/html", f"{LIST}/{draft}?step=review"):
        assert (await stranger.get(path)).status_code == 404, path
    assert UUID(draft)


def test_clicks_stand_in_their_links() -> None:
    body = '<a href="https://a.example/?x=1&amp;y=2" title="a > b">A</a><a href="mailto:a@b.example">B</a>'
    shown = with_clicks(body, {"https://a.example/?x=1&y=2": 3, "https://b.example/": 1})
    assert shown.count("75.0") == 1
    assert '<a href="mailto:a@b.example">B</a>' in shown
