"""Programs that others use, and Postfix, talk to a real server through its doors (SMTP-09, 12, 18, 22)."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import pwd
import re
import shutil
import smtplib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from house.running import Watched
from kit.process import KEY, PATIENCE, Served, environment
from kit.sink import Sink
from kit.submitting import letter

SENDER = "notes@harbor.example"


@dataclass(frozen=True)
class Peered:
    """A server, and where its doors are."""

    served: Served
    doors: dict[str, int]

    def api(self, path: str, port: int | None = None) -> Any:
        """What the API answers."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.doors["http"], timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
        with contextlib.closing(connection.getresponse()) as answer:
            return json.loads(answer.read())

    def email(self, subject: str) -> dict[str, Any]:
        """The email with that subject, once it is delivered."""
        return eventually(
            lambda: next(
                (
                    found
                    for found in self.api("/emails?limit=100")["data"]
                    if found["subject"] == subject and found["last_event"] == "delivered"
                ),
                None,
            ),
            subject,
        )

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.served.data / "tls" / "self-made.pem"))
        context.check_hostname = False
        return context


def eventually(claim: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := claim()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


def doors_of(served: Served) -> dict[str, int]:
    """The ports of the ready line."""
    said = dict(part.split("=", 1) for part in served.out.wait_for("ready").split()[1:])
    plain, tls = said["submission"].split(",")
    assert tls.startswith("tls://")
    found = {"http": said["http"], "smtp": said["smtp"], "submission": plain, "submissions": tls}
    return {name: int(at.rpartition(":")[2]) for name, at in found.items()}


DOORS = {"smtp": "127.0.0.1:0", "submission": "127.0.0.1:0,tls://127.0.0.1:0", "smtp_client_rate": "off"}


@contextlib.contextmanager
def peered(data: Path, url: str, *, fault: str = "", **settings: str) -> Iterator[Peered]:
    served = Served(data, {"database_url": url, **DOORS, **settings}, fault)
    try:
        yield Peered(served, doors_of(served))
    finally:
        served.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, databases: Any) -> Iterator[Peered]:
    """Everything by default but ports and database: the route is `capture`, the certificate self-made."""
    url = databases.fresh()
    with peered(tmp_path_factory.mktemp("peers") / "data", url, processes="1") as found:
        yield found
    databases.drop(url)


def test_smtplib_with_starttls(server: Peered) -> None:
    with smtplib.SMTP("127.0.0.1", server.doors["submission"], timeout=30) as client:
        client.starttls(context=server.trust)
        client.login("resend", KEY)
        client.sendmail(SENDER, ["ada@quay.example"], letter(subject="by smtplib"))
    assert server.email("by smtplib")["to"] == ["ada@quay.example"]


def test_smtplib_with_implicit_tls(server: Peered) -> None:
    door = server.doors["submissions"]
    with smtplib.SMTP_SSL("127.0.0.1", door, timeout=30, context=server.trust) as client:
        client.login("pillarbox", KEY)
        client.sendmail(SENDER, ["ada@quay.example", "blind@quay.example"], letter(subject="by SMTPS"))
    assert server.email("by SMTPS")["bcc"] == ["blind@quay.example"]


@pytest.mark.parametrize(
    ("door", "options"),
    [
        ("submission", ["--tls", "--auth", "PLAIN"]),
        ("submission", ["--tls", "--auth", "LOGIN"]),
        ("submissions", ["--tls-on-connect", "--auth", "PLAIN"]),
        ("smtp", ["--tls", "--auth", "PLAIN"]),
    ],
)
def test_swaks(server: Peered, door: str, options: list[str]) -> None:
    """SMTP-09."""
    swaks = shutil.which("swaks")
    if swaks is None:
        pytest.skip("swaks is not installed (Debian package swaks)")
    subject = f"swaks {door} {options[-1]}"
    done = subprocess.run(
        [
            swaks, "--server", f"127.0.0.1:{server.doors[door]}", *options, "--auth-user", "resend",
            "--auth-password", KEY, "--from", SENDER, "--to", "ada@quay.example", "--helo", "program.example",
            "--header", f"Subject: {subject}", "--body", "Ready", "--hide-all", "--protocol",
            "SSMTPA" if door == "submissions" else "ESMTPSA",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.email(subject)["from"] == SENDER


def test_swaks_is_refused_in_the_clear(server: Peered) -> None:
    """SMTP-09: without TLS no AUTH is offered, and no mail is taken."""
    swaks = shutil.which("swaks")
    if swaks is None:
        pytest.skip("swaks is not installed (Debian package swaks)")
    at = f"127.0.0.1:{server.doors['submission']}"
    command = [
        swaks,
        "--server",
        at,
        "--from",
        SENDER,
        "--to",
        "ada@quay.example",
        "--helo",
        "program.example",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "530 5.7.0 Issue a STARTTLS command first" in done.stdout


def test_the_note_names_the_doors(server: Peered) -> None:
    """What `pillarbox doctor` looks at."""
    note = json.loads((server.served.data / "run" / "supervisor.json").read_text())
    assert note["doors"] == ["http", "smtp", "submission", "submissions"]
    assert note["settings"]["smtp"] == f"127.0.0.1:{server.doors['smtp']}"


def test_the_doctor_examines_the_doors(server: Peered) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pillarbox", "doctor", "--json", "--data", str(server.served.data)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    for name in ("smtp", "submission", "submissions"):
        assert checks[f"door.{name}"]["level"] == "ok", checks
    assert "220 mx.pillar.example ESMTP" in checks["door.smtp"]["found"]


# Death and the end ---------------------------------------------------------------------------------------


def test_a_submission_that_was_committed_and_not_answered_is_stored_once(
    database_url: str, tmp_path: Path
) -> None:
    """SMTP-18: SIGKILL between the commit and the 250; the client tries again with its idempotency key."""
    text = letter(subject="once", Resend_Idempotency_Key="once-1")
    fault = "accept.after_commit=kill@1"
    with peered(tmp_path / "data", database_url, fault=fault, processes="1") as server:
        with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionError)):
            submitted(server, text)
        server.served.log.wait_for("worker.ready", count=2)
        assert submitted(server, text) == submitted(server, text)
        assert [found["subject"] for found in server.api("/emails")["data"]] == ["once"]


def submitted(server: Peered, text: bytes) -> str:
    """The id of a mail that was accepted."""
    with smtplib.SMTP("127.0.0.1", server.doors["submission"], timeout=30) as client:
        client.starttls(context=server.trust)
        client.login("resend", KEY)
        for line in (f"MAIL FROM:<{SENDER}>", "RCPT TO:<ada@quay.example>"):
            assert client.docmd(line)[0] == 250
        code, said = client.data(text)
        assert code == 250
        return said.decode().rpartition(" ")[2]


def test_a_stop_says_goodbye_and_leaves_no_port_open(database_url: str, tmp_path: Path) -> None:
    """SMTP-22: promptly, although a transaction was begun; nobody waits at a door that nobody serves."""
    with peered(tmp_path / "data", database_url, processes="2") as server:
        family = Watched(server.served.workers())
        clients = [
            smtplib.SMTP("127.0.0.1", server.doors[name], timeout=30) for name in ("smtp", "submission")
        ]
        for client in clients:
            assert client.ehlo()[0] == 250
        clients[0].docmd("MAIL FROM:<a@b.example>")
        began = time.monotonic()
        assert server.served.stop() == 0
        assert time.monotonic() - began < 8
        assert [client.docmd("NOOP")[0] for client in clients] == [421, 421]
        assert family.all_ended()
        for name in ("smtp", "submission", "submissions"):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.doors[name]))


# Postfix -------------------------------------------------------------------------------------------------

MASTER = """\
127.0.0.1:{port} inet n - n - - smtpd
cleanup   unix  n - n -   0 cleanup
qmgr      unix  n - n 300 1 qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n -   - trivial-rewrite
bounce    unix  - - n -   0 bounce
defer     unix  - - n -   0 bounce
trace     unix  - - n -   0 bounce
proxymap  unix  - - n -   - proxymap
smtp      unix  - - n -   - smtp
relay     unix  - - n -   - smtp
error     unix  - - n -   - error
retry     unix  - - n -   - error
anvil     unix  - - n -   1 anvil
scache    unix  - - n -   1 scache
postlog   unix-dgram n - n - 1 postlogd
"""

MAIN = """\
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/state
command_directory = /usr/sbin
daemon_directory = {daemons}
mail_owner = postfix
setgid_group = postdrop
myhostname = mta.quay.example
mydestination =
local_recipient_maps =
alias_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtpd_recipient_restrictions = permit_mynetworks, reject
smtpd_tls_security_level = none
relayhost = [127.0.0.1]:{relay}
smtp_tls_security_level = {level}
smtp_sasl_auth_enable = {login}
smtp_sasl_password_maps = static:resend:{key}
smtp_sasl_security_options = noanonymous
maillog_file_prefixes = {folder}
maillog_file = {folder}/maillog
"""


@dataclass(frozen=True)
class Postfix:
    """A running instance."""

    port: int
    folder: Path

    @property
    def log(self) -> str:
        path = self.folder / "maillog"
        return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def postfix(relay: int, *, login: bool) -> Iterator[Postfix]:
    """Postfix in a folder of its own, relaying to a port of ours. Skips where it cannot run."""
    program = shutil.which("postfix", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("Postfix is not installed (Debian package postfix)")
    if os.geteuid() != 0:
        pytest.skip("Postfix can only be started by root")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="pillarbox-postfix-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # its daemons are not root
        configure(folder, port, relay, str(Path(program).with_name("postconf")), login=login)
        command = [program, "-c", str(folder / "etc")]
        made = Postfix(port, folder)
        started = subprocess.run([*command, "start"], capture_output=True, text=True, timeout=60)
        if started.returncode:
            pytest.skip(f"Postfix does not start: {(started.stderr + made.log).strip()[-300:]}")
        try:
            eventually(lambda: listens(port), "Postfix listens")
            yield made
        finally:
            subprocess.run([*command, "stop"], capture_output=True, timeout=120)


def configure(folder: Path, port: int, relay: int, postconf: str, *, login: bool) -> None:
    for name, owner in (("queue", "root"), ("state", "postfix"), ("etc", "root")):
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, pwd.getpwnam(owner).pw_uid, 0)
    daemons = subprocess.run(
        [postconf, "-d", "-h", "daemon_directory"], capture_output=True, text=True
    ).stdout
    settings = {"level": "encrypt" if login else "may", "login": "yes" if login else "no"}
    filled = MAIN.format(folder=folder, daemons=daemons.strip(), relay=relay, key=KEY, **settings)
    (folder / "etc" / "main.cf").write_text(filled)
    (folder / "etc" / "master.cf").write_text(MASTER.format(port=port))
    if Path("/etc/postfix/dynamicmaps.cf").exists():
        shutil.copy("/etc/postfix/dynamicmaps.cf", folder / "etc")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_postfix_submits_through_us(server: Peered) -> None:
    """A smarthost with AUTH and STARTTLS: five mails on its own connections, each id in its log."""
    with postfix(server.doors["submission"], login=True) as peer:
        with smtplib.SMTP("127.0.0.1", peer.port, timeout=30) as client:
            for number in range(5):
                client.sendmail(SENDER, ["ada@quay.example"], letter(subject=f"postfix {number}"))
        eventually(lambda: peer.log.count("status=sent") == 5, "five in the log")
        said = re.findall(r"status=sent \(250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})\)", peer.log)
        assert sorted(said) == sorted(server.email(f"postfix {number}")["id"] for number in range(5))


async def test_postfix_receives_from_us(database_url: str, tmp_path: Path) -> None:
    """The route `relay` to Postfix, which hands the mail on to a server of the test."""
    async with Sink() as sink:

        def through() -> None:
            with postfix(sink.port, login=False) as peer:
                route = f"relay:smtp://127.0.0.1:{peer.port}"
                with peered(tmp_path / "data", database_url, processes="1", route=route) as server:
                    submitted(server, letter(subject="onwards", html="<p>Gr\u00fc\u00dfe</p>"))
                    assert server.email("onwards")["last_event"] == "delivered"
                    eventually(lambda: sink.received, "the mail behind Postfix")

        await asyncio.to_thread(through)
        [mail] = sink.received
        assert mail.recipients == ["ada@quay.example"]
        assert b"Subject: onwards" in mail.content
        assert b"by mta.quay.example (Postfix)" in mail.content
