"""Logs: one fact per line on standard error, as JSON or text.

`get("delivery").info("delivery.attempt", email=email_id, code=250)`. The event's name is fixed, the
fields are ids and numbers. Whatever a field holds, it stays on its line: control characters and all
that is not ASCII are escaped, so a value cannot forge a line (OPS-07). Fields with the name of a secret are
not written.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

import msgspec


@contextlib.contextmanager
def as_if_missing(name: str) -> Iterator[None]:
    """Prevent the import of a package that is not loaded yet, inside the block."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


# It would load a library that draws tracebacks in colours, which takes four times as long as itself.
with as_if_missing("rich"):
    import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

STDERR = 2
SECRET_FIELDS = frozenset({"password", "secret", "token", "api_key", "authorization", "secret_key", "cookie"})
HIDDEN = "[hidden]"
ERASE_LINE = b"\r\x1b[2K"
LEVELS = {"exception": "error", "warn": "warning"}
"""Levels of methods that do not bear the name of theirs."""

PLAIN = re.compile(r"[!#-<>-\[\]-~]+")
LIBRARIES = {"uvicorn": logging.WARNING, "asyncio": logging.WARNING}

_encode = msgspec.json.Encoder(enc_hook=str).encode


def get(name: str) -> FilteringBoundLogger:
    """Return the logger of a part; usable before `configure`."""
    logger: FilteringBoundLogger = structlog.get_logger(part=name)
    return logger


def configure(
    form: str,
    *,
    level: str = "info",
    descriptor: int = STDERR,
    always: Mapping[str, object] | None = None,
) -> None:
    """Send this process's log to `descriptor` as `json` or `text`, the libraries' log included; `level` is
    the least that is written, and `always` are fields of every line."""
    structlog.configure(
        # Few and simple: the engine writes a line for each attempt.
        processors=[LogFields(always or {}), json_line if form == "json" else text_line],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *args: LineWriter(descriptor),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [StandardLogHandler()]
    root.setLevel(logging.WARNING)
    for library, least in LIBRARIES.items():
        logging.getLogger(library).setLevel(least)


class LineWriter:
    """Writes each line with one system call, so lines of several processes do not mix."""

    before: ClassVar[bytes] = b""
    """The bytes that are written before each line, with the same call."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def msg(self, line: str) -> None:
        data = self.before + line.encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            # The reader of the log is gone: continue without it.
            return

    debug = info = warning = error = critical = exception = log = msg


@contextlib.contextmanager
def erasing_line() -> Iterator[None]:
    """Let each line of the log take the place of a progress bar on the terminal, which is drawn
    again below."""
    LineWriter.before = ERASE_LINE
    try:
        yield
    finally:
        LineWriter.before = b""


class StandardLogHandler(logging.Handler):
    """Writes the log records of libraries (standard library `logging`) as lines of our log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger: FilteringBoundLogger = structlog.get_logger(part=record.name)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        logger.log(record.levelno, "library", message=message, exc_info=record.exc_info or None)


class LogFields:
    """Completes an event: time, level and event first, then its fields, then those of every line."""

    def __init__(self, always: Mapping[str, object]) -> None:
        self._always = dict(always)

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if "exc_info" in event:
            event = structlog.processors.format_exc_info(logger, method, event)
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        facts: EventDict = {
            "time": f"{time[:-6]}Z",
            "level": LEVELS.get(method, method),
            "event": event.pop("event", ""),
            **event,
            **self._always,
        }
        # A net under the rule that secrets are not logged.
        if not SECRET_FIELDS.isdisjoint(facts):
            for name in SECRET_FIELDS & facts.keys():
                facts[name] = HIDDEN
        return facts


def json_line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """Return one JSON object in ASCII."""
    with contextlib.suppress(ValueError, OverflowError):
        line = _encode(event)
        if line.isascii() and b"\x7f" not in line:
            return line.decode("ascii")
    return json.dumps(event, default=str, separators=(",", ":")).replace("\x7f", "\\u007f")


def text_line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """Return `time level event name=value …`; a value that is not one plain word is quoted as JSON."""
    fields = dict(event)
    head = f"{fields.pop('time')} {fields.pop('level'):7} {quoted(fields.pop('event'))}"
    return " ".join([head, *(f"{quoted(name)}={quoted(value)}" for name, value in fields.items())])


def quoted(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if PLAIN.fullmatch(text) else json.dumps(text).replace("\x7f", "\\u007f")
