"""Programs that others use talk to a real server through its listeners (SMTP-09, 12, 18, 22)."""

from __future__ import annotations

import json
import shutil
import smtplib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.peers import RECEIVING, SENDER, Peered, peered, submitted
from kit.process import KEY, environment
from kit.submission import message_bytes
from repository.running import Watched


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, databases: Any) -> Iterator[Peered]:
    """Everything by default but ports and database: the route is `capture`, the certificate self-made.

    One domain receives; nobody looks for its MX record.
    """
    url = databases.fresh()
    settings = {"processes": "1", "inbound_require_dns": "false"}
    with peered(tmp_path_factory.mktemp("peers") / "data", url, **settings) as found:
        found.api("/domains", {"name": RECEIVING, "capabilities": {"receiving": "enabled"}})
        yield found
    databases.drop(url)


def test_smtplib_with_starttls(server: Peered) -> None:
    with smtplib.SMTP("127.0.0.1", server.ports["submission"], timeout=30) as client:
        client.starttls(context=server.trust)
        client.login("resend", KEY)
        client.sendmail(SENDER, ["ada@quay.example"], message_bytes(subject="by smtplib"))
    assert server.email("by smtplib")["to"] == ["ada@quay.example"]


def test_smtplib_with_implicit_tls(server: Peered) -> None:
    listener = server.ports["submissions"]
    with smtplib.SMTP_SSL("127.0.0.1", listener, timeout=30, context=server.trust) as client:
        client.login("pillarbox", KEY)
        client.sendmail(SENDER, ["ada@quay.example", "blind@quay.example"], message_bytes(subject="by SMTPS"))
    assert server.email("by SMTPS")["bcc"] == ["blind@quay.example"]


@pytest.mark.parametrize(
    ("listener", "options"),
    [
        ("submission", ["--tls", "--auth", "PLAIN"]),
        ("submission", ["--tls", "--auth", "LOGIN"]),
        ("submissions", ["--tls-on-connect", "--auth", "PLAIN"]),
        ("smtp", ["--tls", "--auth", "PLAIN"]),
    ],
)
def test_swaks(server: Peered, listener: str, options: list[str]) -> None:
    """SMTP-09."""
    swaks = shutil.which("swaks")
    if swaks is None:
        pytest.skip("swaks is not installed (Debian package swaks)")
    subject = f"swaks {listener} {options[-1]}"
    done = subprocess.run(
        [
            swaks, "--server", f"127.0.0.1:{server.ports[listener]}", *options, "--auth-user", "resend",
            "--auth-password", KEY, "--from", SENDER, "--to", "ada@quay.example", "--helo", "program.example",
            "--header", f"Subject: {subject}", "--body", "Ready", "--hide-all", "--protocol",
            "SSMTPA" if listener == "submissions" else "ESMTPSA",
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
    at = f"127.0.0.1:{server.ports['submission']}"
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


def test_swaks_delivers_to_us(server: Peered) -> None:
    """Inbound, in the clear and with STARTTLS, a file with it."""
    swaks = shutil.which("swaks")
    if swaks is None:
        pytest.skip("swaks is not installed (Debian package swaks)")
    for protocol, options in (("ESMTP", []), ("ESMTPS", ["--tls"])):
        done = subprocess.run(
            [
                swaks, "--server", f"127.0.0.1:{server.ports['smtp']}", *options,
                "--from", "ada@quay.example", "--to", f"help@{RECEIVING}", "--helo", "program.example",
                "--body", "Ready", "--header", f"Subject: swaks by {protocol}", "--attach-type", "text/csv",
                "--attach-name", "plan.csv", "--attach", "a,b", "--hide-all",
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        found = server.received(f"swaks by {protocol}")
        assert [one["filename"] for one in found["attachments"]] == ["plan.csv"]
        assert f" with {protocol} ".encode() in found["octets"]


def test_the_note_names_the_listeners(server: Peered) -> None:
    """What `pillarbox doctor` looks at."""
    note = json.loads((server.served.data / "run" / "supervisor.json").read_text())
    assert note["listeners"] == ["http", "smtp", "submission", "submissions"]
    assert note["settings"]["smtp"] == f"127.0.0.1:{server.ports['smtp']}"


def test_the_doctor_examines_the_listeners(server: Peered) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pillarbox", "doctor", "--json", "--data", str(server.served.data)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    for name in ("smtp", "submission", "submissions"):
        assert checks[f"listener.{name}"]["level"] == "ok", checks
    assert "220 mx.pillar.example ESMTP" in checks["listener.smtp"]["found"]


# Death and the end ---------------------------------------------------------------------------------------


def test_a_submission_that_was_committed_and_not_answered_is_stored_once(
    database_url: str, tmp_path: Path
) -> None:
    """SMTP-18: SIGKILL between the commit and the 250; the client tries again with its idempotency key."""
    text = message_bytes(subject="once", Resend_Idempotency_Key="once-1")
    fault = "accept.after_commit=kill@1"
    with peered(tmp_path / "data", database_url, fault=fault, processes="1") as server:
        with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionError)):
            submitted(server, text)
        server.served.log.wait_for("worker.ready")
        assert submitted(server, text) == submitted(server, text)
        assert [found["subject"] for found in server.api("/emails")["data"]] == ["once"]


def test_a_stop_says_goodbye_and_leaves_no_port_open(database_url: str, tmp_path: Path) -> None:
    """SMTP-22: promptly, although a transaction was begun; no client waits on a listener that no process
    serves."""
    with peered(tmp_path / "data", database_url, processes="2") as server:
        family = Watched(server.served.workers())
        clients = [
            smtplib.SMTP("127.0.0.1", server.ports[name], timeout=30) for name in ("smtp", "submission")
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
                socket.create_connection(("127.0.0.1", server.ports[name]))
