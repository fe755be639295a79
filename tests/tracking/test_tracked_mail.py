"""Tracked mail: what stands in it, and what becomes of opening it and following its links (emails.md 8)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.audience import a_topic
from kit.manual_world import clock_of, parsed, relayed_world
from kit.smtp_sink import Message, Sink
from kit.tracking import BASE, HOST, URL, Reader, hrefs, html_of, pixels, timeline_of, tracks
from kit.world import Team
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.tracking_tokens import TrackedLink, TrackedRecipient, read_link

TARGET = "https://shop.example/a%2Fb?x=1&y=%20+z&copy=3#part-é"
HTML = f'<html><body><p>Hi <a href="{TARGET.replace("&", "&amp;")}">shop</a></p></body></html>'


@asynccontextmanager
async def harbor(database_url: str, folder: Path, **settings: str) -> AsyncIterator[tuple[Team, Sink]]:
    """A team whose mail goes to a server in the test."""
    async with relayed_world(database_url, folder, public_url=URL, **settings) as (pillarbox, sink):
        yield await pillarbox.team(), sink


async def arrived(team: Team, sink: Sink, **fields: Any) -> tuple[str, Message]:
    """An email with its first copy."""
    email = await team.send(**{"html": HTML, **fields})
    await team.world.turn()
    return email, (await sink.messages(1))[-1]


async def test_a_link_leads_where_it_led_and_a_picture_is_added(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        email, message = await arrived(team, sink, text="see https://shop.example/")
        html = html_of(message)
        [link], [pixel] = hrefs(html), pixels(html)
        assert link.startswith(f"{BASE}/t/c/")
        assert pixel.startswith(f"{BASE}/t/o/")
        assert pixel.endswith(".gif")
        # Nothing else is changed: with its link back and without its picture it is what was written.
        tag = html[html.index("<img") : html.index(">", html.index("<img")) + 1]
        assert html.replace(tag, "").replace(link, TARGET.replace("&", "&amp;")) == HTML
        assert (await team.email(email))["html"] == HTML
        text = parsed(message).get_body(("plain",))
        assert text is not None
        assert text.get_content().strip() == "see https://shop.example/"

        reader = Reader(team)
        answer = await reader.asks(link, user_agent="Mail/1.0")
        assert (answer.status_code, answer.headers["location"]) == (302, TARGET.replace("é", "%C3%A9"))
        assert answer.headers["cache-control"] == "no-store"
        assert answer.content == b""
        shown = await reader.asks(pixel)
        assert (shown.status_code, shown.headers["content-type"], len(shown.content)) == (
            200,
            "image/gif",
            43,
        )
        assert shown.headers["cache-control"] == "no-store"
        assert (await team.kinds(email))[-2:] == ["clicked", "opened"]
        assert (await team.email(email))["last_event"] == "opened"
        clicked, _ = await timeline_of(team, email)
        click = json.loads(clicked["detail"])["click"]
        assert (click["ip_address"], click["link"], click["user_agent"]) == ("127.0.0.1", TARGET, "Mail/1.0")


@pytest.mark.parametrize(
    ("flags", "links", "pictures"),
    [
        ({"opens": True, "clicks": False}, 0, 1),
        ({"opens": False, "clicks": True}, 1, 0),
        ({"opens": False, "clicks": False}, 0, 0),
        ({"verified": False}, 0, 0),
        ({"label": None}, 0, 0),
    ],
)
async def test_what_is_tracked_is_what_the_domain_says(
    database_url: str, tmp_path: Path, flags: dict[str, Any], links: int, pictures: int
) -> None:
    """TRK-03: as it says when the mail is sent."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team, **flags)
        _, message = await arrived(team, sink)
        html = html_of(message)
        assert sum("/t/c/" in link for link in hrefs(html)) == links
        assert len(pixels(html)) == pictures
        if not (links or pictures):
            assert html == HTML


async def test_each_recipient_has_links_of_its_own(database_url: str, tmp_path: Path) -> None:
    """emails.md 6, TRK-03: one SMTP transaction for each recipient where tracking is active."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        to = [f"{name}@quay.example" for name in ("ada", "bob", "eve")]
        email = await team.send(html=HTML, to=to[:2], bcc=to[2])
        await team.world.turn()
        messages = {message.recipients[0]: message for message in await sink.messages(3)}
        assert sorted(messages) == to
        keys = team.world.app.need(LinkKeys)
        for position, address in enumerate(to):
            [link] = hrefs(html_of(messages[address]))
            found = await read_link(link.rpartition("/")[2], keys)
            assert found is not None
            assert str(found.recipient.email_id) == email
            assert found == TrackedLink(
                TrackedRecipient(team.id, found.recipient.email_id, position), 0, TARGET
            )
            assert address.encode().hex() not in link
            assert address not in link
        assert (await Reader(team).asks(hrefs(html_of(messages[to[1]]))[0])).status_code == 302
        shown = [(event["event"], event["recipient"]) for event in await team.events(email)]
        assert ("clicked", to[1]) in shown
        assert all(event != "clicked" or who == to[1] for event, who in shown)


async def test_mail_that_is_made_again_has_the_same_links(database_url: str, tmp_path: Path) -> None:
    """The first copy is made with the acceptance, the second from the database."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        sink.script("DOT", "451 4.3.0 later")
        email = await team.send(html=HTML)
        await team.world.turn()
        [session] = await sink.connections(1)
        clock_of(team.world).advance(400)
        await team.world.turn()
        [message] = await sink.messages(1)
        assert [session.refused[0]] == [message.content]
        assert await team.kinds(email) == ["queued", "sent", "delivery_delayed", "delivered"]


async def test_recipients_of_before_share_a_message_that_is_not_tracked(
    database_url: str, tmp_path: Path
) -> None:
    """Who is tracked has a copy; these were accepted when nobody was."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await team.domain()
        later = (clock_of(team.world).now() + timedelta(hours=1)).isoformat()
        await team.send(html=HTML, to=["ada@quay.example", "bob@quay.example"], scheduled_at=later)
        await team.send(html=HTML, to=["eve@quay.example"], scheduled_at=later)
        await tracks(team)
        clock_of(team.world).advance(3700)
        await team.world.turn()
        found = {len(message.recipients): html_of(message) for message in await sink.messages(2)}
        assert found[2] == HTML
        assert pixels(found[1])


async def test_links_to_unsubscribe_and_marked_links_stay(database_url: str, tmp_path: Path) -> None:
    html = (
        '<a href="{{{UNSUBSCRIBE_URL}}}">leave</a><a href="mailto:a@b.example">a</a>'
        '<a href="https://own.example/leave?a=1&amp;b">b</a><a data-track="off" href="https://x.example">c</a>'
        '<a data-no-track href="https://x.example">d</a><a href="#x">e</a><a href="tel:1">f</a>'
        f'<a href="{URL}/shared?token=x">g</a><a href="https://x.example">h</a>'
    )
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team, opens=False)
        topic = await a_topic(team)
        email, message = await arrived(team, sink, html=html, topic_id=str(topic))
        links = hrefs(html_of(message))
        assert links[0].startswith(f"{URL}/unsubscribe/")
        assert [link for link in links if "/t/c/" in link] == [links[2], links[-1]]
        assert email
        for number, leave in enumerate(
            ("https://own.example/leave?a=1&b", "HTTPS://Own.example/leave?a=1&b"), 2
        ):
            await team.send(html=html, headers={"List-Unsubscribe": f"<mailto:x@y.example>, <{leave}>"})
            await team.world.turn()
            links = hrefs(html_of((await sink.messages(number))[-1]))
            assert [link for link in links if "/t/c/" in link] == [links[-1]]


async def test_head_and_wrong_tokens_make_no_event(database_url: str, tmp_path: Path) -> None:
    """TRK-02: truncated, forged and foreign tokens are nothing; a picture is shown all the same."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        email, message = await arrived(team, sink)
        reader, html = Reader(team), html_of(message)
        [link], [pixel] = hrefs(html), pixels(html)
        answer = await reader.asks(link, method="HEAD")
        assert (answer.status_code, answer.headers["location"][:13]) == (302, "https://shop.")
        answer = await reader.asks(pixel, method="HEAD")
        assert (answer.status_code, answer.headers["content-length"]) == (200, "43")
        wrong = [link[:-1], link + "A", link[:-1] + ("A" if link[-1] != "A" else "B"), f"{BASE}/t/c/x"]
        wrong += [
            f"{BASE}/t/c/https://evil.example",
            f"{BASE}/t/c/%2F%2Fevil.example",
            f"{BASE}/t/c/a%0d%0ab",
        ]
        wrong += [link.replace("/t/c/", "/t/o/"), pixel.replace("/t/o/", "/t/c/").removesuffix(".gif")]
        wrong += [f"{BASE}/t/c/{'A' * 10_000}"]
        for url in wrong:
            answer = await reader.asks(url)
            if "/t/o/" in url:
                assert (answer.status_code, len(answer.content)) == (200, 43)
            else:
                assert (answer.status_code, answer.headers.get("location")) == (404, None), url
        token = link.rpartition("/")[2]
        for place in range(0, len(token), 7):
            other = "A" if token[place] != "A" else "B"
            assert (
                await reader.asks(f"{BASE}/t/c/{token[:place]}{other}{token[place + 1 :]}")
            ).status_code == 404
        for url in (pixel[:-4], pixel[:-5] + ".gif", pixel.removesuffix(".gif") + "A.gif"):
            assert (await reader.asks(url)).content[:3] == b"GIF"
        assert await timeline_of(team, email) == []


async def test_under_the_host_of_a_team_there_are_its_links_alone(database_url: str, tmp_path: Path) -> None:
    """TRK-05."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        quay = await team.world.team("Quay")
        await tracks(quay, "quay.example")
        email, message = await arrived(quay, sink, **{"from": "a@quay.example"})
        [link], [pixel] = hrefs(html_of(message)), pixels(html_of(message))
        reader = Reader(team)
        assert link.startswith("https://links.quay.example:8443/t/c/")
        assert (await reader.asks(link, host=HOST)).status_code == 404
        assert (await reader.asks(pixel, host=HOST.upper() + ".:80")).content[:3] == b"GIF"
        assert await timeline_of(quay, email) == []
        for path in ("/health", "/emails", "/openapi.json", "/", "/unsubscribe/x", "/t", "/tt/c/x"):
            answer = await reader.asks(f"{BASE}{path}", authorization=f"Bearer {team.token}")
            assert answer.status_code == 404, path
            assert "token" not in answer.text
        assert (await reader.asks(f"{BASE}/emails", method="OPTIONS")).status_code == 404
        for path in ("/", "/login", "/login/x", "/oauth/nothing"):
            answer = await reader.asks(f"{BASE}{path}", accept="text/html")
            assert (answer.status_code, answer.json()["name"]) == (404, "not_found"), "no page of ours either"
        # Elsewhere they are there: under the public name, and under one that is nobody's.
        assert (await reader.asks(link, host="mail.pillar.example:8443")).status_code == 302
        assert (await reader.asks(link, host="127.0.0.1:8443")).status_code == 302
        assert (await reader.asks(f"{URL}/health")).status_code == 200
        assert len(await timeline_of(quay, email)) == 2


async def test_links_that_proxies_would_refuse_stay_as_they_are(database_url: str, tmp_path: Path) -> None:
    """The longest that is tracked fits into what common proxies take of a line and of a head."""
    urls = [f"https://x.example/?{'a' * 2980}", f"https://x.example/?{'a' * 2982}"]
    urls += [f"https://x.example/?{'é' * 496}", f"https://x.example/?{'é' * 497}"]
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        _, message = await arrived(team, sink, html="".join(f'<a href="{url}">x</a>' for url in urls))
        links = hrefs(html_of(message))
        assert [link != url for link, url in zip(links, urls, strict=True)] == [True, False, True, False]
        for link in links[::2]:
            answer = await Reader(team).asks(link)
            assert len(link) < 8000
            assert len(answer.headers["location"]) <= 3000
            assert sum(len(name) + len(value) + 4 for name, value in answer.headers.items()) < 4000


async def test_links_work_when_their_domain_is_gone(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        domain_id = await tracks(team)
        email, message = await arrived(team, sink)
        [link] = hrefs(html_of(message))
        assert (await team.call("DELETE", f"/domains/{domain_id}")).status_code == 200
        assert (await Reader(team).asks(link)).status_code == 302
        assert [row["kind"] for row in await timeline_of(team, email)] == ["clicked"]


async def test_every_request_is_an_event_and_the_first_is_unique(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        email, message = await arrived(team, sink)
        [link], [pixel] = hrefs(html_of(message)), pixels(html_of(message))
        reader = Reader(team)
        for url in (pixel, pixel, link, link, link):
            await reader.asks(url)
        assert [row["kind"] for row in await timeline_of(team, email)] == ["opened"] * 2 + ["clicked"] * 3
        counts = await team.world.pool.fetchrow(
            "SELECT sum(opened) AS o, sum(unique_opened) AS uo, sum(clicked) AS c, sum(unique_clicked) AS uc"
            " FROM metric_increments WHERE team_id = $1",
            team.id,
        )
        assert tuple(counts.values()) == (2, 1, 3, 1)


async def test_machines_are_marked_and_nothing_of_that_is_on_the_wire(
    database_url: str, tmp_path: Path
) -> None:
    """TRK-04."""
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        email, message = await arrived(team, sink)
        [link], [pixel] = hrefs(html_of(message)), pixels(html_of(message))
        reader = Reader(team)
        await reader.asks(pixel, user_agent="Mozilla/5.0 (via ggpht.com GoogleImageProxy)")
        await reader.asks(link, user_agent="Mozilla/5.0 Firefox/120.0")
        await reader.asks(link, user_agent="Mozilla/5.0 Firefox/120.0", sec_purpose="prefetch")
        found = [json.loads(row["detail"]).get("machine") for row in await timeline_of(team, email)]
        assert found == ["gmail_image_proxy", None, "prefetch"]
        assert "machine" not in json.dumps(await team.events(email))


async def test_a_link_that_is_hammered_fills_no_history(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as (team, sink):
        await tracks(team)
        email, message = await arrived(team, sink)
        [link] = hrefs(html_of(message))
        reader = Reader(team)
        for _ in range(70):
            assert (await reader.asks(link)).status_code == 302
        assert len(await timeline_of(team, email)) == 60
