"""Links of a real delivered mail in a browser: they lead to their targets with every byte (emails.md 8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.browser import Chromium, chromium
from kit.manual_world import relayed_world
from kit.tracking import hrefs, html_of, timeline_of, tracks

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


class Shop:
    """A server that notes what is asked for, and under which name."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        target = head.split(" ")[1]
        if target != "/favicon.ico":
            host = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
            self.asked.append((target, host))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def shop() -> AsyncIterator[Shop]:
    found = Shop()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


TARGETS = [
    # As it is written in the mail, as the server is asked, and what the page sees as its fragment.
    ("/a%2Fb/c?x=1&amp;y=a+b&amp;z=%20%26", "/a%2Fb/c?x=1&y=a+b&z=%20%26", ""),
    ("/?q=a&amp;amp;b&copy=2&amp;lt;", "/?q=a&amp;b&copy=2&lt;", ""),
    ("/?plus=%2B+&amp;u=h%C3%A9#part%20two/é?x&amp;y", "/?plus=%2B+&u=h%C3%A9", "#part%20two/%C3%A9?x&y"),
    ("/süd/🌊?naïve=é", "/s%C3%BCd/%F0%9F%8C%8A?na%C3%AFve=%C3%A9", ""),
    ("/?next=https://evil.example//&amp;b=;,@:!$()*'~", "/?next=https://evil.example//&b=;,@:!$()*%27~", ""),
    ("/x?" + "v" * 2500, "/x?" + "v" * 2500, ""),
]


async def test_a_link_leads_to_its_target_with_every_byte(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with shop() as server, relayed_world(database_url, tmp_path) as (pillarbox, sink):
        team = await pillarbox.team()
        await tracks(team, opens=False)
        there = f"http://localhost:{server.port}"
        links = [*(there + written for written, _, _ in TARGETS), f"http://münze.localhost:{server.port}/idn"]
        html = "".join(f'<p><a href="{link}">x</a></p>' for link in links)
        email = await team.send(html=html)
        await pillarbox.turn()
        [message] = await sink.messages(1)
        found = hrefs(html_of(message))
        assert len(found) == len(links)
        # The name of the links' host is nobody's to resolve here; the program is reached by its address.
        paths = [f"/t/c/{link.rpartition('/t/c/')[2]}" for link in found]
        for (_, asked, fragment), path in zip(TARGETS, paths, strict=False):
            async with browser.tab() as tab:
                await tab.open(pillarbox.url + path)
                assert server.asked.pop() == (asked, f"localhost:{server.port}")
                assert await tab.run("location.hash") == fragment
        async with browser.tab() as tab:
            await tab.open(pillarbox.url + paths[-1])
            assert server.asked == [("/idn", f"xn--mnze-0ra.localhost:{server.port}")]
        assert len(await timeline_of(team, email)) == len(links)
