"""TLS at the SMTP doors: STARTTLS, implicit TLS, certificates that change, and AUTH behind it
(SMTP-07, 08, 09, 10; TLS-06, 07)."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import stat
import warnings
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from kit.clock import ManualClock
from kit.smtp_door import Anyone, Dialog, Notebook, door, on_each_loop, trusting
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.certificates import Certificate, self_made
from pillarbox.mail.smtp.handler import SessionTimeouts

LOGIN = {"offers_login": True, "needs_login": True}
ANN = Notebook(users={"ann": "secret"})


def plain(user: str = "ann", password: str = "secret") -> str:
    return base64.b64encode(f"\0{user}\0{password}".encode()).decode()


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@on_each_loop
async def test_what_is_announced_in_each_state(tmp_path: Path) -> None:
    """SMTP-07: STARTTLS before TLS alone, AUTH behind it alone and once."""
    common = (
        "mx.pillar.example",
        "PIPELINING",
        "SIZE 1000000",
        "8BITMIME",
        "SMTPUTF8",
        "ENHANCEDSTATUSCODES",
    )
    async with door(ANN, tls=tmp_path, **LOGIN) as found, found.dialog() as client:
        assert (await client.ask("EHLO x")).lines == (*common, "STARTTLS")
        assert str(await client.ask("STARTTLS")) == "220 2.0.0"
        await client.start_tls(trusting(tmp_path))
        assert (await client.ask("EHLO x")).lines == (*common, "AUTH PLAIN LOGIN")
        assert str(await client.ask("STARTTLS")) == "502 5.5.1"
        assert str(await client.ask(f"AUTH PLAIN {plain()}")) == "235 2.7.0"
        assert (await client.ask("EHLO x")).lines == common
        assert (await client.send(b"x\r\n")).code == 250
        assert (await client.ask("QUIT")).code == 221
        await client.over()
    assert ANN.kept[-1].protocol == "ESMTPSA"


@on_each_loop
async def test_implicit_tls(tmp_path: Path) -> None:
    """SMTP-09, RFC 8314."""
    desk = Notebook()
    async with (
        door(desk, tls=tmp_path, implicit_tls=True) as found,
        found.dialog(tls=trusting(tmp_path)) as client,
    ):
        assert "STARTTLS" not in (await client.ask("EHLO x")).lines
        assert (await client.send(b"x\r\n" * 50_000)).code == 250
        assert (await client.ask("QUIT")).code == 221
        await client.over()
    assert desk.kept[0].protocol == "ESMTPS"


@on_each_loop
async def test_commands_behind_starttls_in_the_same_packet_end_the_session(tmp_path: Path) -> None:
    """SMTP-08, CVE-2021-38371."""
    desk = Notebook()
    async with door(desk, tls=tmp_path) as found, found.dialog() as client:
        client.write(b"EHLO x\r\nSTARTTLS\r\nMAIL FROM:<evil@b.example>\r\n")
        assert [str(said) for said in await client.over()] == ["250", "554 5.5.0"]


@on_each_loop
async def test_clear_text_behind_the_go_ahead_is_no_command(tmp_path: Path) -> None:
    """SMTP-08: whatever comes next is the handshake, and a bad one ends the session."""
    desk = Notebook()
    async with door(desk, tls=tmp_path) as found:
        async with found.dialog() as client:
            await client.ask("EHLO x", "STARTTLS")
            client.write(b"MAIL FROM:<evil@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nx\r\n.\r\n")
            await client.over()
            assert all(said.code in (220, 250) for said in client.heard)
        await found.empty()
    assert desk.kept == []


@on_each_loop
async def test_what_was_said_in_the_clear_is_forgotten(tmp_path: Path) -> None:
    """SMTP-08, RFC 3207 4.2."""
    desk = Notebook()
    async with door(desk, tls=tmp_path) as found, found.dialog() as client:
        await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "STARTTLS")
        await client.start_tls(trusting(tmp_path))
        assert str(await client.ask("MAIL FROM:<a@b.example>")) == "503 5.5.1"
        assert str(await client.ask("EHLO x", "DATA")) == "503 5.5.1"
    assert desk.ended_count == 1


@on_each_loop
@pytest.mark.parametrize("implicit", [False, True])
async def test_broken_handshakes_leave_nothing_behind(tmp_path: Path, implicit: bool) -> None:
    guard = Anyone()
    troubles: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: troubles.append(context))
    patience = SessionTimeouts(greeting=0.0, look_every=0.01, handshake=0.3)
    async with door(tls=tmp_path, implicit_tls=implicit, guard=guard, patience=patience) as found:
        for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x00\x05hello", None):
            async with found.dialog(greeted=not implicit) as client:
                if not implicit:
                    await client.ask("EHLO x", "STARTTLS")
                if junk is None:
                    await client.over()  # says nothing at all, until the server has had enough
                elif junk:
                    client.write(junk)
                    await client.over()
        await found.empty()
        async with asyncio.timeout(5):
            while guard.inside:
                await asyncio.sleep(0.005)
    assert guard.inside == 0
    assert troubles == []


def old(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.parametrize(
    ("version", "works"),
    [
        (ssl.TLSVersion.TLSv1, False),
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ],
)
async def test_only_tls_1_2_and_newer(tmp_path: Path, version: ssl.TLSVersion, works: bool) -> None:
    """TLS-06, SMTP-09."""
    async with door(tls=tmp_path, implicit_tls=True) as found:
        try:
            async with found.dialog(tls=old(version)) as client:
                assert (await client.ask("EHLO x")).code == 250
                negotiated = client.transport.get_extra_info("ssl_object")
                assert negotiated.compression() is None
                reached = True
        except (ssl.SSLError, ConnectionError):
            reached = False
    assert reached is works


@on_each_loop
async def test_a_certificate_that_changes_is_used_without_a_restart(tmp_path: Path) -> None:
    """TLS-07: the next handshake sees it, and sessions that run go on."""
    async with (
        door(tls=tmp_path) as door_of_starttls,
        door(tls=tmp_path, implicit_tls=True) as door_of_tls,
        door_of_tls.dialog(tls=trusting(tmp_path)) as before,
    ):
        first = serial(before)
        path = tmp_path / "tls" / "self-made.pem"
        path.unlink()
        self_made(tmp_path, "localhost", SystemClock().now())
        for found in (door_of_starttls, door_of_tls):
            assert found.certificate is not None
            assert found.certificate.refresh()
            assert not found.certificate.refresh()
        async with door_of_tls.dialog(tls=trusting(tmp_path)) as after:
            second = serial(after)
        async with door_of_starttls.dialog() as client:
            await client.ask("EHLO x", "STARTTLS")
            await client.start_tls(trusting(tmp_path))
            assert serial(client) == second != first
        assert (await before.ask("EHLO x")).code == 250


def serial(client: Dialog) -> str:
    return str(client.transport.get_extra_info("peercert")["serialNumber"])


def test_a_certificate_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    """TLS-07."""
    clock = ManualClock()
    path = self_made(tmp_path, "mx.harbor.example", clock.now())
    shown = Certificate(path, path, clock)
    context = shown.context
    path.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n")
    assert not shown.refresh()
    path.unlink()
    assert not shown.refresh()
    assert shown.context is context
    other = self_made(tmp_path / "other", "mx.harbor.example", clock.now())
    path.write_bytes(other.read_bytes())
    assert shown.refresh()
    assert shown.context is not context


def test_the_self_made_certificate(tmp_path: Path) -> None:
    """Readable by its owner alone, made once, made anew before it ends and for another name."""
    clock = ManualClock()
    path = self_made(tmp_path, "mx.harbor.example", clock.now())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    first = path.read_bytes()
    found = x509.load_pem_x509_certificate(first)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["mx.harbor.example", "localhost"]
    assert self_made(tmp_path, "mx.harbor.example", clock.now() + timedelta(days=300)).read_bytes() == first
    later = self_made(tmp_path, "mx.harbor.example", clock.now() + timedelta(days=340)).read_bytes()
    assert later != first
    assert self_made(tmp_path, "mx.other.example", clock.now() + timedelta(days=340)).read_bytes() != later
    assert [entry.name for entry in os.scandir(path.parent)] == ["self-made.pem"]


def test_an_expiring_certificate_is_logged_in_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """TLS-07: below 14 days, and once a day."""
    clock = ManualClock()
    path = self_made(tmp_path, "mx.harbor.example", clock.now())
    shown = Certificate(path, path, clock)
    for days, told in ((340, 0), (12, 1), (0, 0), (1, 1)):
        clock.advance(timedelta(days=days))
        shown.refresh()
        said = capfd.readouterr()
        assert (said.out + said.err).count("tls.certificate_expires") == told


# AUTH ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "answers"),
    [
        ([f"AUTH PLAIN {plain()}"], ["235 2.7.0"]),
        (["AUTH PLAIN", plain()], ["334", "235 2.7.0"]),
        (["auth plain", plain()], ["334", "235 2.7.0"]),
        (["AUTH LOGIN", b64("ann"), b64("secret")], ["334", "334", "235 2.7.0"]),
        ([f"AUTH LOGIN {b64('ann')}", b64("secret")], ["334", "235 2.7.0"]),
        ([f"AUTH PLAIN {plain()}", f"AUTH PLAIN {plain()}"], ["235 2.7.0", "503 5.5.1"]),
        ([f"AUTH PLAIN {plain(password='wrong')}"], ["535 5.7.8"]),
        ([f"AUTH PLAIN {plain(user='eve')}"], ["535 5.7.8"]),
        ([f"AUTH PLAIN {plain('', '')}"], ["535 5.7.8"]),
        (["AUTH LOGIN", "=", "="], ["334", "334", "535 5.7.8"]),
        (["AUTH PLAIN", "*"], ["334", "501 5.7.0"]),
        (["AUTH LOGIN", b64("ann"), "*"], ["334", "334", "501 5.7.0"]),
        (["AUTH PLAIN !!!"], ["501 5.5.2"]),
        ([f"AUTH PLAIN {b64('ann')}"], ["501 5.5.2"]),
        (["AUTH PLAIN", "A" * 12_292], ["334", "500 5.5.6"]),
        (["AUTH PLAIN", "A" * 12_288], ["334", "501 5.5.2"]),
        (["AUTH CRAM-MD5"], ["504 5.5.4"]),
        (["AUTH"], ["504 5.5.4"]),
        (["MAIL FROM:<a@b.example>"], ["530 5.7.0"]),
        (
            [f"AUTH PLAIN {plain()}", "MAIL FROM:<a@b.example>", "AUTH LOGIN"],
            ["235 2.7.0", "250 2.1.0", "503 5.5.1"],
        ),
    ],
)
async def test_auth(lines: list[str], answers: list[str]) -> None:
    """SMTP-09, SMTP-10."""
    async with door(ANN, login_needs_tls=False, **LOGIN) as found, found.dialog() as client:
        await client.ask("EHLO x")
        assert [str(await client.ask(line)) for line in lines] == answers


async def test_no_auth_and_no_mail_without_tls(tmp_path: Path) -> None:
    """SMTP-09; emails.md section 10: 530 before TLS."""
    async with door(ANN, tls=tmp_path, **LOGIN) as found, found.dialog() as client:
        await client.ask("EHLO x")
        assert str(await client.ask(f"AUTH PLAIN {plain()}")) == "530 5.7.0"
        assert str(await client.ask("MAIL FROM:<a@b.example>")) == "530 5.7.0"
        assert str(await client.ask("HELO x", "AUTH PLAIN")) == "503 5.5.1"


async def test_three_failed_logins_end_the_session() -> None:
    """SMTP-10; a canceled or broken exchange is no failed login."""
    async with door(ANN, login_needs_tls=False, **LOGIN) as found, found.dialog() as client:
        await client.ask("EHLO x")
        await client.ask("AUTH PLAIN", "*")
        answers = [str(await client.ask(f"AUTH PLAIN {plain(password='wrong')}")) for _ in range(3)]
        assert answers == ["535 5.7.8"] * 3
        assert await client.over() == []
