"""Which addresses mail is accepted for (receiving.md 5.1; SMTP-15, SMTP-16, SMTP-17, OPS-10)."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.clock import ManualClock
from kit.inbound_client import InboundClient, inbound_client, receiving_domain
from kit.world import Team, World, world
from pillarbox.kernel.ids import Ids
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.teams import slugs

NO_RELAY, UNKNOWN = "550 5.7.1", "550 5.1.1"

NOT_OURS = (
    "ann@elsewhere.example",
    "ann@sub.harbor.example",
    "ann@harbor.example.elsewhere.example",
    "ann@example",
    "ann@[127.0.0.1]",
    "ann@[IPv6:::1]",
    "ann@localhost",
    "ann%elsewhere.example@harbor.example",
    "ann%harbor.example@elsewhere.example",
    "elsewhere.example!ann@harbor.example",
    "elsewhere.example!ann@mx.pillar.example",
    '"ann@elsewhere.example"@harbor.example',
    '"ann%elsewhere.example"@harbor.example',
    '"ann@elsewhere.example"@mx.pillar.example',
    "@harbor.example:ann@elsewhere.example",
    "@harbor.example,@mx.pillar.example:ann@elsewhere.example",
    "postmaster@elsewhere.example",
    "abuse@elsewhere.example",
    "ann@xn--bad-.example",
    "postmaster%elsewhere.example@mx.pillar.example",
)
"""Nobody is helped to write to somewhere else, in whatever form he asks for it (SMTP-17)."""

OURS = {
    "help@harbor.example": "help@harbor.example",
    "Help@HARBOR.Example": "Help@harbor.example",
    "help@harbor.example.": "help@harbor.example",
    '"two words"@harbor.example': '"two words"@harbor.example',
    '"plain"@harbor.example': "plain@harbor.example",
    "@relay.example:help@harbor.example": "help@harbor.example",
    "postmaster@harbor.example": "postmaster@harbor.example",
    "ABUSE@harbor.example": "ABUSE@harbor.example",
    "a+tag=x@harbor.example": "a+tag=x@harbor.example",
}
"""Any local part of a domain that receives; beside it what `received_for` shows."""


async def rcpt(post: InboundClient, address: str, sender: str = "ada@quay.example", options: str = "") -> str:
    """The answer to one recipient."""
    dialogue = await post.connect()
    [answer] = await dialogue.offer([address], sender, options)
    await dialogue.end()
    return answer


async def test_only_addresses_of_domains_that_receive_are_accepted(running: World) -> None:
    async with inbound_client(running) as post:
        team = await running.team()
        await receiving_domain(team)
        for address in NOT_OURS:
            assert (await rcpt(post, address)).startswith(NO_RELAY), address
        for address in OURS:
            assert (await rcpt(post, address)).startswith("250"), address
        raw = b"Subject: x\r\n\r\nx\r\n"
        assert (await post.deliver(raw, list(OURS))).startswith("250")
        [received] = (await team.get("/emails/receiving")).json()["data"]
        assert received["received_for"] == list(dict.fromkeys(OURS.values()))


async def test_local_parts_have_their_length(running: World) -> None:
    """MSG-10: 64 octets, as the wire has them without quotes."""
    async with inbound_client(running) as post:
        await receiving_domain(await running.team())
        for local, answer in (("a" * 64, "250"), ("a" * 65, "553 5.1.3"), ("\u00fc" * 33, "553 5.1.3")):
            assert (await rcpt(post, f"{local}@harbor.example", options=" SMTPUTF8")).startswith(answer), (
                local
            )


async def test_a_domain_in_its_own_letters_is_the_same(running: World) -> None:
    async with inbound_client(running) as post:
        team = await running.team()
        await receiving_domain(team, "xn--hfen-loa.example")
        assert (await rcpt(post, "ann@häfen.example", options=" SMTPUTF8")).startswith("250")
        assert (await rcpt(post, "ann@xn--hfen-loa.example")).startswith("250")
        assert (await rcpt(post, "anna-ü@häfen.example", options=" SMTPUTF8")).startswith("250")


async def test_a_domain_receives_when_it_may_and_has_shown_its_record(
    database_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with world(database_url, tmp_path, clock=clock) as pillarbox, inbound_client(pillarbox) as post:
        team = await pillarbox.team()
        await team.domain()
        assert (await rcpt(post, "help@harbor.example")).startswith(NO_RELAY), "only sending is enabled"
        await receiving_domain(team)
        assert (await rcpt(post, "help@harbor.example")).startswith(NO_RELAY), "what was known holds a second"
        clock.advance(1.001)
        assert (await rcpt(post, "help@harbor.example")).startswith("250")
        await pillarbox.pool.execute("UPDATE domains SET receiving_ok = false")
        clock.advance(1.001)
        assert (await rcpt(post, "help@harbor.example")).startswith(NO_RELAY), "the MX is gone"


async def test_a_closed_network_needs_no_dns(database_url: str, tmp_path: Path) -> None:
    async with (
        world(database_url, tmp_path, inbound_require_dns="false") as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await pillarbox.team()
        capabilities = {"sending": "disabled", "receiving": "enabled"}
        made = await team.post("/domains", {"name": "quiet.example", "capabilities": capabilities})
        assert made.status_code == 201
        assert (await rcpt(post, "help@quiet.example")).startswith("250")


async def test_every_team_receives_below_the_domain_of_the_installation(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        world(database_url, tmp_path, inbound_domain="in.pillar.example") as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        teams = [await pillarbox.team(name) for name in ("Harbor", "Quay")]
        for team in teams:
            name = f"{slugs.slug(await number(team))}.in.pillar.example"
            assert (await post.deliver(b"Subject: hi\r\n\r\nhi\r\n", [f"any@{name}"])).startswith("250")
            [received] = (await team.get("/emails/receiving")).json()["data"]
            assert received["received_for"] == [f"any@{name}"]
            wrong = name.replace("-", "x", 1)
            assert (await rcpt(post, f"any@{wrong}")).startswith(NO_RELAY)
        for name in ("crisp-bridge-999", "crisp-bridge-99999999999", "in", "x"):
            assert (await rcpt(post, f"any@{name}.in.pillar.example")).startswith(NO_RELAY)
        assert (await rcpt(post, "any@in.pillar.example")).startswith(UNKNOWN)
        assert (await rcpt(post, "postmaster@in.pillar.example")).startswith("250")


async def test_the_operator_is_reached_as_postmaster_and_abuse(database_url: str, tmp_path: Path) -> None:
    """SMTP-16; RFC 5321, 4.5.1."""
    clock = ManualClock()
    async with world(database_url, tmp_path, clock=clock) as pillarbox, inbound_client(pillarbox) as post:
        assert (await rcpt(post, "postmaster")).startswith(UNKNOWN), "there is no team yet"
        clock.advance(2)
        first = await pillarbox.team()
        await pillarbox.team("Quay")
        for address in (
            "postmaster",
            "POSTMASTER",
            "Postmaster@MX.pillar.example",
            "abuse@mx.pillar.example",
        ):
            assert (await rcpt(post, address)).startswith("250"), address
        assert (await rcpt(post, "ann@mx.pillar.example")).startswith(UNKNOWN)
        assert (await post.deliver(b"Subject: x\r\n\r\nx\r\n", ["postmaster"])).startswith("250")
        [received] = (await first.get("/emails/receiving")).json()["data"]
        assert received["received_for"] == ["postmaster@mx.pillar.example"]


async def test_hosts_of_return_paths_take_reports_about_our_mail_alone(running: World) -> None:
    """SMTP-15, BNC-02: the token decides; nothing is stored as received mail."""
    async with inbound_client(running) as post:
        team = await running.team()
        await receiving_domain(team)
        email = UUID(await team.send(scheduled_at="in 1 hour"))
        token = running.app.need(VerpSigner).token(await number(team), email, 0)
        host = "send.harbor.example"
        for address in (f"{token}@{host}", f"{token.upper()}@{host}", f"fbl@{host}", "fbl@mx.pillar.example"):
            assert (await rcpt(post, address, sender="")).startswith("250"), address
        for local in ("ann", "postmaster", "b-" + "a" * 56, token[:-1] + ("a" if token[-1] != "a" else "b")):
            assert (await rcpt(post, f"{local}@{host}", sender="")).startswith(UNKNOWN), local
        assert (await rcpt(post, f"{token}@send.elsewhere.example", sender="")).startswith(NO_RELAY)
        report = b"Subject: Undelivered\r\n\r\nsorry\r\n"
        assert (await post.deliver(report, [f"{token}@{host}"], sender="")).startswith("250")
        assert (await team.get("/emails/receiving")).json()["data"] == []


async def test_a_report_is_alone_in_its_transaction(running: World) -> None:
    """SMTP-15."""
    async with inbound_client(running) as post:
        team = await running.team()
        await receiving_domain(team)
        token = running.app.need(VerpSigner).token(await number(team), running.app.need(Ids).new(), 0)
        report, other = f"{token}@send.harbor.example", "help@harbor.example"
        dialogue = await post.connect()
        answers = await dialogue.offer([report, other, report], sender="")
        assert [answer[:9] for answer in answers] == ["250 2.1.5", "452 4.5.3", "452 4.5.3"]
        await dialogue.say("RSET")
        answers = await dialogue.offer([other, report], sender="")
        assert [answer[:9] for answer in answers] == ["250 2.1.5", "452 4.5.3"]


async def test_each_recipient_has_its_own_answer_and_a_hundred_are_enough(running: World) -> None:
    async with inbound_client(running) as post:
        team = await running.team()
        await receiving_domain(team)
        dialogue = await post.connect()
        wanted = ["a@harbor.example", "b@elsewhere.example", "c@harbor.example"]
        assert [answer[:3] for answer in await dialogue.offer(wanted)] == ["250", "550", "250"]
        assert (await dialogue.text(b"Subject: x\r\n\r\nx\r\n")).startswith("250")
        [received] = (await team.get("/emails/receiving")).json()["data"]
        assert received["received_for"] == ["a@harbor.example", "c@harbor.example"]
        many = await dialogue.offer([f"a{n}@harbor.example" for n in range(102)])
        assert [answer[:9] for answer in many] == ["250 2.1.5"] * 100 + ["452 4.5.3"] * 2
        assert (await dialogue.text(b"Subject: y\r\n\r\ny\r\n")).startswith("250")


async def test_without_the_database_nobody_is_refused_for_good(pillarbox: World) -> None:
    async with inbound_client(pillarbox) as post:
        await pillarbox.pool.close()
        await pillarbox.app.kit.pools.engine.close()
        assert (await rcpt(post, "help@harbor.example")).startswith("451 4.3.2")


@pytest.mark.parametrize("number", [1, 2, 31, 32, 33, 1000, 2_000_000_000])
def test_a_slug_is_two_words_and_a_number_and_means_one_team(number: int) -> None:
    made = slugs.slug(number)
    first, second, digits = made.split("-")
    assert first in slugs.FIRST
    assert second in slugs.SECOND
    assert int(digits) == number
    assert slugs.number_of(made) == number
    assert slugs.number_of(f"{second}-{first}-{digits}") is None
    assert slugs.number_of(f"{made}0") is None
    assert slugs.number_of(str(uuid4())) is None


async def number(team: Team) -> int:
    found: int = await team.world.pool.fetchval("SELECT number FROM teams WHERE id = $1", team.id)
    return found
