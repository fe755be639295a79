"""What becomes of a message at the end of its text (receiving.md 5; INB-01, INB-05, INB-08, SMTP-13)."""

from __future__ import annotations

import asyncio
import json
import re
from email.parser import BytesParser
from email.policy import default
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kit.clock import ManualClock
from kit.disk import MIB, small_disk
from kit.http_outside import answer as http_answer
from kit.http_outside import serving
from kit.inbound_client import HOSTNAME, inbound_client, receiving_domain
from kit.manual_world import clock_of, manual_world
from kit.receiving_team import HELP, message, raw_of, received, receiving_of, receiving_team
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.kernel.process import faults
from pillarbox.mail.authentication import dkim
from pillarbox.receiving.receive import ReceivingRules


async def row_of(team: Team) -> Any:
    """The newest received email as the database has it."""
    return await team.world.pool.fetchrow(
        "SELECT * FROM received_emails WHERE team_id = $1 ORDER BY id DESC LIMIT 1", team.id
    )


# Trace ---------------------------------------------------------------------------------------------


async def test_the_message_is_kept_octet_for_octet_behind_our_trace_fields(
    database_url: str, tmp_path: Path
) -> None:
    """INB-01, SMTP-13: one Return-Path, one Received, one Authentication-Results of ours."""
    clock = ManualClock()
    async with world(database_url, tmp_path, clock=clock) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        raw = message("X-Odd:  two  blanks\t", body="..dots\r\n.\r\n8-bit \u00fc and no end")
        raw = raw[:-2] + b"\xff\xfe\r\n"
        assert (await post.deliver(raw, [HELP])).startswith("250 2.0.0")
        [found] = await received(team)
        whole = await raw_of(team, found["id"])
        trace = whole[: -len(raw)]
        assert sha256(whole[len(trace) :]).digest() == sha256(raw).digest()
        head = BytesParser(policy=default).parsebytes(trace)
        assert head.keys() == ["Return-Path", "Received", "Authentication-Results"]
        assert head["Return-Path"] == "<ada@quay.example>"
        assert re.fullmatch(
            r"from quay\.example \(\[127\.0\.0\.1\]\)\s+by mx\.pillar\.example with ESMTP id "
            rf"{found['id']}\s+\(mark [a-z2-7]{{24}}\)\s+"
            r"for <help@harbor\.example>; Sat, 03 Oct 2026 08:15:00 \+0000",
            head["Received"],
        )
        assert head["Authentication-Results"].startswith("mx.pillar.example;")
        assert found["created_at"] == "2026-10-03T08:15:00.000Z"


async def test_who_came_with_tls_or_without_a_sender_is_written_down_so(running: World) -> None:
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        assert (await post.deliver(message(), [HELP], sender="")).startswith("250")
        [found] = await received(team)
        whole = await raw_of(team, found["id"])
        assert whole.startswith(b"Return-Path: <>\r\n")
        assert b"spf=none smtp.helo=quay.example" in whole


async def test_results_that_claim_to_be_ours_are_taken_out(database_url: str, tmp_path: Path) -> None:
    """AR-01: in any spelling; those of others stay."""
    forged = [
        "Authentication-Results: mx.pillar.example; dkim=pass header.d=bank.example",
        "authentication-results: (by) MX.Pillar.Example (us)\r\n\t; spf=pass",
        'Authentication-Results: "mx.pillar.example"/1; dmarc=pass',
    ]
    honest = "Authentication-Results: mx.other.example; spf=pass"
    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        assert (await post.deliver(message(*forged, honest), [HELP])).startswith("250")
        [found] = await received(team)
        whole = await raw_of(team, found["id"])
        assert whole.endswith(message(honest))
        assert whole.count(b"mx.pillar.example;") == 1
        shown = (await team.get(f"/emails/receiving/{found['id']}")).json()["headers"]
        assert shown["authentication-results"] == "mx.other.example; spf=pass"
        assert "return-path" not in shown
        assert "received" not in shown


async def test_results_behind_a_malformed_line_are_taken_out_as_well(
    database_url: str, tmp_path: Path
) -> None:
    """AR-01: and who sent it to whom is not lost."""
    lines = (b"a line without a colon", b"Authentication-Results: mx.pillar.example; dmarc=pass")
    raw = b"\r\n".join(lines) + b"\r\n" + message()
    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        assert (await post.deliver(message(), [HELP])).startswith("250")
        assert (await post.deliver(raw, [HELP])).startswith("250")
        [second, first] = await received(team)
        shown = ("from", "to", "subject", "message_id")
        assert [second[name] for name in shown] == [first[name] for name in shown]
        assert (await raw_of(team, second["id"])).count(b"mx.pillar.example;") == 1


# Whose it is ---------------------------------------------------------------------------------------


async def test_one_email_for_each_team_with_its_own_addresses_alone(running: World) -> None:
    """5.3: neither the API nor the raw message of one team names the other's recipients."""
    async with inbound_client(running) as post:
        ours = await receiving_team(running)
        theirs = await running.team("Quay")
        await receiving_domain(theirs, "quay.example")
        to = ["a@harbor.example", "x@quay.example", "b@harbor.example", "y@quay.example", "a@harbor.example"]
        assert (await post.deliver(message(), to)).startswith("250")
        for team, addresses in (
            (ours, ["a@harbor.example", "b@harbor.example"]),
            (theirs, ["x@quay.example", "y@quay.example"]),
        ):
            [found] = await received(team)
            assert found["received_for"] == addresses
            whole = await raw_of(team, found["id"])
            assert [address.encode() in whole for address in to] == [address in addresses for address in to]


async def test_a_bcc_shows_in_received_for_behind_it_the_hops_before(
    database_url: str, tmp_path: Path
) -> None:
    """1.1: our envelope first, then the `for` of every Received field, newest first, each once."""
    hops = [
        "Received: from b by c with ESMTP for <list@Lists.Example>; Sat, 03 Oct 2026 08:00:00 +0000",
        "Received: from a by b with ESMTP for <Hidden@harbor.example>; Sat, 03 Oct 2026 07:00:00 +0000",
    ]
    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        await post.deliver(message(*hops), ["Hidden@harbor.example", "second@harbor.example"])
        [found] = await received(team)
        assert found["to"] == [HELP]
        assert found["bcc"] == []
        assert found["received_for"] == [
            "Hidden@harbor.example",
            "second@harbor.example",
            "list@lists.example",
        ]


# Again ---------------------------------------------------------------------------------------------


async def test_the_same_message_for_the_same_recipients_is_stored_once_in_a_day(
    database_url: str, tmp_path: Path
) -> None:
    """Contract decision 27, INB-08."""
    clock = ManualClock()
    async with world(database_url, tmp_path, clock=clock) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        other = "info@harbor.example"
        assert (await post.deliver(message(), [HELP, other])).startswith("250")
        for to in ([HELP, other], [other, HELP]):
            assert await post.deliver(message(), to) == "250 2.0.0 Ok, it was stored before"
        assert len(await received(team)) == 1
        await post.deliver(message(), [HELP])
        await post.deliver(message(body="Another text"), [HELP, other])
        assert len(await received(team)) == 3, "other recipients or another text make another message"
        clock.advance(24 * 3600 - 1)
        await post.deliver(message(), [HELP, other])
        assert len(await received(team)) == 3
        clock.advance(2)
        assert (await post.deliver(message(), [HELP, other])).startswith("250 2.0.0 Ok, stored as")
        assert len(await received(team)) == 4


async def test_the_same_message_in_many_sessions_at_once_is_stored_once(running: World) -> None:
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        dialogues = [await post.connect() for _ in range(8)]

        async def bring(dialogue: Any, number: int) -> str:
            await dialogue.offer([HELP])
            return str(await dialogue.text(message(body=f"number {number % 2}")))

        answers = await asyncio.gather(*[bring(d, n) for n, d in enumerate(dialogues)])
        assert all(answer.startswith("250") for answer in answers)
        assert sum("stored as" in answer for answer in answers) == 2
        assert len(await received(team)) == 2


# Refused -------------------------------------------------------------------------------------------


async def test_a_message_that_goes_in_circles_is_refused(running: World) -> None:
    """SMTP-14: fifty hops are enough."""
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        hop = "Received: from a by b; Sat, 03 Oct 2026 08:00:00 +0000"
        assert (await post.deliver(message(*[hop] * 50), [HELP])).startswith("250")
        assert (await post.deliver(message(*[hop] * 51), [HELP])).startswith("554 5.4.6")
        assert len(await received(team)) == 1


async def test_no_message_is_larger_than_forty_mebibytes(running: World) -> None:
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        dialogue = await post.connect()
        assert (await dialogue.say("MAIL FROM:<a@quay.example> SIZE=41943041")).startswith("552 5.3.4")
        assert (await dialogue.say("MAIL FROM:<a@quay.example> SIZE=41943040")).startswith("250")
        assert (await dialogue.say(f"RCPT TO:<{HELP}>")).startswith("250")
        line = b"x" * 76 + b"\r\n"
        assert (await dialogue.text(line * (41_943_040 // len(line) + 1))).startswith("552 5.3.4")
        assert await received(team) == []


async def test_a_full_disk_refuses_before_the_text_comes(database_url: str, tmp_path: Path) -> None:
    """DUR-10: temporary, and over by itself."""
    clock = ManualClock()
    with small_disk(tmp_path / "disk", 100) as disk:
        async with (
            world(database_url, disk.folder, clock=clock) as pillarbox,
            inbound_client(pillarbox) as post,
        ):
            await receiving_team(pillarbox)
            disk.fill(leaving=8 * MIB)
            clock.advance(2)
            dialogue = await post.connect()
            assert (await dialogue.say("MAIL FROM:<a@quay.example>")).startswith("452 4.3.1")
            disk.relieve()
            clock.advance(2)
            assert (await post.deliver(message(), [HELP])).startswith("250")


async def test_what_could_not_be_stored_is_to_be_tried_again(running: World) -> None:
    """SMTP-18: 451 4.3.0, and nothing of it is there; then the same message is taken."""
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        with faults.armed("receive.before_commit=raise%1"):
            assert (await post.deliver(message(), [HELP])).startswith("451 4.3.0")
        assert await received(team) == []
        for table in ("received_sources", "received_seen", "webhook_deliveries"):
            assert await running.pool.fetchval(f"SELECT count(*) FROM {table}") == 0
        assert (await post.deliver(message(), [HELP])).startswith("250 2.0.0 Ok, stored as")


async def test_what_fails_after_the_commit_is_answered_with_yes(running: World) -> None:
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        with faults.armed("receive.after_commit=raise"):
            answer = await post.deliver(message(), [HELP])
        assert answer.startswith(("250", "451")), answer
        assert (await post.deliver(message(), [HELP])).startswith("250")
        assert len(await received(team)) == 1


async def test_a_blob_that_cannot_be_written_is_no_yes(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        folder = tmp_path / "blobs" / "received"
        folder.parent.mkdir(exist_ok=True)
        folder.write_text("a file stands where the folder would be")
        assert (await post.deliver(message(body="x" * 70 + "\r\n" * 150_000), [HELP])).startswith("451 4.3.0")
        assert await received(team) == []


# Judged --------------------------------------------------------------------------------------------

ZONE = """
    quay.example         TXT  "v=spf1 ip4:127.0.0.1 -all"
    bank.example         TXT  "v=spf1 -all"
    _dmarc.bank.example  TXT  "v=DMARC1; p=reject"
    _dmarc.shop.example  TXT  "v=DMARC1; p=quarantine"
    _dmarc.quay.example  TXT  "v=DMARC1; p=reject"
"""


async def test_results_are_fields_of_the_email_and_decide_what_is_spam(
    database_url: str, tmp_path: Path
) -> None:
    """INB-05: by the policy of the author's domain; never a reason to refuse."""
    cases = {
        "ada@quay.example": ("pass", "pass", None),
        "ada@bank.example": ("fail", "fail", "dmarc=fail policy=reject"),
        "ada@shop.example": ("none", "fail", "dmarc=fail policy=quarantine"),
        "ada@plain.example": ("none", "none", None),
    }
    async with world(database_url, tmp_path, zone=Zone(ZONE)) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        for sender, (spf, dmarc, reason) in cases.items():
            assert (await post.deliver(message(sender=sender), [HELP], sender)).startswith("250")
            row = await row_of(team)
            assert (row["spf"], row["dkim"], row["dmarc"], row["spam_reason"]) == (spf, "none", dmarc, reason)
            assert f"spf={spf}".encode() in await raw_of(team, str(row["id"]))


async def test_a_signature_speaks_for_its_author_in_any_case_of_its_field(
    database_url: str, tmp_path: Path
) -> None:
    """DKIM on its own, from a client that SPF knows nothing of: forwarded mail stays honest."""
    pair = dkim.generate_rsa_key()
    raw = message(sender="ada@bank.example")
    signature = dkim.sign(
        raw, domain="bank.example", selector="s", key=dkim.load_key(pair.private), instant=1_700_000_000
    )
    zone = Zone(ZONE)
    zone.add("s._domainkey.bank.example", "TXT", f"p={pair.public}")
    async with (
        world(database_url, tmp_path, zone=zone, reject_dmarc_fail="true") as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await receiving_team(pillarbox)
        for field in (signature, signature.replace(b"DKIM-Signature", b"dkim-SIGNATURE")):
            assert (await post.deliver(field + raw, [HELP], "list@lists.example")).startswith("250")
            row = await row_of(team)
            assert (row["spf"], row["dkim"], row["dmarc"], row["spam_reason"]) == (
                "none",
                "pass",
                "pass",
                None,
            )
        broken = signature + raw.replace(b"berth 12", b"berth 13")
        assert (await post.deliver(broken, [HELP], "list@lists.example")).startswith("550 5.7.1")


async def test_the_operator_may_have_forged_mail_refused(database_url: str, tmp_path: Path) -> None:
    """`reject_dmarc_fail`; mail to postmaster is taken all the same (SMTP-16)."""
    async with (
        world(database_url, tmp_path, zone=Zone(ZONE), reject_dmarc_fail="true") as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await receiving_team(pillarbox)
        bank, shop = "ada@bank.example", "ada@shop.example"
        assert (await post.deliver(message(sender=bank), [HELP], bank)).startswith("550 5.7.1")
        assert (await post.deliver(message(sender=shop), [HELP], shop)).startswith("250")
        to_operator = ["postmaster@harbor.example", HELP]
        assert (await post.deliver(message(sender=bank), to_operator, bank)).startswith("250")
        assert len(await received(team)) == 2


@pytest.mark.parametrize("how", ["SERVFAIL", "SILENCE"])
async def test_dns_that_fails_costs_no_mail(database_url: str, tmp_path: Path, how: str) -> None:
    """INB-10: a temperror."""
    zone = Zone()
    for name in ("quay.example", "_dmarc.quay.example"):
        zone.fail(name, how)
    async with world(database_url, tmp_path, zone=zone) as pillarbox, inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        assert (await post.deliver(message(), [HELP])).startswith("250")
        row = await row_of(team)
        assert (row["spf"], row["dmarc"], row["spam_reason"]) == ("temperror", "temperror", None)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"action": "add header", "score": 7.5, "required_score": 6}, "rspamd 'add header', 7.5 of 6"),
        ({"action": "no action", "score": 0.1, "required_score": 15}, None),
        ({"action": "greylist", "score": 4, "required_score": 15}, None),
        (None, "dmarc=fail policy=reject"),
    ],
)
async def test_rspamd_says_what_is_spam_where_there_is_one(
    database_url: str, tmp_path: Path, answer: dict[str, Any] | None, reason: str | None
) -> None:
    """INB-05: told of the session; where it fails, the author's domain decides."""
    body = b"no json" if answer is None else json.dumps(answer).encode()
    async with serving(http_answer(body)) as far:
        url = f"http://127.0.0.1:{far.port}"
        async with (
            world(database_url, tmp_path, zone=Zone(ZONE), rspamd_url=url) as pillarbox,
            inbound_client(pillarbox) as post,
        ):
            team = await receiving_team(pillarbox)
            sender = "ada@bank.example"
            assert (await post.deliver(message(sender=sender), [HELP], sender)).startswith("250")
            assert (await row_of(team))["spam_reason"] == reason
        [request] = far.requests
        assert request.startswith(b"POST /checkv2 ")
        for line in ("ip: 127.0.0.1", f"from: {sender}", f"rcpt: {HELP}", "helo: quay.example"):
            assert line in far.header_lines
        assert request.endswith(b"\r\n\r\n" + message(sender=sender))


# Large, and old ------------------------------------------------------------------------------------


async def test_a_large_message_is_a_blob_before_its_row_names_it(database_url: str, tmp_path: Path) -> None:
    """Architecture 2.7: beyond 256 KiB; read, listed, downloaded and removed like any other."""
    clock = ManualClock()
    async with (
        manual_world(database_url, tmp_path, clock, received_retention_days="30") as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await receiving_team(pillarbox)
        small, large = message(body="s" * 70), message(body=("l" * 70 + "\r\n") * 10_000)
        for raw in (small, large, large):
            assert (await post.deliver(raw, [HELP])).startswith("250")
        blobs = [path for path in (tmp_path / "blobs" / "received").rglob("*") if path.is_file()]
        [newest, _] = await received(team)
        assert [path.name for path in blobs] == [newest["id"]]
        assert blobs[0].read_bytes() == large
        assert (await raw_of(team, newest["id"])).endswith(large)
        shown = (await team.get(f"/emails/receiving/{newest['id']}")).json()
        assert shown["text"] == large.partition(b"\r\n\r\n")[2].decode().replace("\r\n", "\n")
        assert shown["headers"]["subject"] == "Berth"
        clock.advance(30 * 24 * 3600 + 1)
        await purge(pillarbox)
        assert await received(team) == []
        assert not any(path.is_file() for path in (tmp_path / "blobs" / "received").rglob("*"))


async def test_old_mail_goes_with_all_that_belongs_to_it(database_url: str, tmp_path: Path) -> None:
    """5.6: so many days after it came; what is younger stays, and by default everything does."""
    clock = ManualClock()
    settings = {"received_retention_days": "7"}
    async with (
        manual_world(database_url, tmp_path, clock, **settings) as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await receiving_team(pillarbox)
        part = "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf"
        await post.deliver(message(part), [HELP])
        [old] = await received(team)
        link = (await team.get(f"/emails/receiving/{old['id']}")).json()["raw"]["download_url"]
        clock.advance(6 * 24 * 3600)
        await post.deliver(message(part, body="younger"), [HELP])
        clock.advance(24 * 3600 + 1)
        await purge(pillarbox)
        assert [found["id"] for found in await received(team)] != [old["id"]]
        assert len(await received(team)) == 1
        for path in ("", "/attachments", f"/attachments/{old['attachments'][0]['id']}"):
            assert (await team.get(f"/emails/receiving/{old['id']}{path}")).status_code == 404
        assert (await pillarbox.client(None).get(link)).status_code == 403
        for table in ("received_emails", "received_sources", "received_attachments"):
            assert await pillarbox.pool.fetchval(f"SELECT count(*) FROM {table}") == 1, table
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM received_seen") == 0, "a day is over"


async def test_without_the_setting_mail_is_kept(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    async with inbound_client(pillarbox) as post:
        team = await receiving_team(pillarbox)
        await post.deliver(message(), [HELP])
        clock.advance(20 * 365 * 24 * 3600)
        await purge(pillarbox)
        assert len(await received(team)) == 1


async def purge(pillarbox: World) -> None:
    """The round of received mail, now."""
    [found] = [r for r in pillarbox.app.need(PeriodicJobs) if r.kind == "receiving.retention"]
    await found.work()


async def test_a_busy_process_puts_mail_off(database_url: str, tmp_path: Path) -> None:
    """Architecture 6.5: what is under way is bounded; 451, and taken when there is room again."""
    zone = Zone()
    async with world(database_url, tmp_path, zone=zone) as pillarbox:
        receiving = receiving_of(pillarbox, zone, rules=ReceivingRules(HOSTNAME, most_small=1000))
        async with inbound_client(pillarbox, receiving) as post:
            team = await receiving_team(pillarbox)
            zone.hold = asyncio.Event()
            under_way = asyncio.create_task(post.deliver(message(body="x" * 1000), [HELP]))
            await zone.changed.wait()
            dialogue = await post.connect()
            assert (await dialogue.say("MAIL FROM:<a@quay.example>")).startswith("451 4.3.2")
            zone.hold.set()
            assert (await under_way).startswith("250")
            assert (await dialogue.say("MAIL FROM:<a@quay.example>")).startswith("250")
            assert len(await received(team)) == 1


@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t "])
async def test_a_first_line_that_begins_with_a_blank_adds_nothing_to_our_results(
    blank: bytes, running: World
) -> None:
    """AR-01: what the sender says is never part of a field of ours, by another reader's parser."""
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        raw = (
            blank + b"; dkim=pass header.d=bank.example; dmarc=pass header.from=bank.example\r\n" + message()
        )
        assert (await post.deliver(raw, [HELP])).startswith("250 2.0.0")
        [found] = await received(team)
        whole = await raw_of(team, found["id"])
        assert whole.endswith(raw)
        head = BytesParser(policy=default).parsebytes(whole)
        assert head.keys()[:4] == ["Return-Path", "Received", "Authentication-Results", "X-Unreadable-Line"]
        for name in ("Return-Path", "Received", "Authentication-Results"):
            assert "bank.example" not in head[name]
        assert found["subject"] == "Berth"


async def test_a_second_subject_on_a_signed_mail_is_neither_believed_nor_shown(running: World) -> None:
    """DKIM-07: the signature counts for nothing, and what is shown is what was signed."""
    async with inbound_client(running) as post:
        team = await receiving_team(running)
        raw = b"Subject: Pay to this account\r\nReply-To: <eve@elsewhere.example>\r\n"
        raw += message("Reply-To: <ada@quay.example>")
        assert (await post.deliver(raw, [HELP])).startswith("250 2.0.0")
        [found] = await received(team)
        assert (found["subject"], found["reply_to"]) == ("Berth", ["ada@quay.example"])
