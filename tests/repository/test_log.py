"""Logs: one fact per line, and nobody can forge a line (OPS-07)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.observability import log

Read = Callable[[], list[str]]


@pytest.fixture
def written() -> Iterator[Callable[[str], Read]]:
    """Configure the log to go into a pipe; read what arrived."""
    reader, writer = os.pipe()
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def configured(form: str) -> Read:
        log.configure(form, descriptor=writer)
        return lambda: os.read(reader, 65536).decode("ascii").splitlines()

    yield configured
    structlog.reset_defaults()
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_line_break_in_a_field_stays_on_its_line(form: str, written: Callable[[str], Read]) -> None:
    read = written(form)
    log.get("smtp").info("smtp.refused", helo='evil"\r\n{"event":"forged"}\x1b[31m\x85\u2028')
    lines = read()
    assert len(lines) == 1
    assert "\x1b" not in lines[0]


def test_json_lines_hold_their_fields(written: Callable[[str], Read]) -> None:
    read = written("json")
    log.get("delivery").info("delivery.attempt", host="mx.example", code=250)
    fact = json.loads(read()[0])
    assert (fact["event"], fact["part"], fact["host"], fact["code"]) == (
        "delivery.attempt",
        "delivery",
        "mx.example",
        250,
    )


@pytest.mark.parametrize("odd", ["caf\u00e9", "half \ud83d", "\x7f", 1 << 70, {1, 2}, None, float("inf")])
def test_any_value_can_be_a_field(odd: object, written: Callable[[str], Read]) -> None:
    read = written("json")
    log.get("delivery").warning("delivery.odd", value=odd, worker=7)
    lines = read()
    assert len(lines) == 1
    assert lines[0].isascii()
    fact = json.loads(lines[0])
    assert list(fact)[:4] == ["time", "level", "event", "part"]
    assert (fact["level"], fact["worker"]) == ("warning", 7)


def test_secrets_are_hidden(written: Callable[[str], Read]) -> None:
    """SEC-05."""
    read = written("json")
    log.get("auth").info("auth.failed", token="re_secret", authorization="Bearer re_secret")
    assert "re_secret" not in read()[0]


def test_an_exception_is_one_line(written: Callable[[str], Read]) -> None:
    read = written("json")
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        log.get("worker").exception("worker.failed")
    lines = read()
    assert len(lines) == 1
    assert "first\nsecond" in json.loads(lines[0])["exception"]


def test_a_library_speaks_through_our_log(written: Callable[[str], Read]) -> None:
    read = written("json")
    logging.getLogger("asyncio").warning("slow %s\n", "callback")
    fact = json.loads(read()[0])
    assert (fact["event"], fact["part"], fact["message"]) == ("library", "asyncio", "slow callback\n")


@given(st.text())
def test_a_quoted_value_is_printable_ascii_without_a_break(value: str) -> None:
    assert all(0x20 <= ord(character) < 0x7F for character in log.quoted(value))
