"""The database as it is: unlike other commands these do not migrate it, and do not refuse an older schema."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from pillarbox.backup.failure import BackupError
from pillarbox.kernel.observability import log
from pillarbox.kernel.process.supervisor import SENTENCES
from pillarbox.kernel.settings.settings import (
    PASSPHRASE_VARIABLE,
    ConfigError,
    Settings,
    content_of,
    key_ring_text,
    read_settings,
)
from pillarbox.kernel.terminal.answers import DATABASE_TROUBLE, FAILED, WRONG_SETTING, CommandRefused, stopped
from pillarbox.kernel.terminal.connect import Note, database, run_until_signal
from pillarbox.kernel.terminal.program import running_program
from pillarbox.kernel.terminal.questions import secret

PgBin = Annotated[
    str | None,
    typer.Option(
        "--pg-bin",
        metavar="FOLDER",
        help="PostgreSQL programs, where the built-in ones are too old [PILLARBOX_PG_BIN].",
        show_default=False,
    ),
]
BlobUrl = Annotated[
    str | None,
    typer.Option(
        "--blob-url", metavar="URL", help="Blob store of the server [PILLARBOX_BLOB_URL].", show_default=False
    ),
]
BackupName = Annotated[
    str | None,
    typer.Option("--backup", metavar="NAME", help="Which backup; the newest one.", show_default=False),
]


def perform(work: Callable[[Settings], Awaitable[int]], **flags: str | None) -> None:
    """Do the work with the settings of these flags and exit with its status; what stands in its way is one
    line."""
    os.umask(0o077)
    try:
        settings = read_settings(running_program().settings, flags)
        log.configure(settings.log)
        status = run_until_signal(_awaited(work, settings))
    except ConfigError as problem:
        raise stopped(str(problem), WRONG_SETTING) from None
    except (BackupError, CommandRefused, *SENTENCES) as problem:
        raise stopped(str(problem), FAILED) from None
    except DATABASE_TROUBLE as problem:
        reason = str(problem) or type(problem).__name__
        if isinstance(problem, TimeoutError):
            reason = "it does not answer in time"
        raise stopped(f"The database cannot be used: {reason}.", FAILED) from None
    raise typer.Exit(status)


async def _awaited(work: Callable[[Settings], Awaitable[int]], settings: Settings) -> int:
    return await work(settings)


@asynccontextmanager
async def unmigrated_database(settings: Settings) -> AsyncIterator[tuple[Settings, Note | None]]:
    """Yield the settings of the running server, else the command's own, with the address of a database that
    answers and the key ring; and the note of the running server. The schema may be of another release."""
    async with database(settings, any_schema=True) as (found, note):
        if note is None:
            ring = await asyncio.to_thread(key_ring_text, settings)
            yield found if ring is None else found.replacing(secret_key=ring), None
        else:
            given = {name: settings.given[name] for name in ("blob_url", "pg_bin") if name in settings.given}
            yield found.replacing(**given), note


def passphrase(prompt: str, *, twice: bool) -> str | None:
    """Return the passphrase of the environment, of the file that it names, or of the person at the terminal;
    None without any."""
    text = os.environ.get(PASSPHRASE_VARIABLE)
    file = PASSPHRASE_VARIABLE + "_FILE"
    if text is None and file in os.environ:
        text = content_of(file, os.environ[file])
    if text is None and (text := secret(prompt)) is not None and twice and text != secret("Once more"):
        raise CommandRefused("The passphrases differ.")
    if text == "":
        raise CommandRefused("The passphrase is empty.")
    if text is not None and not _is_utf8(text):
        raise CommandRefused("The passphrase is not UTF-8 text.")
    return text


def _is_utf8(text: str) -> bool:
    """Return whether an environment or a terminal gave text, and not other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
