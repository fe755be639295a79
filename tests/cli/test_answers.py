"""How commands answer, where people read it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from datetime import timedelta

import pytest

from pillarbox.kernel.terminal.answers import clean, counted, span

TABLE = """
from pillarbox.kernel.terminal.answers import show_table
show_table(("Id", "Subject", "State"), [("0" * 36, "a long subject " * 20, "delivery_delayed")])
"""


def on_a_terminal(program: str, columns: int) -> list[str]:
    """What a program prints when its standard output is a terminal of that width."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}
    with subprocess.Popen([sys.executable, "-c", program], stdout=theirs, env=environment) as process:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:
            pass  # Linux answers EIO at the end of a terminal.
        assert process.wait(30) == 0
    os.close(ours)
    return text.decode().splitlines()


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_column_of_a_table_is_lost_on_a_narrow_terminal(columns: int) -> None:
    lines = on_a_terminal(TABLE, columns)
    assert lines[0].split() == ["Id", "Subject", "State"]
    assert lines[1].startswith("0" * 36)
    assert lines[1].rstrip().endswith("delivery_delayed")
    assert (
        "".join(line[36:].replace("delivery_delayed", "").strip() for line in lines[1:]).replace(" ", "")
        == "alongsubject" * 20
    )


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(minutes=5, seconds=10), "5 m 10 s"),
        (timedelta(hours=26), "1 d 2 h"),
    ],
)
def test_a_length_of_time_is_two_units(length: timedelta, said: str) -> None:
    assert span(length) == said


def test_numbers_agree_with_their_words() -> None:
    assert [counted(number, "gap") for number in (0, 1, 1200)] == ["0 gaps", "1 gap", "1,200 gaps"]


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\r", "\n", "\x7f", "\u202e", "\u2066", "\u2028"])
def test_control_characters_are_written_out(character: str) -> None:
    assert clean(f"a{character}b").isprintable()
    assert clean("Grüße, 東京") == "Grüße, 東京"
