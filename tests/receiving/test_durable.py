"""A process dies around the commit: a 250 is kept, and what comes again is stored once (SMTP-18, INB-08)."""

from __future__ import annotations

import smtplib
import time
from pathlib import Path

import httpx
import pytest

from kit.process import KEY, PATIENCE, Served, served

TO = "postmaster@mx.pillar.example"
SETTINGS = {"smtp": "127.0.0.1:0", "processes": "1", "smtp_client_rate": "off"}

RAW = b"Subject: Lost words\r\nMessage-ID: <1@quay.example>\r\n\r\n%s\r\n"
"""No author and no sender: nothing about it is asked of DNS."""


def listeners(running: Served) -> tuple[str, int]:
    """The API's base URL, and the port for mail."""
    line = next(line for line in running.out.all if line.startswith("ready"))
    found = dict(part.split("=") for part in line.split()[1:])
    return f"http://{found['http']}", int(found["smtp"].rpartition(":")[2])


def bring(port: int, raw: bytes) -> str:
    """One session as a mail server holds it: the answer to the text."""
    with smtplib.SMTP("127.0.0.1", port, "[127.0.0.1]", timeout=PATIENCE) as client:
        client.ehlo()
        assert client.mail("")[0] == 250
        assert client.rcpt(TO)[0] == 250
        code, text = client.data(raw)
        return f"{code} {text.decode()}"


def bring_until_taken(port: int, raw: bytes) -> str:
    """The same again and again, as a queue does, until it is a yes."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            answer = bring(port, raw)
        except (OSError, smtplib.SMTPException):
            answer = "gone"
        if answer.startswith("250"):
            return answer
        assert time.monotonic() < end, answer
        time.sleep(0.05)


def subjects(url: str) -> list[str]:
    headers = {"authorization": f"Bearer {KEY}", "user-agent": "test"}
    listed = httpx.get(f"{url}/emails/receiving", headers=headers, trust_env=False).json()
    return [item["subject"] for item in listed["data"]]


@pytest.mark.parametrize(
    ("fault", "second", "octets"),
    [
        ("receive.before_commit=kill", "250 2.0.0 Ok, stored as", 100),
        ("receive.after_commit=kill", "250 2.0.0 Ok, it was stored before", 400_000),
    ],
)
def test_a_message_whose_250_was_lost_is_stored_once(
    tmp_path: Path, fault: str, second: str, octets: int
) -> None:
    raw = RAW % b"\r\n".join([b"x" * 70] * (octets // 72 + 1))
    with served(tmp_path, fault=fault, **SETTINGS) as running:
        url, port = listeners(running)
        with pytest.raises((OSError, smtplib.SMTPException)):
            bring(port, raw)
        assert bring_until_taken(port, raw).startswith(second)
        assert bring(port, raw) == "250 2.0.0 Ok, it was stored before"
        assert subjects(url) == ["Lost words"]
