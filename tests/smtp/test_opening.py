"""Opening a session: banner, EHLO, STARTTLS, AUTH (OUT-05, OUT-06, TLS-01, TLS-02, TLS-06)."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from kit.smtp_sink import CLOSE, DROP, SILENCE, Sink, TlsAuthority
from pillarbox.mail.smtp.client import ConnectFailed, SmtpConnection, SmtpStage, Timeouts, TlsMode

TINY = Timeouts(
    connect=0.1, banner=0.1, hello=0.1, mail=0.1, rcpt=0.1, data=0.1, block=0.1, final=0.1, quit=0.1
)
CONTENT = b"Subject: x\r\n\r\nbody\r\n"


async def opened(sink: Sink, **options: Any) -> SmtpConnection:
    connection = await try_open(sink, **options)
    assert isinstance(connection, SmtpConnection), connection
    return connection


async def failed(sink: Sink, **options: Any) -> ConnectFailed:
    failure = await try_open(sink, **options)
    assert isinstance(failure, ConnectFailed)
    return failure


async def try_open(sink: Sink, **options: Any) -> SmtpConnection | ConnectFailed:
    options = {"server_name": "mx.sink.test", "hello": "out.harbor.test", "tls": TlsMode.NONE, **options}
    return await SmtpConnection.open(sink.address, **options)


async def test_out_05_the_extensions_of_a_multi_line_ehlo_are_known() -> None:
    """OUT-05."""
    async with Sink() as sink:
        sink.script("EHLO", "250 mx.sink.test\n250 size 1000\n250 PIPELINING\n250 AUTH=LOGIN\n250 AUTH PLAIN")
        connection = await opened(sink)
        assert connection.extensions.size_limit == 1000
        assert "PIPELINING" in connection.extensions
        assert connection.extensions.login_mechanisms == {"LOGIN", "PLAIN"}
        assert sink.sessions[0].hello == "out.harbor.test"
        await connection.quit()
        [session] = await sink.ended(1)
        assert session.verbs == ["EHLO", "QUIT"]


@pytest.mark.parametrize("words", ["SIZE", "SIZE 0", "SIZE many", "SIZE ١٢", "SIZE " + "9" * 30])
async def test_out_17_a_size_that_names_no_limit_is_no_limit(words: str) -> None:
    """OUT-17, RFC 1870 4."""
    async with Sink(extensions=(words,)) as sink:
        connection = await opened(sink)
        assert connection.extensions.size_limit is None
        connection.abort()


async def test_out_05_a_server_without_ehlo_is_greeted_with_helo() -> None:
    """OUT-05."""
    async with Sink() as sink:
        sink.script("EHLO", "502 5.5.1 what?")
        connection = await opened(sink)
        assert connection.extensions.keywords == {}
        sent = await connection.send("a@harbor.test", ["ann@example.test"], CONTENT)
        assert sent.final is not None
        assert sink.sessions[0].verbs == ["EHLO", "HELO", "MAIL", "RCPT", "DATA"]
        assert sink.sessions[0].commands[2] == "MAIL FROM:<a@harbor.test>"
        connection.abort()


async def test_out_06_a_server_that_refuses_ehlo_and_hangs_up_keeps_its_reason() -> None:
    """OUT-06."""
    async with Sink() as sink:
        sink.script("EHLO", ("550 5.7.1 your host is not welcome", CLOSE))
        failure = await failed(sink)
        assert failure.stage is SmtpStage.HELLO
        assert str(failure.reply) == "550 5.7.1 your host is not welcome"


@pytest.mark.parametrize("banner", ["554 5.7.1 go away", "521 no mail here", "421 4.3.2 too busy"])
async def test_out_06_a_refusing_banner_is_the_failure_of_one_host(banner: str) -> None:
    """OUT-06: nothing was offered to it."""
    async with Sink() as sink:
        sink.script("CONNECT", banner)
        failure = await failed(sink)
        assert failure.stage is SmtpStage.BANNER
        assert str(failure.reply) == banner
        assert failure.host == "mx.sink.test"
        [session] = await sink.ended(1)
        assert "MAIL" not in session.verbs


async def test_a_refused_connection_is_a_value() -> None:
    async with Sink() as sink:
        address = sink.address
    failure = await SmtpConnection.open(address, server_name="gone.test", hello="out.harbor.test")
    assert isinstance(failure, ConnectFailed)
    assert (failure.stage, failure.reply.code < 500, failure.reason) == (
        SmtpStage.CONNECT,
        True,
        "the connection was refused",
    )


async def test_a_connection_that_never_comes_is_a_value() -> None:
    async def black_hole(protocol: asyncio.Protocol, host: str, port: int) -> None:
        await asyncio.Event().wait()

    failure = await SmtpConnection.open(
        ("192.0.2.1", 25), server_name="mx.test", hello="h.test", timeouts=TINY, connect=black_hole
    )
    assert isinstance(failure, ConnectFailed)
    assert (failure.stage, failure.reply.enhanced) == (SmtpStage.CONNECT, "4.4.1")


@pytest.mark.parametrize(
    ("command", "stage"),
    [("CONNECT", SmtpStage.BANNER), ("EHLO", SmtpStage.HELLO), ("STARTTLS", SmtpStage.TLS)],
)
@pytest.mark.parametrize("how", [SILENCE, DROP, CLOSE])
async def test_silence_and_hanging_up_have_a_stage(command: str, stage: SmtpStage, how: Any) -> None:
    """OUT-06, OUT-18: time-outs per state."""
    async with Sink(tls=TlsAuthority().server) as sink:
        sink.script(command, how)
        failure = await failed(sink, timeouts=TINY, tls=TlsMode.OPPORTUNISTIC)
        assert failure.stage is stage
        assert failure.reply.code < 500
        assert failure.reply.ours
        await sink.ended(1)


async def test_cancelling_an_opening_leaves_no_connection() -> None:
    async with Sink() as sink:
        sink.script("EHLO", SILENCE)
        task = asyncio.create_task(opened(sink))
        await sink.commands("EHLO")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await sink.ended(1)


async def test_tls_01_starttls_is_used_when_offered_with_any_certificate() -> None:
    """TLS-01, TLS-06: SNI, TLS 1.2 or newer, version and cipher on record, unverified."""
    async with Sink(tls=TlsAuthority("another.name.test").server) as sink:
        connection = await opened(sink, tls=TlsMode.OPPORTUNISTIC, server_name="mx.sink.test.")
        await connection.send("a@harbor.test", ["ann@example.test"], CONTENT)
        [session] = sink.sessions
        assert session.is_encrypted
        assert session.server_name == "mx.sink.test"
        assert session.verbs[:4] == ["EHLO", "STARTTLS", "EHLO", "MAIL"]
        assert connection.tls is not None
        assert connection.tls.version in ("TLSv1.2", "TLSv1.3")
        assert connection.tls.cipher
        assert not connection.tls.verified
        assert "STARTTLS" not in connection.extensions
        await connection.quit()


async def test_tls_01_opportunistic_falls_back_to_clear_where_tls_is_not_offered_or_refused() -> None:
    """TLS-01."""
    async with Sink() as sink:
        assert (await opened(sink, tls=TlsMode.OPPORTUNISTIC)).tls is None
    async with Sink(tls=TlsAuthority().server) as sink:
        sink.script("STARTTLS", "454 4.7.0 TLS not available")
        connection = await opened(sink, tls=TlsMode.OPPORTUNISTIC)
        assert connection.tls is None
        assert (await connection.send("a@harbor.test", ["ann@example.test"], CONTENT)).final


async def test_tls_01_a_broken_handshake_fails_the_stage_and_a_clear_session_still_works() -> None:
    """TLS-01: the caller comes again in clear on a new connection."""
    async with Sink(tls=TlsAuthority().server) as sink:
        sink.script("STARTTLS", b"220 go\r\n\x15\x03\x01\x00\x02\x02\x28")
        failure = await failed(sink, tls=TlsMode.OPPORTUNISTIC)
        assert (failure.stage, failure.reply.code < 500) == (SmtpStage.TLS, True)
        connection = await opened(sink, tls=TlsMode.NONE)
        assert (await connection.send("a@harbor.test", ["ann@example.test"], CONTENT)).final
        assert sink.received[0].session.is_encrypted is False


@pytest.mark.parametrize("mode", [TlsMode.REQUIRED, TlsMode.VERIFIED])
async def test_tls_02_a_server_without_starttls_sees_no_mail(mode: TlsMode) -> None:
    """TLS-02: not even MAIL; a temporary failure 4.7.x."""
    async with Sink() as sink:
        failure = await failed(sink, tls=mode)
        assert (failure.stage, failure.reply.enhanced, failure.reply.code < 500) == (
            SmtpStage.TLS,
            "4.7.10",
            True,
        )
        [session] = await sink.ended(1)
        assert session.verbs == ["EHLO", "QUIT"]


async def test_tls_02_required_tls_that_is_refused_is_a_failure() -> None:
    """TLS-02."""
    async with Sink(tls=TlsAuthority().server) as sink:
        sink.script("STARTTLS", "454 4.7.0 TLS not available")
        assert (await failed(sink, tls=TlsMode.REQUIRED)).stage is SmtpStage.TLS
        connection = await opened(sink, tls=TlsMode.REQUIRED)
        assert connection.tls is not None
        connection.abort()


async def test_verified_tls_checks_authority_and_name() -> None:
    """TLS-02."""
    authority = TlsAuthority("mx.sink.test")
    async with Sink(tls=authority.server) as sink:
        connection = await opened(sink, tls=TlsMode.VERIFIED, trust=authority.trust())
        assert connection.tls is not None
        assert connection.tls.verified
        connection.abort()
        wrong_name = await failed(
            sink, tls=TlsMode.VERIFIED, trust=authority.trust(), server_name="b.sink.test"
        )
        assert wrong_name.stage is SmtpStage.TLS
        assert "certificate" in wrong_name.reason
        unknown_authority = await failed(sink, tls=TlsMode.VERIFIED, trust=TlsAuthority().trust())
        assert unknown_authority.reply.enhanced == "4.7.5"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_06_old_tls_is_refused() -> None:
    """TLS-06: by us, not by the server, who would have been content with it."""
    server = TlsAuthority().server
    server.minimum_version = ssl.TLSVersion.TLSv1
    server.maximum_version = ssl.TLSVersion.TLSv1_1
    server.set_ciphers("DEFAULT:@SECLEVEL=0")
    lax = ssl.create_default_context()
    lax.check_hostname, lax.verify_mode = False, ssl.CERT_NONE
    lax.minimum_version = ssl.TLSVersion.TLSv1
    lax.set_ciphers("DEFAULT:@SECLEVEL=0")
    async with Sink(tls=server, implicit_tls=True) as sink:
        _, writer = await asyncio.open_connection(*sink.address, ssl=lax)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.1"
        writer.close()
    async with Sink(tls=server) as sink:
        assert (await failed(sink, tls=TlsMode.REQUIRED)).stage is SmtpStage.TLS


@pytest.mark.parametrize("extra", [b"250 STARTTLS done, trust me\r\n", b"250-half a li"])
async def test_answers_injected_before_the_handshake_end_the_session(extra: bytes) -> None:
    """RFC 3207 6: what came in clear never counts as an answer of the encrypted session."""
    async with Sink(tls=TlsAuthority().server) as sink:
        sink.script("STARTTLS", b"220 go ahead\r\n" + extra)
        failure = await failed(sink, tls=TlsMode.OPPORTUNISTIC)
        assert failure.stage is SmtpStage.TLS
        assert "before the handshake" in failure.reason or "nothing" in failure.reason
        [session] = await sink.ended(1)
        assert session.verbs == ["EHLO", "STARTTLS"]


async def test_a_second_answer_to_ehlo_is_not_taken_for_the_next() -> None:
    """OUT-18: answers before commands."""
    async with Sink() as sink:
        sink.script("EHLO", b"250 mx\r\n250 ok\r\n")
        connection = await try_open(sink)
        if isinstance(connection, SmtpConnection):
            sent = await connection.send("a@harbor.test", ["ann@example.test"], CONTENT)
            assert sent.stale
            assert not sent.offered
        assert sink.received == []


async def test_implicit_tls_is_verified_before_anything_is_said() -> None:
    """RFC 8314."""
    authority = TlsAuthority("mx.sink.test")
    async with Sink(tls=authority.server, implicit_tls=True) as sink:
        connection = await opened(sink, tls=TlsMode.IMPLICIT, trust=authority.trust())
        assert connection.tls is not None
        assert connection.tls.verified
        assert (await connection.send("a@harbor.test", ["ann@example.test"], CONTENT)).final
        await connection.quit()
        assert (await failed(sink, tls=TlsMode.IMPLICIT)).stage is SmtpStage.TLS


@pytest.mark.parametrize("ways", [("AUTH PLAIN LOGIN",), ("AUTH LOGIN",), ("AUTH=LOGIN",)])
async def test_a_relay_login(ways: tuple[str, ...]) -> None:
    """RFC 4954: PLAIN before LOGIN."""
    async with Sink(tls=TlsAuthority().server, users=None, extensions=ways) as sink:
        sink._users = {"ship": "sécret"}
        sink.script(
            "EHLO", then=lambda s, a: "\n".join(["250 mx", *(f"250 {w}" for w in ways), "250 STARTTLS"])
        )
        connection = await opened(sink, tls=TlsMode.REQUIRED, login=("ship", "sécret"))
        assert sink.sessions[0].login == ("ship", "sécret")
        connection.abort()
        failure = await failed(sink, tls=TlsMode.REQUIRED, login=("ship", "wrong"))
        assert (failure.stage, failure.reply.code) == (SmtpStage.AUTH, 535)
        assert "wrong" not in failure.reason.replace("wrong name or password", "")


async def test_a_relay_without_a_known_way_to_log_in() -> None:
    async with Sink(extensions=("AUTH GSSAPI",)) as sink:
        failure = await failed(sink, login=("ship", "secret"))
        assert (failure.stage, failure.reply.code < 500) == (SmtpStage.AUTH, True)


async def test_a_password_is_not_sent_in_clear_over_the_network() -> None:
    async with Sink(users={"ship": "secret"}) as sink:

        async def there(protocol: asyncio.Protocol, host: str, port: int) -> None:
            await asyncio.get_running_loop().create_connection(lambda: protocol, *sink.address)

        failure = await SmtpConnection.open(
            ("198.51.100.7", 587),
            server_name="relay.test",
            hello="out.harbor.test",
            login=("ship", "secret"),
            connect=there,
        )
        assert isinstance(failure, ConnectFailed)
        assert (failure.stage, failure.reply.enhanced) == (SmtpStage.AUTH, "4.7.11")
        [session] = await sink.ended(1)
        assert session.verbs == ["EHLO", "QUIT"]


async def test_a_hello_name_that_could_end_its_line_is_refused() -> None:
    async with Sink() as sink:
        with pytest.raises(ValueError, match="EHLO"):
            await try_open(sink, hello="x\r\nMAIL FROM:<a@b.test>")
        assert sink.sessions == []
