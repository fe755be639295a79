"""Transactions as dialogues (OUT-06, 07, 08, 13, 14, 17, 18, TRAP-08)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.smtp_sink import CLOSE, DEFAULT_EXTENSIONS, DROP, SILENCE, USUAL, Sink
from pillarbox.mail.smtp.client import SmtpConnection, SmtpStage, Timeouts, TlsMode, Transaction
from pillarbox.mail.smtp.content import dot_stuffed

TINY = Timeouts(mail=0.1, rcpt=0.1, data=0.1, block=0.1, final=0.1, quit=0.1)
CONTENT = b"Subject: x\r\n\r\nbody\r\n"
LARGE = b"Subject: x\r\n\r\n" + (b"z" * 990 + b"\r\n") * 16_000
ONE_BY_ONE = tuple(word for word in DEFAULT_EXTENSIONS if word != "PIPELINING")
BOTH_WAYS = pytest.mark.parametrize("extensions", [DEFAULT_EXTENSIONS, ONE_BY_ONE], ids=["piped", "plain"])


async def opened(sink: Sink, timeouts: Timeouts | None = None) -> SmtpConnection:
    connection = await SmtpConnection.open(
        sink.address, server_name="mx.sink.test", hello="out.harbor.test", tls=TlsMode.NONE, timeouts=timeouts
    )
    assert isinstance(connection, SmtpConnection)
    return connection


async def sent(
    connection: SmtpConnection, *recipients: str, content: bytes = CONTENT, **more: Any
) -> Transaction:
    return await connection.send("a@harbor.test", recipients or ("ann@example.test",), content, **more)


def codes(transaction: Transaction) -> list[tuple[str, int]]:
    return [(answer.stage.value, answer.reply.code) for answer in transaction.answers]


@BOTH_WAYS
async def test_a_mail_arrives_as_it_is(extensions: tuple[str, ...]) -> None:
    """OUT-14, OUT-17: exactly the bytes, SIZE where it is offered, nothing that is not needed."""
    async with Sink(extensions=extensions) as sink:
        connection = await opened(sink)
        done = await sent(connection, content=b".\r\nSubject: x\r\n\r\n.dot\r\n..\r\nend")
        assert codes(done) == [("dot", 250)]
        assert (done.stage, done.offered, done.uncertain) == (SmtpStage.DOT, True, False)
        assert done.final is not None
        assert done.final.text == "kept as 1"
        [mail] = sink.received
        assert mail.content == b".\r\nSubject: x\r\n\r\n.dot\r\n..\r\nend\r\n"
        assert (mail.mail_from, mail.recipients) == ("a@harbor.test", ["ann@example.test"])
        assert mail.mail_parameters == ["SIZE=32"]
        assert connection.is_reusable
        assert connection.transactions == 1
        await connection.quit()


async def test_the_null_sender_is_written_as_such() -> None:
    """RFC 5321 4.5.5."""
    async with Sink(extensions=()) as sink:
        await (await opened(sink)).send("", ["ann@example.test"], CONTENT)
        assert "MAIL FROM:<>" in sink.sessions[0].commands


@BOTH_WAYS
async def test_out_07_each_recipient_has_its_own_answer(extensions: tuple[str, ...]) -> None:
    """OUT-07, OUT-14: partial rejects."""
    async with Sink(extensions=extensions) as sink:
        sink.script("RCPT", "250 2.1.5 ok", "550 5.1.1 no such user", "450 4.2.1 busy", "251 will forward")
        connection = await opened(sink)
        done = await sent(connection, "a@x.test", "b@x.test", "c@x.test", "d@x.test")
        assert codes(done) == [("dot", 250), ("rcpt", 550), ("rcpt", 450), ("dot", 250)]
        assert [answer.recipient for answer in done.answers] == [
            "a@x.test",
            "b@x.test",
            "c@x.test",
            "d@x.test",
        ]
        assert sink.received[0].recipients == ["a@x.test", "d@x.test"]
        assert connection.is_reusable


@BOTH_WAYS
async def test_out_13_the_connection_is_reused_and_reset_when_a_transaction_stayed_open(
    extensions: tuple[str, ...],
) -> None:
    """OUT-13."""
    async with Sink(extensions=extensions) as sink:
        connection = await opened(sink)
        sink.script("RCPT", "550 5.1.1 no such user")
        assert codes(await sent(connection)) == [("rcpt", 550)]
        assert connection.is_reusable
        assert codes(await sent(connection)) == [("dot", 250)]
        assert codes(await sent(connection)) == [("dot", 250)]
        assert len(sink.sessions) == 1
        assert len(sink.received) == 2
        assert sink.sessions[0].verbs.count("RSET") == 1
        assert await connection.reset()


@BOTH_WAYS
async def test_a_refused_sender_decides_for_every_recipient(extensions: tuple[str, ...]) -> None:
    """OUT-06: the 503 that follows in the pipeline is no answer to a recipient."""
    async with Sink(extensions=extensions) as sink:
        sink.script("MAIL", "451 4.7.1 try later")
        connection = await opened(sink)
        done = await sent(connection, "a@x.test", "b@x.test")
        assert codes(done) == [("mail", 451), ("mail", 451)]
        assert done.offered
        assert done.stage is SmtpStage.MAIL
        assert codes(await sent(connection)) == [("dot", 250)]


async def test_out_14_a_354_though_all_were_refused_is_answered_with_a_dot() -> None:
    """OUT-14, RFC 2920 3.1: nothing of the mail goes out, the connection stays usable."""
    async with Sink() as sink:
        sink.script("RCPT", "550 5.1.1 no such user", "550 5.1.1 no such user")
        sink.script("DATA", "354 go ahead")
        sink.script("DOT", "554 5.5.1 nobody to send to")
        connection = await opened(sink)
        done = await sent(connection, "a@x.test", "b@x.test")
        assert codes(done) == [("rcpt", 550), ("rcpt", 550)]
        assert sink.sessions[0].refused == [b""]
        assert codes(await sent(connection)) == [("dot", 250)]


async def test_out_14_a_server_that_accepts_recipients_without_a_sender_gets_no_empty_mail() -> None:
    """OUT-14."""
    async with Sink() as sink:
        sink.script("MAIL", "550 5.7.1 no")
        sink.script("RCPT", "250 ok")
        sink.script("DATA", "354 go ahead")
        connection = await opened(sink)
        assert codes(await sent(connection)) == [("mail", 550)]
        assert not connection.is_reusable
        await sink.ended(1)
        assert sink.received == []


@BOTH_WAYS
async def test_a_refused_data_decides_for_the_accepted(extensions: tuple[str, ...]) -> None:
    """OUT-06."""
    async with Sink(extensions=extensions) as sink:
        sink.script("RCPT", "250 ok", "550 5.1.1 no such user")
        sink.script("DATA", "554 5.7.1 not today")
        connection = await opened(sink)
        done = await sent(connection, "a@x.test", "b@x.test")
        assert codes(done) == [("data", 554), ("rcpt", 550)]
        assert codes(await sent(connection)) == [("dot", 250)]


async def test_a_refusal_after_the_dot_is_the_final_answer() -> None:
    """OUT-07."""
    async with Sink() as sink:
        sink.script("DOT", "552 5.2.2 mailbox full")
        connection = await opened(sink)
        done = await sent(connection)
        assert codes(done) == [("dot", 552)]
        assert not done.uncertain
        assert connection.is_reusable


@BOTH_WAYS
@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA", "DOT"])
async def test_out_06_421_anywhere_is_temporary_and_ends_the_connection(
    extensions: tuple[str, ...], command: str
) -> None:
    """OUT-06, OUT-13: also when the server then keeps the connection open."""
    async with Sink(extensions=extensions) as sink:
        sink.script(command, "421 4.3.2 shutting down")
        connection = await opened(sink)
        done = await sent(connection, "a@x.test", "b@x.test")
        assert codes(done) == [(command.lower(), 421)] * 2
        assert not done.answers[0].reply.ours
        assert not done.uncertain
        assert not connection.is_reusable
        await sink.ended(1)


@BOTH_WAYS
@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(
    "how", [DROP, CLOSE, SILENCE, b"\x00\xffgarbage\r\n", b"150 wait\r\n", b"999 no\r\n"]
)
async def test_out_06_a_session_that_breaks_is_temporary(
    extensions: tuple[str, ...], command: str, how: Any
) -> None:
    """OUT-06, OUT-18: a lost connection, a time-out, nonsense, at each stage before the dot."""
    async with Sink(extensions=extensions) as sink:
        sink.script(command, how)
        connection = await opened(sink, TINY)
        done = await sent(connection, "a@x.test", "b@x.test")
        assert codes(done) == [(command.lower(), 421)] * 2
        assert all(answer.reply.ours for answer in done.answers)
        assert (done.offered, done.uncertain, done.stale) == (True, False, False)
        assert connection.closed
        assert not connection.is_reusable


async def test_recipients_that_were_refused_before_the_break_keep_their_answer() -> None:
    """OUT-07."""
    async with Sink() as sink:
        sink.script("RCPT", "550 5.1.1 no such user", "250 ok", DROP)
        done = await sent(await opened(sink), "a@x.test", "b@x.test", "c@x.test")
        assert codes(done) == [("rcpt", 550), ("rcpt", 421), ("rcpt", 421)]


@pytest.mark.parametrize("how", [DROP, CLOSE, SILENCE, b"334 what\r\n", b"hello\r\n"])
async def test_out_08_no_answer_to_the_dot_is_uncertain(how: Any) -> None:
    """OUT-08."""
    async with Sink() as sink:
        sink.script("DOT", how)
        sink.script("RCPT", "250 ok", "550 5.1.1 no such user")
        connection = await opened(sink, TINY)
        done = await sent(connection, "a@x.test", "b@x.test")
        assert (done.uncertain, done.final, done.stage) == (True, None, SmtpStage.DOT)
        assert codes(done) == [("dot", 421), ("rcpt", 550)]
        assert not connection.is_reusable


async def test_out_08_the_wait_for_the_final_answer_is_not_cut_by_the_budget() -> None:
    """OUT-08, OUT-18: the dot's time-out holds although the transaction's budget is used up."""
    async with Sink() as sink:
        gate = asyncio.Event()
        sink.script("DOT", (gate, "250 2.0.0 kept"))
        asyncio.get_running_loop().call_later(1.2, gate.set)
        done = await sent(await opened(sink, Timeouts(total=1.0, rate=1e9)))
        assert codes(done) == [("dot", 250)]


async def test_out_18_a_transaction_has_a_budget() -> None:
    """OUT-18: a server that dribbles answers does not hold an attempt for ever."""
    async with Sink() as sink:
        sink.script("RCPT", SILENCE)
        done = await asyncio.wait_for(sent(await opened(sink, Timeouts(total=0.1, rate=1e9))), 2)
        assert codes(done) == [("rcpt", 421)]


async def test_the_fence_stops_the_transfer_before_its_dot() -> None:
    """Architecture 2.5: the server never sees the end of the mail."""
    async with Sink() as sink:
        connection = await opened(sink)
        done = await sent(connection, before_final_dot=lambda: False)
        assert (done.abandoned, done.uncertain, done.stage, done.final) == (True, False, SmtpStage.DATA, None)
        assert not connection.is_reusable
        [session] = await sink.ended(1)
        assert sink.received == []
        assert session.unfinished == [b""]


async def test_the_fence_of_a_large_mail_is_asked_after_the_body_left() -> None:
    """Architecture 2.5: not while most of the mail still waits for a slow server."""
    asked = []
    async with Sink() as sink:
        reading = asyncio.Event()
        sink.script("BODY", reading)

        def fence() -> bool:
            asked.append(reading.is_set())
            return len(asked) > 1

        connection = await opened(sink)
        task = asyncio.create_task(sent(connection, content=LARGE, before_final_dot=fence))
        await sink.commands("DATA")
        reading.set()
        assert (await task).abandoned
        await sink.ended(1)
        assert sink.received == []
        assert sink.sessions[0].unfinished == [LARGE]
        again = await sent(await opened(sink), content=LARGE, before_final_dot=fence)
        assert codes(again) == [("dot", 250)]
        assert asked == [True, True]


async def test_a_large_mail_arrives_whole() -> None:
    """Flow control: block by block, dots stuffed across the blocks' borders."""
    content = b"Subject: x\r\n\r\n" + b".\r\n" * 150_000
    async with Sink() as sink:
        assert codes(await sent(await opened(sink), content=content)) == [("dot", 250)]
        assert sink.received[0].content == content


async def test_a_peer_that_stops_reading_is_given_up_after_the_block_time_out() -> None:
    """OUT-18: flow control has a time-out."""
    async with Sink() as sink:
        sink.script("DATA", ("354 go ahead", asyncio.Event()))
        connection = await opened(sink, TINY)
        done = await asyncio.wait_for(sent(connection, content=LARGE), 5)
        assert codes(done) == [("data", 421)]
        assert (done.uncertain, done.stage) == (False, SmtpStage.DATA)


async def test_a_refusal_in_the_middle_of_the_body_is_the_answer() -> None:
    """RFC 5321 4.2.5: the mail was not taken, and no dot is sent."""
    async with Sink() as sink:
        never = asyncio.Event()
        sink.script("BODY", ("552 5.3.4 too big for me", never))
        connection = await opened(sink)
        done = await sent(connection, content=LARGE)
        assert codes(done) == [("data", 552)]
        assert not done.uncertain
        assert not connection.is_reusable


@pytest.mark.parametrize("content", [CONTENT, LARGE], ids=["small", "large"])
async def test_a_yes_before_the_end_of_the_body_is_no_delivery(content: bytes) -> None:
    """OUT-18: answers before commands."""
    async with Sink() as sink:
        sink.script("DATA", (b"354 go\r\n250 2.0.0 kept\r\n", asyncio.Event()))
        connection = await opened(sink, TINY)
        done = await sent(connection, content=content)
        assert codes(done) == [("data", 421)]
        assert not connection.is_reusable


async def test_a_reused_connection_that_died_is_stale_and_nothing_was_offered() -> None:
    """OUT-13: a fresh connection may be tried at once."""
    async with Sink() as sink:
        connection = await opened(sink)
        await sent(connection)
        sink.script("MAIL", ("421 4.4.2 idle too long", CLOSE))
        again = await sent(connection)
        assert (again.stale, again.offered) == (True, False)
        assert codes(again) == [("mail", 421)]


async def test_an_idle_connection_that_the_server_closed_is_not_reusable() -> None:
    """OUT-13."""
    async with Sink() as sink:
        connection = await opened(sink)
        hang_up = asyncio.Event()
        sink.script("DOT", (USUAL, hang_up, "421 4.4.2 idle too long", CLOSE))
        await sent(connection)
        hang_up.set()
        await sink.ended(1)
        while connection.is_reusable:
            await asyncio.sleep(0)
        again = await sent(connection)
        assert (again.stale, again.offered) == (True, False)
        assert not await connection.reset()


async def test_out_17_a_mail_over_the_announced_size_is_refused_before_mail() -> None:
    """OUT-17: 5.3.4, and the connection goes on."""
    async with Sink(extensions=("PIPELINING", f"SIZE {len(CONTENT)}")) as sink:
        connection = await opened(sink)
        done = await sent(connection, content=CONTENT + b"x\r\n")
        assert codes(done) == [("mail", 552)]
        assert done.answers[0].reply.enhanced == "5.3.4"
        assert done.answers[0].reply.ours
        assert done.offered
        assert sink.sessions[0].verbs == ["EHLO"]
        assert codes(await sent(connection)) == [("dot", 250)]


async def test_out_17_8bit_and_utf8_are_named_only_when_needed() -> None:
    """OUT-17."""
    async with Sink() as sink:
        connection = await opened(sink)
        await sent(connection, content="Subject: x\r\n\r\nFähre\r\n".encode())
        await sent(connection, "zoë@example.test")
        await sent(connection, smtputf8=True)
        parameters = [mail.mail_parameters[1:] for mail in sink.received]
        assert parameters == [["BODY=8BITMIME"], ["SMTPUTF8"], ["SMTPUTF8"]]
        assert sink.received[1].recipients == ["zoë@example.test"]


async def test_out_17_what_a_server_does_not_offer_is_not_asked_of_it() -> None:
    """OUT-17, MSG-08, MSG-11: 5.6.3 and 5.6.7 without a command."""
    async with Sink(extensions=("PIPELINING",)) as sink:
        connection = await opened(sink)
        eight = await sent(connection, content="Subject: x\r\n\r\nFähre\r\n".encode())
        assert [a.reply.enhanced for a in eight.answers] == ["5.6.3"]
        header = await sent(connection, smtputf8=True)
        assert [a.reply.enhanced for a in header.answers] == ["5.6.7"]
        assert sink.sessions[0].verbs == ["EHLO"]
        mixed = await sent(connection, "zoë@example.test", "ann@example.test")
        assert codes(mixed) == [("rcpt", 553), ("dot", 250)]
        assert sink.received[0].recipients == ["ann@example.test"]
        assert sink.received[0].mail_parameters == []


@pytest.mark.parametrize(
    "content",
    [
        b"Subject: x\n\r\nbody\r\n",
        b"Subject: x\r\n\rbody\r\n",
        b"Subject: x\r\n\r\nbo\0dy\r\n",
        b"x\r\r\n",
        b"x\n\r",
        b"x\r\n.\r\r\ny\n\r\n",
    ],
)
async def test_trap_08_content_that_is_not_clean_crlf_is_never_written(content: bytes) -> None:
    """TRAP-08."""
    async with Sink() as sink:
        connection = await opened(sink)
        with pytest.raises(ValueError, match="content"):
            await sent(connection, content=content)
        assert sink.sessions[0].verbs == ["EHLO"]
        assert connection.is_reusable


@pytest.mark.parametrize(
    "path", ["a@b.test>\r\nDATA", "a@b.test> SIZE=1", "a b@c.test", "", '"a\n"@c.test', "a\\"]
)
async def test_a_path_that_could_leave_its_command_is_never_written(path: str) -> None:
    """TRAP-08."""
    async with Sink() as sink:
        connection = await opened(sink)
        with pytest.raises(ValueError, match="recipient"):
            await sent(connection, path)
        assert sink.sessions[0].verbs == ["EHLO"]


async def test_quoted_local_parts_may_hold_what_they_like() -> None:
    """MSG-10."""
    async with Sink() as sink:
        await sent(await opened(sink), '"a> b\\""@example.test')
        assert sink.received[0].recipients == ['"a> b\\""@example.test']


async def test_cancelling_a_transfer_sends_no_dot() -> None:
    async with Sink() as sink:
        sink.script("RCPT", SILENCE)
        connection = await opened(sink)
        task = asyncio.create_task(sent(connection))
        await sink.commands("RCPT")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert connection.closed
        await sink.ended(1)
        assert sink.received == []


async def test_a_thousand_recipients_in_one_transaction() -> None:
    """OUT-07, OUT-14."""
    async with Sink() as sink:
        people = [f"person{i}@example.test" for i in range(1000)]
        done = await sent(await opened(sink), *people)
        assert codes(done) == [("dot", 250)] * 1000
        assert sink.received[0].recipients == people


async def test_quit_waits_a_moment_only() -> None:
    async with Sink() as sink:
        sink.script("QUIT", SILENCE)
        connection = await opened(sink, TINY)
        await asyncio.wait_for(connection.quit(), 2)
        await sink.ended(1)
        assert connection.closed


@given(st.lists(st.sampled_from([b".", b"..", b"", b"a", b".a", b"\r\n", b"a."]), max_size=30))
def test_smtp_02_stuffing_and_unstuffing_give_the_same_lines(parts: list[bytes]) -> None:
    """SMTP-02."""
    content = b"\r\n".join(b"".join(parts).split(b"\r\n"))
    stuffed = dot_stuffed(content)
    lines = stuffed.split(b"\r\n")
    assert lines.pop() == b""
    assert b"." not in lines
    plain = b"".join((line[1:] if line.startswith(b".") else line) + b"\r\n" for line in lines)
    assert plain == content + (b"" if content.endswith(b"\r\n") or not content else b"\r\n")


@settings(max_examples=25, deadline=None)
@given(
    st.binary(max_size=200).map(
        lambda raw: raw.replace(b"\r", b"").replace(b"\n", b"\r\n.").replace(b"\0", b"")
    )
)
def test_smtp_02_any_clean_content_arrives_as_it_is(content: bytes) -> None:
    """SMTP-02, through sockets."""

    async def go() -> None:
        async with Sink() as sink:
            await sent(await opened(sink), content=content)
            ending = b"" if content.endswith(b"\r\n") or not content else b"\r\n"
            assert sink.received[0].content == content + ending

    asyncio.run(go())
