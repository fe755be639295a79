"""Submission by SMTP: every reply of emails.md section 10, the same text as in the API (SMTP-09 to 12)."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kit.clock import ManualClock
from kit.inbound_client import receiving_domain
from kit.smtp_listener import SmtpReply, dialog, trusting
from kit.smtp_sink import Sink
from kit.submission import SubmissionPorts, Team, message_bytes, plain, queued_id, submission
from kit.world import mail
from pillarbox.kernel.process import faults
from pillarbox.kernel.security import certificates
from pillarbox.kernel.storage.disk_space import DiskFull
from pillarbox.kernel.wire.problems import DatabaseGone, Problem, RateLimited
from pillarbox.smtp import prometheus
from pillarbox.smtp.submission import SubmissionHandler, reply

TO = ("ada@quay.example",)
WAITING = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def told(said: SmtpReply) -> str:
    """What a reply says behind its codes."""
    return said.text.partition(" ")[2]


@pytest.fixture
def submission_ports(
    database_url: str, tmp_path: Path
) -> AbstractAsyncContextManager[tuple[Team, SubmissionPorts]]:
    return submission(database_url, tmp_path)


async def test_a_submitted_mail_is_an_email_like_any_other(
    submission_ports: tuple[Team, SubmissionPorts],
) -> None:
    """SMTP-12: the id of the answer, in the list, with its events, delivered."""
    team, listeners = submission_ports
    async with listeners.program(team.token) as client:
        text = message_bytes(
            to="Ada <ada@quay.example>, bo@quay.example",
            Cc="cy@pier.example",
            Reply_To="handler@harbor.example",
            html="<p>Ready</p>",
            X_Berth="12",
            files=[("map.pdf", b"%PDF-1.7")],
        )
        to = ["ada@quay.example", "bo@quay.example", "cy@pier.example", "dee@pier.example"]
        email_id = queued_id(await client.send(text, sender="bounces@elsewhere.example", to=to))
    found = await team.settled(email_id)
    assert found["from"] == "Harbor <notes@harbor.example>"
    assert found["to"] == ["Ada <ada@quay.example>", "bo@quay.example"]
    assert (found["cc"], found["bcc"]) == (["cy@pier.example"], ["dee@pier.example"])
    assert found["reply_to"] == ["handler@harbor.example"]
    assert (found["subject"], found["text"], found["html"]) == ("Berth 12", "Ready\n", "<p>Ready</p>\n")
    assert found["last_event"] == "delivered"
    assert (await team.kinds(email_id))[0] == "queued"
    listed = (await team.get("/emails")).json()["data"]
    assert [item["id"] for item in listed] == [email_id]
    for source, found_ids in (("smtp", [email_id]), ("api", [])):
        of_source = (await team.get(f"/emails?source={source}")).json()["data"]
        assert [item["id"] for item in of_source] == found_ids
    [file] = (await team.get(f"/emails/{email_id}/attachments")).json()["data"]
    assert (file["filename"], file["size"]) == ("map.pdf", 8)


async def test_every_listener_takes_submissions(database_url: str, tmp_path: Path) -> None:
    """Port 25 too: there AUTH decides. Implicit TLS on its own listener."""
    async with submission(database_url, tmp_path) as (team, listeners):
        for port in (listeners.smtp, listeners.submission):
            async with listeners.program(team.token, port=port) as client:
                queued_id(await client.send(message_bytes(), to=TO))
        async with dialog(listeners.submissions, tls=trusting(tmp_path)) as client:
            await client.ask("EHLO x", f"AUTH PLAIN {plain(team.token)}")
            queued_id(await client.send(message_bytes(), to=TO))


async def test_without_auth_nothing_is_submitted(database_url: str, tmp_path: Path) -> None:
    """OPS-10."""
    async with submission(database_url, tmp_path, smtp_login_needs_tls="true") as (team, listeners):
        async with dialog(listeners.submission) as client:
            assert "STARTTLS" in (await client.ask("EHLO x")).lines
            assert str(await client.ask("MAIL FROM:<a@b.example>")) == "530 5.7.0"
            assert str(await client.ask(f"AUTH PLAIN {plain(team.token)}")) == "530 5.7.0"
            await client.ask("STARTTLS")
            await client.start_tls(trusting(tmp_path))
            await client.ask("EHLO x")
            assert str(await client.ask("MAIL FROM:<a@b.example>")) == "530 5.7.0"
            assert str(await client.ask(f"AUTH PLAIN {plain(team.token)}")) == "235 2.7.0"
            queued_id(await client.send(message_bytes(), to=TO))
        async with dialog(listeners.smtp) as client:
            await client.ask("EHLO x", "MAIL FROM:<a@b.example>")
            assert (await client.ask("RCPT TO:<ada@quay.example>")).code == 550


async def test_user_names(submission_ports: tuple[Team, SubmissionPorts]) -> None:
    team, listeners = submission_ports
    for user in ("resend", "RESEND", "pillarbox", "Pillarbox"):
        async with dialog(listeners.submission) as client:
            await client.ask("EHLO x")
            assert str(await client.ask(f"AUTH PLAIN {plain(team.token, user)}")) == "235 2.7.0"


async def test_wrong_credentials(submission_ports: tuple[Team, SubmissionPorts]) -> None:
    """535 for whatever is wrong; a client that fails five times is not heard for ten minutes (SMTP-10)."""
    team, listeners = submission_ports
    wrong = [("admin", team.token), ("resend", team.token[:-1]), ("resend", "x" * 9000)]
    async with dialog(listeners.submission) as client:
        await client.ask("EHLO x")
        for user, token in wrong:
            assert str(await client.ask(f"AUTH PLAIN {plain(token, user)}")) == "535 5.7.8"
        assert await client.over() == []
    async with dialog(listeners.smtp) as client:
        await client.ask("EHLO x", f"AUTH PLAIN {plain('')}", f"AUTH PLAIN {plain('nobody')}")
        assert str(await client.ask(f"AUTH PLAIN {plain(team.token)}")) == "421 4.7.0"
        assert await client.over() == []


async def test_keys_that_may_not_be_used(database_url: str, tmp_path: Path) -> None:
    """Suspended or inactive: 535 at AUTH, 550 for a message of a session that runs."""
    clock = ManualClock()
    async with submission(database_url, tmp_path, clock=clock) as (team, listeners):
        for statement, text in (
            ("UPDATE api_keys SET status = 'suspended'", "This API key is suspended."),
            ("UPDATE api_keys SET status = 'inactive'", "This API key is not active."),
            ("DELETE FROM api_keys", "API key is invalid"),
        ):
            token = await team.key(permission="sending_access")
            async with listeners.program(token) as client:
                queued_id(await client.send(message_bytes(), to=TO))
                made = "WHERE permission = 'sending_access'"
                await team.world.pool.execute(f"{statement} {made}")
                clock.advance(1)  # contract decision 33
                said = await client.send(message_bytes(), to=TO)
                assert (str(said), told(said)) == ("550 5.7.1", text)
                async with dialog(listeners.submission) as late:
                    await late.ask("EHLO x")
                    assert str(await late.ask(f"AUTH PLAIN {plain(token)}")) == "535 5.7.8"


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("unverified", {"from": "a@pier.example"}, {"sender": "a@pier.example"}, "550 5.7.1"),
    ("parent domain", {"from": "a@sub.harbor.example"}, {"sender": "a@sub.harbor.example"}, "550 5.7.1"),
    ("sandbox", {"from": "onboarding@resend.dev"}, {"sender": "onboarding@resend.dev"}, "550 5.7.1"),
    ("no sender", {"from": None}, {"sender": None}, "550 5.6.0"),
    ("bad sender", {"from": "a@nodot"}, {"sender": "a@nodot"}, "550 5.6.0"),
    ("bad cc", {"cc": "a@[192.0.2.1]"}, {"Cc": "a@[192.0.2.1]"}, "550 5.6.0"),
    ("bad reply-to", {"reply_to": "nobody"}, {"Reply_To": "nobody"}, "550 5.6.0"),
    ("long header", {"headers": {"X-Long": "x " * 1200 + "x"}}, {"X_Long": "x " * 1200 + "x"}, "550 5.6.0"),
    (
        "blocked file",
        {"attachments": [{"filename": "setup.EXE", "content": "AAAA"}]},
        {"files": [("setup.EXE", b"\0\0\0")]},
        "554 5.7.1",
    ),
]


async def test_what_the_api_refuses_smtp_refuses_in_the_same_words(database_url: str, tmp_path: Path) -> None:
    """SMTP-11: one table, both listeners, nothing stored."""
    async with submission(database_url, tmp_path, require_verified_domain="always") as (team, listeners):
        await team.domain()
        for case, fields, parts, code in REFUSALS:
            answer = await team.post("/emails", mail(**fields))
            assert answer.status_code >= 400, case
            async with listeners.program(team.token) as client:
                said = await client.send(message_bytes(**parts), to=TO)
                assert str(said) == code, case
                # A reply has one line of ASCII, so a long text is cut.
                expected = re.sub(r"[^\x20-\x7e]", "?", answer.json()["message"])
                assert expected.startswith(told(said)), case
                assert len(told(said)) >= min(len(expected), 300), case
                assert (await client.ask("NOOP")).code == 250
        assert (await team.get("/emails")).json()["data"] == []


async def test_a_key_of_one_domain_sends_from_it_alone(
    submission_ports: tuple[Team, SubmissionPorts],
) -> None:
    """SMTP-11, TEN-03."""
    team, listeners = submission_ports
    domain_id = await team.domain()
    await team.domain("quay.example")
    token = await team.key(permission="sending_access", domain_id=domain_id)
    async with listeners.program(token) as client:
        queued_id(await client.send(message_bytes(), to=TO))
        said = await client.send(message_bytes(sender="a@quay.example"), to=TO)
    api = await team.using(token).post("/emails", mail(**{"from": "a@quay.example"}))
    assert (str(said), told(said)) == ("550 5.7.1", api.json()["message"])


SENDERS = [
    (b"From: a@harbor.example, b@harbor.example\r\n", "Use one mailbox"),
    (b"From: a@harbor.example\r\nFrom: b@harbor.example\r\n", "Use one mailbox"),
    (b"From: Crew: a@harbor.example;\r\n", "Use one mailbox"),
    (b"From: <@pier.example:a@harbor.example>\r\n", "Use one mailbox"),
    (b"From: \r\n", "Missing `from` field."),
    (b"From: Nobody\r\n", "Invalid `from` field."),
    (b"X: y\r\n", "Missing `from` field."),
]


async def test_from_is_one_mailbox(submission_ports: tuple[Team, SubmissionPorts]) -> None:
    """MSG-12."""
    team, listeners = submission_ports
    async with listeners.program(team.token) as client:
        for header, text in SENDERS:
            said = await client.send(header + b"To: ada@quay.example\r\nSubject: x\r\n\r\nx\r\n", to=TO)
            assert str(said) == "550 5.6.0"
            assert text in said.text


async def test_recipients_of_the_envelope(submission_ports: tuple[Team, SubmissionPorts]) -> None:
    team, listeners = submission_ports
    async with listeners.program(team.token) as client:
        await client.ask("MAIL FROM:<>")
        for bad in (
            "ada@quay",
            "ada@[192.0.2.1]",
            "ada@quay..example",
            "postmaster",
            f"{'a' * 65}@quay.example",
        ):
            assert str(await client.ask(f"RCPT TO:<{bad}>")) == "553 5.1.3"
        codes = [str(await client.ask(f"RCPT TO:<r{n}@quay.example>")) for n in range(151)]
        assert codes == ["250 2.1.5"] * 150 + ["452 4.5.3"]
        await client.ask("RSET")
        some = [f"r{n}@quay.example" for n in range(51)]
        assert str(await client.send(message_bytes(to=None), to=some)) == "452 4.5.3"
        assert str(await client.send(message_bytes(to=", ".join(some)), to=some)) == "452 4.5.3"
        fifty = message_bytes(to=", ".join(some[:50]))
        queued_id(await client.send(fifty, to=some))
        email = (await team.get("/emails")).json()["data"][0]
        assert (len(email["to"]), email["bcc"]) == (50, [some[50]])


async def test_idempotency(submission_ports: tuple[Team, SubmissionPorts]) -> None:
    """The same key and content: the same id, one email. Other content 554. The header is not sent on."""
    team, listeners = submission_ports
    async with listeners.program(team.token) as client:
        text = message_bytes(Resend_Idempotency_Key="berth-12")
        first = queued_id(await client.send(text, to=TO))
        assert queued_id(await client.send(text, to=TO)) == first
        again = message_bytes(Pillarbox_Idempotency_Key="berth-12")
        assert queued_id(await client.send(again, to=TO)) == first
        other = await client.send(message_bytes(subject="Other", Resend_Idempotency_Key="berth-12"), to=TO)
        assert str(other) == "554 5.7.0"
        assert str(await client.send(text, to=[*TO, "bcc@quay.example"])) == "554 5.7.0"
        assert str(await client.send(message_bytes(Resend_Idempotency_Key="x" * 257), to=TO)) == "550 5.6.0"
        assert len((await team.get("/emails")).json()["data"]) == 1
        answer = await team.post("/emails", mail(), idempotency_key="berth-12")
        assert answer.json()["id"] != first
        stored = "SELECT count(*) FROM contents WHERE headers IS NOT NULL"
        assert await team.world.pool.fetchval(stored) == 0


@asynccontextmanager
async def held_up(database_url: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """No mail is stored meanwhile; waits until somebody waits for that."""
    beside = await asyncpg.connect(database_url)
    try:
        await beside.execute("BEGIN")
        await beside.execute("LOCK TABLE contents IN SHARE MODE")

        async def is_waiting() -> None:
            async with asyncio.timeout(30):
                while not await beside.fetchval(WAITING):
                    await asyncio.sleep(0.01)

        yield is_waiting
    finally:
        await beside.close()


async def test_a_key_that_is_being_worked_on_is_for_later(database_url: str, tmp_path: Path) -> None:
    """451 4.3.0, from the session beside it."""
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as first,
        listeners.program(team.token) as second,
    ):
        text = message_bytes(Resend_Idempotency_Key="berth-12")
        other = message_bytes(Resend_Idempotency_Key="berth-12", subject="y")
        async with held_up(database_url) as is_waiting:
            sending = asyncio.create_task(first.send(text, to=TO))
            await is_waiting()
            assert str(await second.send(text, to=TO)) == "451 4.3.0"
            assert str(await second.send(other, to=TO)) == "554 5.7.0"
        email_id = queued_id(await sending)
        assert queued_id(await second.send(text, to=TO)) == email_id


async def test_the_rate_limit_is_the_one_of_the_api(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with (
        submission(database_url, tmp_path, clock=clock, rate_limit="4") as (team, listeners),
        listeners.program(team.token) as client,
    ):
        for _ in range(2):
            assert (await team.post("/emails", mail())).status_code == 200
            queued_id(await client.send(message_bytes(), to=TO))
        said = await client.ask("MAIL FROM:<a@b.example>")
        answer = await team.post("/emails", mail())
        assert (str(said), answer.status_code) == ("451 4.7.1", 429)
        assert told(said) == answer.json()["message"]
        clock.advance(1)
        queued_id(await client.send(message_bytes(), to=TO))


async def test_trouble_of_our_own_is_for_later(submission_ports: tuple[Team, SubmissionPorts]) -> None:
    """451 4.3.0, nothing stored, the session goes on."""
    team, listeners = submission_ports
    async with listeners.program(team.token) as client:
        with faults.armed("accept.before_commit=raise"):
            assert str(await client.send(message_bytes(), to=TO)) == "451 4.3.0"
            queued_id(await client.send(message_bytes(), to=TO))
        assert len((await team.get("/emails")).json()["data"]) == 1


async def test_a_spent_quota(database_url: str, tmp_path: Path) -> None:
    """452 4.7.1, in the words of the API; nothing is stored."""
    clock = ManualClock()
    async with submission(database_url, tmp_path, clock=clock) as (team, listeners):
        await team.world.pool.execute("UPDATE teams SET daily_quota = 1")
        clock.advance(1)
        async with listeners.program(team.token) as client:
            queued_id(await client.send(message_bytes(), to=TO))
            said = await client.send(message_bytes(), to=TO)
        answer = await team.post("/emails", mail())
        assert (str(said), answer.status_code) == ("452 4.7.1", 429)
        assert told(said) == answer.json()["message"]


def test_what_nobody_foresaw_is_for_later() -> None:
    """Backpressure (a full disk, a lost database) and failures: 451 4.3.0, and the client tries again."""
    assert reply(DiskFull()).wire.startswith(b"451 4.3.0 There is no room to store this right now.")
    assert reply(DatabaseGone()).wire.startswith(b"451 4.3.0 The service is not available right now.")
    assert reply(Problem("Something went wrong.")).wire == b"451 4.3.0 Something went wrong.\r\n"
    assert reply(RateLimited("Slow down.")).wire == b"451 4.7.1 Slow down.\r\n"


async def test_a_message_in_a_mail_loop_is_refused(database_url: str, tmp_path: Path) -> None:
    """SMTP-14, contract decision 35."""
    hop = b"Received: from a.example by b.example; Mon, 5 Oct 2026 10:00:00 +0000\r\n"
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as client,
    ):
        queued_id(await client.send(hop * 50 + message_bytes(), to=TO))
        assert str(await client.send(hop * 51 + message_bytes(), to=TO)) == "554 5.4.6"
        assert str(await client.send(hop + message_bytes(X_Pillarbox_Hops="50"), to=TO)) == "554 5.4.6"


async def test_a_loop_through_us_has_an_end(database_url: str, tmp_path: Path) -> None:
    """SMTP-14: a relay that gives our mail back to us; each round adds its Received, and we drop it."""
    hop = b"Received: from us by relay.example; Mon, 5 Oct 2026 10:00:00 +0000\r\n"
    async with relayed_submission(database_url, tmp_path) as (team, listeners, sink):
        async with listeners.program(team.token) as client:
            rounds = 0
            said = await client.send(message_bytes(), to=TO)
            while said.code == 250:
                rounds += 1
                await team.settled(queued_id(said))
                said = await client.send(hop + sink.received[-1].content, to=TO)
        assert (str(said), rounds) == ("554 5.4.6", 26)


async def test_inboxes_whose_programs_submit_to_each_other_get_one_copy_each(
    database_url: str, tmp_path: Path
) -> None:
    """SMTP-14: what is submitted anew has lost its Received fields, and keeps the marks of where it was."""
    inboxes = ["help@berth.example", "info@berth.example"]
    async with relayed_submission(database_url, tmp_path) as (team, listeners, sink):
        await receiving_domain(team, "berth.example")
        at, said, text = 0, None, message_bytes(sender="ada@quay.example", to=inboxes[0])
        async with listeners.program(team.token) as program, dialog(listeners.smtp) as server:
            await server.ask("EHLO relay.example")
            while (said := await server.send(text, to=[inboxes[at % 2]])).code == 250:
                at += 1
                found = (await team.get(f"/emails/receiving/{said.text.rpartition(' ')[2]}")).json()
                raw = (await team.world.client(None).get(found["raw"]["download_url"])).content
                onwards = raw.replace(b"From: ada@quay.example", b"From: notes@harbor.example")
                await team.settled(queued_id(await program.send(onwards, to=[inboxes[at % 2]])))
                text = b"Received: from us by relay.example\r\n" + sink.received[-1].content
        assert (str(said), at) == ("554 5.4.6", 2)


@asynccontextmanager
async def relayed_submission(
    database_url: str, folder: Path
) -> AsyncIterator[tuple[Team, SubmissionPorts, Sink]]:
    """Listeners of a Pillarbox that hands its mail to a server of the test."""
    async with Sink() as sink:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        async with submission(database_url, folder, route=route) as (team, listeners):
            await team.domain()
            yield team, listeners, sink


async def test_bodies_beyond_ten_megabytes_are_too_big(database_url: str, tmp_path: Path) -> None:
    lines = (b"x" * 900 + b"\r\n") * 12_000
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as client,
    ):
        said = await client.send(message_bytes(text=None) + lines, to=TO)
        assert said.text == "5.3.4 Invalid `text` field. The bodies may have 10 MB together."
        assert said.code == 552


async def test_attachments_beyond_forty_megabytes_are_too_big(database_url: str, tmp_path: Path) -> None:
    """The total of 1.4 is counted in base64 whatever the message used."""
    lines = (b"x" * 998 + b"\r\n") * 31_500
    head = message_bytes(text=None)[:-2] + b"Content-Type: application/pdf\r\n\r\n"
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as client,
    ):
        assert str(await client.send(head + lines, to=TO)) == "552 5.3.4"
        assert str(await client.ask("MAIL FROM:<a@b.example> SIZE=52428801")) == "552 5.3.4"


async def test_smuggling_through_a_real_listener(database_url: str, tmp_path: Path) -> None:
    """SMTP-01 with the real handler: nothing of the smuggled sender is stored."""
    from smtp.test_server_data import FALSE_ENDS, SMUGGLED

    async with submission(database_url, tmp_path) as (team, listeners):
        for end, port in itertools.product(FALSE_ENDS.values(), (listeners.smtp, listeners.submission)):
            async with listeners.program(team.token, port=port) as client:
                await client.ask("MAIL FROM:<a@b.example>", "RCPT TO:<ada@quay.example>", "DATA")
                client.write(message_bytes() + b"text" + end + SMUGGLED + b"\r\n.\r\n")
                assert str(await client.hear()) == "550 5.5.2"
        assert (await team.get("/emails")).json()["data"] == []


async def test_the_time_of_a_login_tells_nothing_about_the_key(
    submission_ports: tuple[Team, SubmissionPorts],
) -> None:
    """SMTP-10: a key that is nearly right is refused as fast as one that is all wrong."""
    team, _ = submission_ports
    handler = team.world.app.need(SubmissionHandler)
    near = team.token[:-1] + ("a" if team.token[-1] != "a" else "b")
    far = "re_" + "z" * (len(team.token) - 3)
    times: dict[str, list[float]] = {near: [], far: []}
    for _ in range(60):
        for token in (near, far):
            began = time.perf_counter()
            assert (await handler.login(object(), "resend", token)).code == 535
            times[token].append(time.perf_counter() - began)
    fastest = [sorted(found)[len(found) // 4] for found in times.values()]
    assert max(fastest) < 1.5 * min(fastest)


async def test_keys_are_in_no_log(
    submission_ports: tuple[Team, SubmissionPorts], capfd: pytest.CaptureFixture[str]
) -> None:
    """SMTP-10."""
    team, listeners = submission_ports
    async with listeners.program(team.token) as client:
        queued_id(await client.send(message_bytes(), to=TO))
    async with dialog(listeners.submission) as client:
        await client.ask("EHLO x", f"AUTH PLAIN {plain(team.token + 'x')}")
    said = capfd.readouterr()
    for secret in (team.token, plain(team.token), plain(team.token + "x"), "ada@quay.example"):
        assert secret not in said.out + said.err


async def test_what_is_counted(database_url: str, tmp_path: Path) -> None:
    """OPS-06: connections, logins and messages by their outcome."""
    tallies = [
        (prometheus.CONNECTIONS, ("accepted",)),
        (prometheus.LOGINS, ("235",)),
        (prometheus.MESSAGES, ("submission", "250")),
        (prometheus.MESSAGES, ("submission", "550")),
    ]
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as client,
    ):
        before = [tally.value(labels) for tally, labels in tallies]
        await client.send(message_bytes(), to=TO)
        await client.send(message_bytes(sender=None), to=TO)
        async with listeners.program(team.token):
            assert prometheus.SESSIONS.read() == {(): 2}
        after = [tally.value(labels) for tally, labels in tallies]
        assert [late - early for late, early in zip(after, before, strict=True)] == [1, 1, 1, 1]
        assert certificates.VALID.read()[("smtp",)] > 300 * 86400
