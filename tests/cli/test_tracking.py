"""`pillarbox tracking`, and the operator's word for the host of tracked links."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.conftest import Installation
from kit.manual_world import relayed_world
from kit.tracking import URL, hrefs, html_of, pixels, tracks


def test_the_table_of_machines_can_be_read_and_extended(
    empty: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = empty.json("tracking", "machines")["data"]
    assert rows[0] == {
        "name": "gmail_image_proxy",
        "kind": "image proxy",
        "known_by": "User-Agent has 'GoogleImageProxy'",
    }
    assert len(rows) > 30
    shown = empty.run("tracking", "machines").stdout.splitlines()
    assert shown[0].split() == ["Name", "Kind", "Known", "by"]
    assert len(shown) == len(rows) + 1
    file = tmp_path / "machines.toml"
    file.write_text('[[machine]]\nname = "corp"\nuser_agent = "CorpScan"\nnetworks = ["192.0.2.0/24"]\n')
    monkeypatch.setenv("PILLARBOX_TRACKING_MACHINES", str(file))
    own, *others = empty.json("tracking", "machines")["data"]
    assert own["known_by"] == "User-Agent has 'CorpScan' or comes from 192.0.2.0/24"
    assert others == rows
    file.write_text("[[machine]]")
    refused = empty.run("tracking", "machines")
    assert refused.exit_code == 2
    assert "no name of 1 to 64 visible characters in machine 1" in refused.stderr


async def test_a_link_says_whose_it_is(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await tracks(team)
        html = '<a href="mailto:a@b.example">a</a><a href="https://shop.example/?a=1&amp;b">b</a>'
        email = await team.send(html=html, to=["ada@quay.example", "bob@quay.example"])
        await pillarbox.turn()
        message = next(one for one in await sink.messages(2) if one.recipients == ["bob@quay.example"])
        here = Installation(database_url, tmp_path)
        who = {"team_id": str(team.id), "email_id": email, "recipient": 2}
        link, pixel = hrefs(html_of(message))[1], pixels(html_of(message))[0]
        found = await asyncio.to_thread(here.json, "tracking", "show", link)
        assert found == {**who, "link": 2, "url": "https://shop.example/?a=1&b"}
        assert await asyncio.to_thread(here.json, "tracking", "show", pixel) == who
        with_query = await asyncio.to_thread(here.json, "tracking", "show", f"{link}?utm_source=a/b#c")
        assert with_query == found
        shown = await asyncio.to_thread(here.run, "tracking", "show", link.rpartition("/")[2])
        assert "https://shop.example/?a=1&b" in shown.stdout
        refused = await asyncio.to_thread(here.run, "tracking", "show", link[:-1])
        assert refused.exit_code == 1
        assert refused.stderr.startswith("pillarbox: This is no link or picture of a tracked mail")


async def test_the_operator_vouches_for_the_host_of_links_apart(database_url: str, tmp_path: Path) -> None:
    """docs/decisions/0015: trusting a domain says nothing about it."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        here = Installation(database_url, tmp_path)
        await tracks(team, verified=False)
        await team.send(html='<a href="https://shop.example">x</a>')
        await pillarbox.turn()
        assert "/t/c/" not in html_of((await sink.messages(1))[0])
        done = await asyncio.to_thread(here.run, "domains", "trust", "harbor.example", "--tracking")
        assert (done.exit_code, done.stdout.startswith("harbor.example is trusted")) == (0, True)
        [domain] = (await team.get("/domains")).json()["data"]
        records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
        assert {record["status"] for record in records} == {"verified"}
        changed = await team.call("PATCH", f"/domains/{domain['id']}", {"tracking_subdomain": None})
        assert changed.status_code == 200
        done = await asyncio.to_thread(here.run, "domains", "trust", "harbor.example", "--tracking")
        assert (done.exit_code, "has no `tracking_subdomain`" in done.stderr) == (1, True)
