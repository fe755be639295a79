"""A process dies around the commit: a 250 is kept, and what comes again is stored once (SMTP-18, INB-08)."""

from __future__ import annotations

import asyncio
import smtplib
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.process import KEY, PATIENCE, Served, connected, reconciled, served

TO = "postmaster@mx.pillar.example"
HEADERS = {"authorization": f"Bearer {KEY}", "user-agent": "test"}
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
    listed = httpx.get(f"{url}/emails/receiving", headers=HEADERS, trust_env=False).json()
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


INBOX = """
    WITH made AS (
        INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
        SELECT team_id, gen_random_uuid(), $1, $1, id, now(), now() FROM domains
        RETURNING team_id, id
    )
    INSERT INTO directory_inboxes (address, team_id, inbox_id, is_forwarded)
    SELECT $1, team_id, id, false FROM made
"""

THREADS = """
    SELECT t.messages, m.subject, m.id = r.id AND m.inbox_id = ANY (r.inboxes) AS is_kept
      FROM inboxes i
      JOIN inbox_threads t ON t.inbox_id = i.id
      JOIN inbox_messages m ON m.thread_id = t.id
      JOIN received_emails r ON r.team_id = m.team_id
"""


async def carried_out(url: str, query: str, *given: Any) -> list[dict[str, Any]]:
    async with connected(url) as conn:
        return [dict(row) for row in await conn.fetch(query, *given)]


@pytest.mark.parametrize(
    ("fault", "second"),
    [
        ("receive.before_commit=kill@2", "250 2.0.0 Ok, stored as"),
        ("receive.after_commit=kill", "250 2.0.0 Ok, it was stored before"),
    ],
)
def test_a_message_of_an_inbox_is_there_with_its_thread_or_not_at_all(
    tmp_path: Path, fault: str, second: str
) -> None:
    """inboxes.md 9: a death between the store and the thread leaves neither, and what comes again is there
    once. (The first of two commits finds out that the mail is for an inbox.)"""
    with served(tmp_path, fault=fault, **SETTINGS) as running:
        url, port = listeners(running)
        database = running.database_url
        added = httpx.post(f"{url}/domains", headers=HEADERS, json={"name": "quay.example"}, trust_env=False)
        assert added.status_code == 201
        asyncio.run(carried_out(database, INBOX, TO))
        with pytest.raises((OSError, smtplib.SMTPException)):
            bring(port, RAW % b"x")
        found = asyncio.run(carried_out(database, THREADS))
        assert len(found) == int("before" in second)
        assert bring_until_taken(port, RAW % b"x").startswith(second)
        [row] = asyncio.run(carried_out(database, THREADS))
        assert row == {"messages": 1, "subject": "Lost words", "is_kept": True}
        assert subjects(url) == ["Lost words"]
        asyncio.run(reconciled(database))
