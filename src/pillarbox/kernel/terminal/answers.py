"""How commands answer: tables for people, JSON for machines, one line for what went wrong.

What other people wrote (subjects, host names, SMTP replies) never reaches the terminal with control
characters in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from pillarbox.kernel.postgres.database import GONE
from pillarbox.kernel.process.supervisor import SENTENCES
from pillarbox.kernel.settings.settings import ConfigError
from pillarbox.kernel.terminal.connect import CommandDatabase, run
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Problem

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

FAILED = 1
WRONG_SETTING = 2
LONGEST_WHOLE = 22
FOLDED = 16
GAP = 2
UNBOUNDED = 10_000
"""Columns of a pipe: nothing is cut where nobody looks at a screen."""

DATABASE_TROUBLE = (
    *GONE,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.LockNotAvailableError,
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.exceptions.ClientConfigurationError,
)
"""The errors that the operator can mend; any other error of the database is ours and shows its origin."""

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class CommandRefused(Exception):  # noqa: N818 (the answer to a wish, reported as a sentence)
    """The command is refused; the message is one sentence."""


def perform(
    work: Callable[[CommandDatabase], Awaitable[int]],
    *,
    data: str | None,
    database_url: str | None,
    failed: int = FAILED,
    with_any_ring: bool = False,
) -> None:
    """Do the work and exit with its status; an obstacle is reported in one line, with the status `failed`."""
    try:
        run(work, data=data, database_url=database_url, with_any_ring=with_any_ring)
    except ConfigError as problem:
        raise stopped(str(problem), WRONG_SETTING) from None
    except (CommandRefused, Problem, *SENTENCES) as problem:
        raise stopped(str(problem), failed) from None
    except BrokenPipeError:
        raise
    except (asyncpg.DataError, UnicodeEncodeError) as problem:
        if not _is_surrogate(problem) and not _is_surrogate(problem.__cause__):
            raise
        raise stopped("A value of the command line is no UTF-8.", failed) from None
    except DATABASE_TROUBLE as problem:
        reason = str(problem) or type(problem).__name__
        if isinstance(problem, TimeoutError):
            reason = "it does not answer in time"
        raise stopped(f"The database cannot be used: {reason}.", failed) from None


def _is_surrogate(problem: BaseException | None) -> bool:
    """Return whether it says that a lone surrogate is no text: so come octets of the command line that are
    no UTF-8."""
    return isinstance(problem, UnicodeEncodeError) and problem.encoding == "utf-8"


def stopped(sentence: str, status: int = FAILED) -> typer.Exit:
    """Say why on standard error; raise what this returns."""
    typer.echo(f"pillarbox: {clean(sentence)}", err=True)
    return typer.Exit(status)


def say(line: str = "") -> None:
    """Print one line for people."""
    typer.echo(clean(line))


def show_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(as_json(value))


def as_json(value: Any) -> str:
    return json.dumps(value, default=_plain_value, indent=2, ensure_ascii=False)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. On a terminal long texts are folded, but no column is ever left out: rather the table is
    wider than the screen. In a pipe every row is one line."""
    cells = [[cell(value) for value in row] for row in rows]
    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    least = 0
    for index, name in enumerate(columns):
        width, whole = _narrowest(name, [row[index] for row in cells])
        table.add_column(name, overflow="fold", no_wrap=whole or not terminal, min_width=width)
        least += width + GAP
    for row in cells:
        table.add_row(*row)
    screen = shutil.get_terminal_size() if terminal else os.terminal_size((UNBOUNDED, 25))
    console = Console(
        file=sys.stdout,
        width=max(screen.columns, least),
        height=screen.lines,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def cell(value: object) -> str:
    """Return a value as a person reads it."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, timedelta):
        return span(value)
    return clean(str(value))


def clean(text: str) -> str:
    """Return the text with every control and direction character written out, so that it cannot steer
    a terminal."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def instant(instant: datetime) -> str:
    """Return the instant as `2026-10-03 08:15:00Z`."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def span(length: timedelta) -> str:
    """Return the two largest units of a length of time: `2 d 3 h`, `5 m 10 s`, `0 s`."""
    left = max(0, int(length.total_seconds()))
    parts = []
    for unit, seconds in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def counted(number: int, singular: str, many: str | None = None) -> str:
    """Return the number with its noun: `1 email`, `2 emails`."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def as_id(text: str, what: str) -> UUID:
    """Return the id that an argument is."""
    try:
        return UUID(text)
    except ValueError:
        raise CommandRefused(f"{text!r} is not the id of {what}.") from None


def _narrowest(name: str, cells: Sequence[str]) -> tuple[int, bool]:
    """Return how narrow a column may be made, and whether that is all of it: short values and ids
    stay whole."""
    longest = max(len(name), *map(len, cells)) if cells else len(name)
    whole = longest <= LONGEST_WHOLE or name == "Id"
    return (longest if whole else max(len(name), FOLDED)), whole


def _plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return iso_style(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
