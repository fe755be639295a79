"""A whole broadcast over the API, with real mail: from its schedule to what its recipients did, and what the
reports, the metrics and `verify` say of it."""

from __future__ import annotations

from email.parser import BytesParser
from pathlib import Path
from typing import Any

import dkim

from kit.audience import a_segment
from kit.broadcasts import made, sent, shown
from kit.brought import INVARIANTS
from kit.manual_world import clock_of, parsed, relayed_world, run_jobs
from kit.smtp_sink import USUAL
from kit.tracking import URL, Reader, hrefs, html_of, pixels, tracks
from kit.world import Team
from pillarbox.broadcasts.reports import wire
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.timeline import rollups

TIDES, MAP = "https://harbor.example/tides?a=1&b=%2F", "https://harbor.example/map"
HTML = (
    "<p>Hi {{{FIRST_NAME|sailor}}}</p>"
    '<a href="https://harbor.example/tides?a=1&amp;b=%2F">Tides</a>'
    '<a href="https://harbor.example/map">Map</a>'
    '<a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">Leave</a>'
)
CREW = ("ada", "bo", "cy", "di", "ed", "flo")


def refuses_cy(session: Any, argument: str) -> object:
    return "550 5.1.1 no such user" if "cy@" in argument else USUAL


async def test_a_broadcast_from_its_schedule_to_its_reports(database_url: str, tmp_path: Path) -> None:
    """broadcasts.md section 9, points 4, 8, 10, 12 and 13, and metrics.md section 7: Ada reads and clicks, Bo
    leaves with one click, Cy's address does not exist, Di is suppressed, Ed leaves between the start and his
    copy, Flo only gets it. A test copy goes out meanwhile, and counts nowhere."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        sink.script("RCPT", then=refuses_cy)
        team = await pillarbox.team()
        await tracks(team)
        segment = str(await a_segment(team))
        for name in CREW:
            new = {"email": f"{name}@quay.example", "first_name": name.title(), "segments": [{"id": segment}]}
            assert (await team.post("/contacts", new)).status_code == 201
        assert (await team.post("/suppressions", {"email": "di@quay.example"})).status_code == 201
        broadcast_id = await made(team, segment, html=HTML, name="Tides")
        preview = {"contact": "ada@quay.example", "send_to": "me@pier.example"}
        assert (await team.post(f"/broadcasts/{broadcast_id}/preview", preview)).status_code == 200
        await sent(team, broadcast_id, scheduled_at="in 1 hour")
        change = {"subject": "High water, {{{FIRST_NAME}}}"}
        answer = await team.call("PATCH", f"/broadcasts/{broadcast_id}", change)
        assert answer.status_code == 200, answer.text
        clock_of(pillarbox).advance(3600)
        await run_jobs(pillarbox)
        assert (await shown(team, broadcast_id))["status"] == "queued"
        answer = await team.call("PATCH", "/contacts/ed@quay.example", {"unsubscribed": True})
        assert answer.status_code == 200, answer.text
        await pillarbox.turn()
        clock_of(pillarbox).advance(60)
        await run_jobs(pillarbox)
        assert (await shown(team, broadcast_id))["status"] == "sent"
        messages = {message.recipients[0]: message for message in await sink.messages(4)}
        got_it = [name.partition("@")[0] for name in sorted(messages)]
        assert got_it == ["ada", "bo", "flo", "me"]

        ada, bo = messages["ada@quay.example"], messages["bo@quay.example"]
        assert parsed(ada)["subject"] == "High water, Ada"
        reader = Reader(team)
        tides, map_, _ = hrefs(html_of(ada))
        assert (await reader.asks(tides)).headers["location"] == TIDES
        for url in (tides, map_, pixels(html_of(ada))[0], pixels(html_of(ada))[0]):
            assert (await reader.asks(url)).status_code in (200, 302)
        link = str(parsed(bo)["list-unsubscribe"]).strip("<>")
        await signed(team, bo.content)
        one_click = await team.world.client(None).post(
            link.removeprefix(URL), data={"List-Unsubscribe": "One-Click"}
        )
        assert one_click.status_code == 200, one_click.text

        expected = {
            "sent": ["ada", "bo", "cy", "flo"],
            "delivered": ["ada", "bo", "flo"],
            "opened": ["ada"],
            "clicked": ["ada"],
            "bounced": ["cy"],
            "complained": [],
            "unsubscribed": ["bo"],
            "suppressed": ["di"],
        }
        await agrees(team, broadcast_id, expected)
        await rollups.fold(pillarbox.pool, pillarbox.clock.now())
        await agrees(team, broadcast_id, expected)
        found = await reconcile(pillarbox.pool, 10, INVARIANTS)
        assert found.gaps == []


async def signed(team: Team, message: bytes) -> None:
    """The signature covers both List-* headers."""
    [domain] = (await team.get("/domains")).json()["data"]
    records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
    keys = {f"{r['name']}.harbor.example.": r["value"] for r in records if r["record"] == "DKIM"}
    assert dkim.verify(message, dnsfunc=lambda name, timeout=5: keys[name.decode()].encode())
    names = "".join(str(BytesParser().parsebytes(message)["dkim-signature"]).split()).lower()
    for name in ("list-unsubscribe", "list-unsubscribe-post"):
        assert name in names.partition(";h=")[2].partition(";")[0].split(":")


async def agrees(team: Team, broadcast_id: str, expected: dict[str, list[str]]) -> None:
    """The reports say this, and the metrics of the broadcast the same in numbers."""
    path = f"/broadcasts/{broadcast_id}"
    answer = await team.get(f"/emails/metrics?broadcast_id={broadcast_id}&dimensions=broadcast")
    totals = answer.json()["totals"]
    [row] = answer.json()["data"]
    assert (row["broadcast_name"], row["sent"]) == ("Tides", totals["sent"])
    assert totals["received"] == 5
    for kind in wire.TYPES:
        rows = (await team.get(f"{path}/recipients?type={kind}")).json()["data"]
        assert sorted(row["email"].partition("@")[0] for row in rows) == expected[kind], kind
        metric = f"unique_{kind}" if kind in ("opened", "clicked") else kind
        assert totals[metric] == len(rows), kind
    [clicked] = (await team.get(f"{path}/recipients?type=clicked")).json()["data"]
    assert (clicked["count"], clicked["clicked_links"]) == (
        3,
        [{"url": TIDES, "clicks": 2}, {"url": MAP, "clicks": 1}],
    )
    [opened] = (await team.get(f"{path}/recipients?type=opened")).json()["data"]
    assert (opened["count"], totals["opened"], totals["clicked"]) == (2, 2, 3)
    links = (await team.get(f"{path}/clicked-links")).json()["data"]
    found = [(link["url"], link["clicks"], link["unique_clicks"]) for link in links]
    assert found == [(TIDES, 2, 1), (MAP, 1, 1)]
