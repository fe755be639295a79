"""Copies of broadcasts are tracked as other mail is (emails.md 8, broadcasts.md 7)."""

from __future__ import annotations

from pathlib import Path

from kit.audience import a_contact
from kit.broadcast_rows import a_broadcast, copies_of
from kit.manual_world import relayed_world
from kit.tracking import URL, Reader, hrefs, html_of, pixels, timeline_of, tracks
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.tracking_tokens import read_link

HTML = (
    '<a href="https://shop.example/?who={{{contact.email}}}&amp;a=1">shop</a>'
    '<a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">leave</a><a href="mailto:a@b.example">write</a>'
)
OF_BROADCAST = """
    SELECT sum(opened) AS opened, sum(clicked) AS clicked, sum(unique_clicked) AS unique_clicked
      FROM metric_increments WHERE team_id = $1 AND broadcast_id = $2
"""


async def test_each_copy_has_links_of_its_own(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await tracks(team)
        contacts = [await a_contact(team, f"{name}@quay.example") for name in ("ada", "bob")]
        broadcast = await a_broadcast(team, contacts, html=HTML)
        await pillarbox.turn()
        messages = {message.recipients[0]: html_of(message) for message in await sink.messages(2)}
        keys, reader = pillarbox.app.need(LinkKeys), Reader(team)
        for copy in await copies_of(team, broadcast):
            html = messages[copy["address"]]
            shop, leave, write = hrefs(html)
            assert leave.startswith(f"{URL}/unsubscribe/")
            assert write == "mailto:a@b.example"
            found = await read_link(shop.rpartition("/")[2], keys)
            assert found is not None
            assert (found.recipient.email_id, found.recipient.position) == (copy["email_id"], 0)
            # The value of the contact stands in it as it stood in the mail.
            assert found.url == f"https://shop.example/?who={copy['address']}&a=1"
            await reader.asks(pixels(html)[0])
            for _ in range(2):
                assert (await reader.asks(shop)).headers["location"] == found.url
            events = [row["kind"] for row in await timeline_of(team, str(copy["email_id"]))]
            assert events == ["opened", "clicked", "clicked"]
            shown = (await team.email(str(copy["email_id"])))["html"]
            assert "/t/c/" not in shown
            assert "/t/o/" not in shown
        counts = await pillarbox.pool.fetchrow(OF_BROADCAST, team.id, broadcast)
        assert tuple(counts.values()) == (2, 4, 2)
