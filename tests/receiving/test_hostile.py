"""Mail made to do harm: in circles, forged, smuggled, dear to read (AR-01, INB-03, SMTP-01, SMTP-14)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kit.inbound_client import inbound_client
from kit.receiving_team import HELP, message, raw_of, received, receiving_of, receiving_team
from kit.smtp_listener import dialog
from kit.world import World, world
from kit.zone import Zone
from pillarbox.mail.message.loop_marks import LoopMarks


async def test_a_mail_that_was_here_before_is_refused(running: World) -> None:
    """SMTP-14: two addresses that forward to each other get one copy each; whoever is new to it gets it."""
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        first, second = "help@harbor.example", "info@harbor.example"
        assert (await post.deliver(message(), [first, "third@harbor.example"])).startswith("250")
        [found] = await received(team)
        forwarded = await raw_of(team, found["id"])
        assert (await post.deliver(forwarded, [second])).startswith("250")
        back = await raw_of(team, (await received(team))[0]["id"])
        for address in (first, "HELP@Harbor.example", "third@harbor.example", second):
            assert (await post.deliver(back, [address])).startswith("554 5.4.6"), address
        assert (await post.deliver(back, ["fourth@harbor.example", first])).startswith("554 5.4.6")
        assert (await post.deliver(back, ["fourth@harbor.example"])).startswith("250")
        assert len(await received(team)) == 3


async def test_nobody_makes_up_a_mark(database_url: str, tmp_path: Path) -> None:
    """SMTP-14: what looks like one costs no mail, and another's installation is not ours."""
    other = LoopMarks([b"another key"])
    hop = f"Received: from a by b {other.comment([HELP])}; Sat, 03 Oct 2026 08:00:00 +0000"
    forged = f"X-Pillarbox-Loop: {other.of(HELP)} {'a' * 24}"
    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        await receiving_team(pillarbox)
        assert (await post.deliver(message(hop, forged), [HELP])).startswith("250 2.0.0 Ok, stored")


async def test_forged_results_behind_a_thousand_fields_are_taken_out(
    database_url: str, tmp_path: Path
) -> None:
    """AR-01: however many fields stand in front of them."""
    forged = "Authentication-Results: mx.pillar.example; dmarc=pass header.from=bank.example"
    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        assert (await post.deliver(message(*["X: y"] * 1100, forged), [HELP])).startswith("250")
        [found] = await received(team)
        assert b"bank.example" not in await raw_of(team, found["id"])


async def test_nothing_is_smuggled_past_the_end_of_a_text(database_url: str, tmp_path: Path) -> None:
    """SMTP-01 with the real handler behind it: refused whole, and nothing of the smuggled sender is
    stored."""
    from smtp.test_server_data import FALSE_ENDS, SMUGGLED

    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        for end in FALSE_ENDS.values():
            async with dialog(post.port) as client:
                await client.ask("EHLO x", "MAIL FROM:<a@b.example>", f"RCPT TO:<{HELP}>", "DATA")
                client.write(message() + b"text" + end + SMUGGLED.replace(b"d.example", b"harbor.example"))
                client.write(b"\r\n.\r\n")
                assert str(await client.hear()) == "550 5.5.2"
        assert await received(team) == []


class Counted(ThreadPoolExecutor):
    """Threads that count what they are given."""

    count = 0

    def submit(self, *given: Any, **named: Any) -> Any:
        self.count += 1
        return super().submit(*given, **named)


async def test_what_takes_long_to_read_keeps_nobody_waiting(database_url: str, tmp_path: Path) -> None:
    """INB-03: large mails, and headers that cost a hundred times what they seem to, are read in threads."""
    zone = Zone()
    hostile = "Cc: " + "a:;" * 15_000
    async with world(database_url, tmp_path, zone=zone) as pillarbox:
        with Counted(1) as threads:
            receiving = receiving_of(pillarbox, zone, threads=threads)
            async with inbound_client(pillarbox, receiving) as post:
                await receiving_team(pillarbox)
                for raw, is_aside in (
                    (message(), False),
                    (message(body="x\r\n" * 16_000), False),
                    (message(body="x\r\n" * 30_000), True),
                    (message(hostile), True),
                    (hostile.encode() + b"\r\n", True),
                ):
                    before = threads.count
                    assert (await post.deliver(raw, [HELP])).startswith("250")
                    assert (threads.count > before) is is_aside
