"""Logs: one fact per line on standard error, as JSON or text.

`get("delivery").info("delivery.attempt", email=email_id, code=250)`. The event's name is fixed, the
fields are ids and numbers. Whatever a field holds, it stays on its line: control characters and all
that is not ASCII are escaped, so nobody can forge a line (OPS-07). Fields whose name says secret are
not written.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

STDERR = 2
SECRET_FIELDS = frozenset({"password", "secret", "token", "api_key", "authorization", "secret_key", "cookie"})
HIDDEN = "[hidden]"
PLAIN = re.compile(r"[!#-<>-\[\]-~]+")
LIBRARIES = {"uvicorn": logging.WARNING, "asyncio": logging.WARNING, "aiohttp": logging.WARNING}


def get(name: str) -> FilteringBoundLogger:
    """The logger of a part; usable before `configure`."""
    logger: FilteringBoundLogger = structlog.get_logger(part=name)
    return logger


def configure(form: str, *, level: int = logging.INFO, descriptor: int = STDERR) -> None:
    """Send this process's log to `descriptor` as `json` or `text`, the libraries' log included."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            hide_secrets,
            json_line if form == "json" else text_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *args: LineWriter(descriptor),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [Bridge()]
    root.setLevel(logging.WARNING)
    for library, least in LIBRARIES.items():
        logging.getLogger(library).setLevel(least)


class LineWriter:
    """Writes each line with one system call, so lines of several processes do not mix."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def msg(self, line: str) -> None:
        data = line.encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            # Nobody reads the log any more: the work goes on.
            return

    debug = info = warning = error = critical = exception = log = msg


class Bridge(logging.Handler):
    """What libraries log through the standard library becomes a line like ours."""

    def emit(self, record: logging.LogRecord) -> None:
        logger: FilteringBoundLogger = structlog.get_logger(part=record.name)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        logger.log(record.levelno, "library", message=message, exc_info=record.exc_info or None)


def hide_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A net under the rule that secrets are not logged."""
    for name in SECRET_FIELDS & event.keys():
        event[name] = HIDDEN
    return event


def json_line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """One JSON object in ASCII."""
    return json.dumps(in_order(event), default=str, separators=(",", ":")).replace("\x7f", "\\u007f")


def text_line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """`time level event name=value …`; a value that is not one plain word is quoted as JSON."""
    fields = in_order(event)
    head = f"{fields.pop('time')} {fields.pop('level'):7} {quoted(fields.pop('event'))}"
    return " ".join([head, *(f"{quoted(name)}={quoted(value)}" for name, value in fields.items())])


def in_order(event: Mapping[str, Any]) -> dict[str, Any]:
    """Time, level and event first; the rest as it was given."""
    first = {name: event.get(name, "") for name in ("time", "level", "event")}
    return {**first, **{str(name): value for name, value in event.items() if name not in first}}


def quoted(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if PLAIN.fullmatch(text) else json.dumps(text).replace("\x7f", "\\u007f")
