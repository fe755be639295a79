"""`pillarbox emails list`: filters, pages, and lines that fit on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from cli.conftest import Installation


def subjects(harbor: Installation, *options: str) -> list[str]:
    return [email["subject"] for email in harbor.json("emails", "list", *options)["data"]]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--to", "bo@pier.example"), ["mixed"]),
        (("--to", "@deaf.example"), ["unreached"]),
        (("--to", "nobody@pier.example"), []),
        (("--from", "lamp@light.example"), ["other team"]),
        (("--domain", "light.example"), ["other team"]),
        (("--subject", "FILE large"), ["large file"]),
        (("--subject", "fil"), []),
        (("--state", "canceled"), ["canceled"]),
        (("--state", "bounced"), ["simulated", "mixed"]),
        (("--state", "bounced", "--to", "@quay.example"), ["mixed"]),
        (("--state", "scheduled"), ["scheduled"]),
        (("--subject", "batch", "--team", "Lighthouse"), []),
        (("--tag", "kind:none"), []),
        (("--source", "automation"), []),
        (("--source", "api", "--subject", "FILE large"), ["large file"]),
        (("--key", "00000000-0000-0000-0000-000000000001"), []),
        (("--broadcast", "00000000-0000-0000-0000-000000000001"), []),
        (("--message-id", "none@pier.example"), []),
        (("--since", "2999-01-01"), []),
        (("--until", "1999-01-01T00:00:00Z"), []),
    ],
)
def test_each_option_leaves_what_fits(
    harbor: Installation, options: tuple[str, ...], found: list[str]
) -> None:
    assert subjects(harbor, *options) == found


def test_pages_follow_one_another(harbor: Installation) -> None:
    every = harbor.json("emails", "list", "--limit", "100")
    assert every["has_more"] is False
    first = harbor.json("emails", "list", "--limit", "6")
    assert first["has_more"] is True
    behind = harbor.json("emails", "list", "--limit", "100", "--after", first["data"][-1]["id"])
    assert first["data"] + behind["data"] == every["data"]
    told = harbor.run("emails", "list", "--limit", "6")
    assert told.stderr == f"There are more: --after {first['data'][-1]['id']}\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--to", "nobody"),
        ("--from", "@light.example"),
        ("--subject", "?!"),
        ("--state", "lost"),
        ("--domain", "x"),
        ("--since", "yesterday"),
        ("--until", "2026-13-01"),
        ("--since", "2026-10-03", "--until", "2026-10-03"),
        ("--since", "2026-10-03T00:00:00+02:00", "--until", "2026-10-02T21:00:00Z"),
        ("--after", "first"),
        ("--team", "Nobody"),
    ],
)
def test_what_cannot_be_looked_for_is_one_sentence(harbor: Installation, options: tuple[str, ...]) -> None:
    done = harbor.run("emails", "list", *options)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def on_terminal(harbor: Installation, columns: int, *arguments: str) -> list[str]:
    """The lines that a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    place = ("--data", str(harbor.folder), "--database-url", harbor.url)
    environment = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "pillarbox", *arguments, *place],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**environment, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            written += part
        assert process.wait() == 0
    os.close(ours)
    return written.decode().splitlines()


def test_on_a_terminal_an_email_takes_two_lines_of_eighty_columns(harbor: Installation) -> None:
    lines = on_terminal(harbor, 80, "emails", "list", "--subject", "mixed")
    mixed = harbor.email("mixed")
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[0] == mixed
    assert lines[0].split()[-1] in {"bounced", "delivered", "delivery_delayed"}
    assert lines[1].startswith("    Harbor: ")
    assert lines[1].endswith(": mixed")
