"""Whether accepted mail is durable: clock, disk, and the settings of the database."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg

from pillarbox.doctor import queries
from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.storage.disk_space import Space, needed

MIB: Final = 1024 * 1024
ACCEPTABLE: Final = timedelta(seconds=2)
BROKEN: Final = timedelta(seconds=15)
"""Half of a lease: beyond it two machines would disagree about who may send."""

SPARE: Final = 2
"""There should be so many times the room that is needed."""


class DatabaseSettingRule(NamedTuple):
    """The allowed values of a database setting, the risk of any other, and the step that mends it."""

    setting: str
    allowed: tuple[str, ...]
    risk: str
    step: str


RULES: Final = (
    DatabaseSettingRule(
        "fsync",
        ("on",),
        "a crash of the machine can destroy the whole database",
        "Set `fsync = on` in postgresql.conf and restart PostgreSQL.",
    ),
    DatabaseSettingRule(
        "synchronous_commit",
        ("on", "local", "remote_write", "remote_apply"),
        "mail that was accepted is lost in a crash",
        "Set `synchronous_commit = on`.",
    ),
    DatabaseSettingRule(
        "full_page_writes",
        ("on",),
        "a crash of the machine can leave torn pages",
        "Set `full_page_writes = on`.",
    ),
    DatabaseSettingRule(
        "zero_damaged_pages",
        ("off",),
        "damage on the disk is hidden by throwing data away",
        "Set `zero_damaged_pages = off`.",
    ),
    DatabaseSettingRule(
        "server_encoding",
        ("UTF8",),
        "most text cannot be stored",
        "Make the database anew with `ENCODING 'UTF8'`.",
    ),
    DatabaseSettingRule(
        "transaction_read_only",
        ("off",),
        "nothing can be stored",
        "Connect to the primary server, not to a replica.",
    ),
)


async def clock(pool: asyncpg.Pool, here: Clock) -> Check:
    """Compare this machine's clock with the database's, taken at the middle of the round trip."""
    before = here.now()
    theirs = await queries.server_time(pool)
    after = here.now()
    apart = abs(before + (after - before) / 2 - theirs)
    level = Level.OK if apart <= ACCEPTABLE else Level.WARNING if apart <= BROKEN else Level.PROBLEM
    return Check(
        name="clock",
        level=level,
        title="The clock agrees with the database's",
        found=f"{apart.total_seconds():.1f} s apart",
        expected=f"at most {ACCEPTABLE.seconds} s",
        step=None if level is Level.OK else "Let NTP set the clocks of both machines.",
    )


def interpreter() -> Check:
    """Check which Python runs the program: one built without optimisations needs a third more time."""
    found = f"{platform.python_version()}, {os.path.realpath(sys.executable)}"
    return Check(
        name="python",
        level=Level.OK,
        title="The program's Python is new enough",
        found=found,
        expected="3.11 or newer",
    )


def disk(folders: Sequence[Path], measure: Callable[[Path], Space | None]) -> list[Check]:
    """Check the room on every disk that accepted mail goes to, once for each file system."""
    found: dict[Space, Check] = {}
    for folder in folders:
        space = measure(folder)
        if space is not None:
            found.setdefault(space, _disk(folder, space))
    return list(found.values())


def _disk(folder: Path, space: Space) -> Check:
    least = needed(space.total)
    level = Level.OK
    if space.free < least * SPARE:
        level = Level.WARNING if space.free >= least else Level.PROBLEM
    return Check(
        name="disk",
        level=level,
        title="There is room on the disk",
        found=f"{space.free // MIB:,} MiB free for {folder}",
        expected=f"{least * SPARE // MIB:,} MiB; below {least // MIB:,} MiB mail is refused",
        step=None if level is Level.OK else "Make room, or shorten what is kept: `--email-retention-days`.",
    )


async def database(pool: asyncpg.Pool, connections: int) -> list[Check]:
    """Return the settings that decide whether a commit lasts, and whether all processes find a connection."""
    found = await queries.server_settings(pool)
    return [*(_setting(rule, found) for rule in RULES), _connections(found, connections)]


def _setting(rule: DatabaseSettingRule, settings: Mapping[str, str]) -> Check:
    value = settings.get(rule.setting, "unknown")
    fine = value in rule.allowed
    return Check(
        name=f"database.{rule.setting}",
        level=Level.OK if fine else Level.PROBLEM,
        title=f"The database has {rule.setting} {rule.allowed[0]}",
        found=value if fine else f"{value}: {rule.risk}",
        expected=" or ".join(rule.allowed),
        step=None if fine else rule.step,
    )


def _connections(settings: Mapping[str, str], needed: int) -> Check:
    there = int(settings["max_connections"]) - int(settings["superuser_reserved_connections"])
    fine = there >= needed
    return Check(
        name="database.max_connections",
        level=Level.OK if fine else Level.WARNING,
        title="The database takes enough connections",
        found=f"{there} connections",
        expected=f"{needed} for this machine",
        step=None if fine else "Raise `max_connections`, or run fewer processes with `--processes`.",
    )
