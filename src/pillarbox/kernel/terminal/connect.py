"""How a command reaches the database: the running supervisor's, a named one, or the embedded one itself.

A command group uses it so:

    @app.command("list")
    def list_teams(data: Data = None, database_url: DatabaseUrl = None) -> None:
        run(show_teams, data=data, database_url=database_url)

    async def show_teams(connected: Connected) -> int:
        ...
        return 0
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import asyncpg
import typer

from pillarbox.kernel.observability import log
from pillarbox.kernel.postgres.bounded_pool import close_within
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.postgres.migrations import migrate_url, refuse_unmigrated_url
from pillarbox.kernel.process import signals
from pillarbox.kernel.process.secrets_channel import ask
from pillarbox.kernel.process.supervisor import postgres_folder
from pillarbox.kernel.security.ring_check import KeyRingRefused, OtherKeyRing, known_keys, refuse_other_ring
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.settings import Settings, key_ring_text, read_settings, settings_of
from pillarbox.kernel.storage.data_folder import FolderError, FolderInUse, is_in_use, locked, read_note
from pillarbox.kernel.terminal.program import running_program

Data = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="FOLDER", help="Data folder of the server [PILLARBOX_DATA].", show_default=False
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="Database, where it is not the embedded one [PILLARBOX_DATABASE_URL].",
        show_default=False,
    ),
]

Note = dict[str, Any]
"""The facts that a running server writes about itself into its data folder."""

OWN = frozenset({"data", "log", "log_level"})
"""Settings that a command has for itself, beside a server too."""

STOPS = (signal.SIGTERM, signal.SIGQUIT)
"""The signals that end a command in order, besides a hang-up; SIGINT does so in `asyncio.run`."""

POOL = 2
CLOSE_SECONDS = 5.0


class NoDatabaseError(FolderError):
    """Nothing is in the folder: a new, empty database would answer, and say that all is well."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"There is no database in the data folder {folder}; --data names another folder, and "
            "`pillarbox serve` makes the database."
        )


@dataclass(frozen=True, slots=True)
class CommandDatabase:
    """The database and settings of a running command. `settings` are those of the running server, else the
    command's own, with the database's URL and the key ring filled in. `server` is the base URL of the running
    server on this machine, None when none runs; `listeners` are the names of those that it has opened."""

    settings: Settings
    pool: asyncpg.Pool
    server: str | None
    listeners: Sequence[str] | None = None
    ring_trouble: KeyRingRefused | None = None

    @property
    def is_wrong_ring(self) -> bool:
        """Whether the command was given the key ring of another database."""
        return isinstance(self.ring_trouble, OtherKeyRing) and self.settings.secret_key is not None

    def key_ring(self) -> KeyRing:
        """Return the key ring of this database; raise KeyRingRefused where the command was not given it."""
        if self.ring_trouble is not None:
            raise self.ring_trouble
        return KeyRing.parse(self.settings.secret_key or "")


def run(
    work: Callable[[CommandDatabase], Awaitable[int]],
    *,
    data: str | None,
    database_url: str | None,
    with_any_ring: bool = False,
) -> None:
    """Do the work with a connection to the database and exit with its status.

    A key ring of another database stops the command, unless it says that it works `with_any_ring`. One
    without any ring goes on until it needs one.
    """
    os.umask(0o077)
    settings = read_settings(running_program().settings, {"data": data, "database_url": database_url})
    log.configure(settings.log, level=settings.log_level)

    async def reached() -> int:
        async with connect(settings) as found:
            if found.is_wrong_ring and not with_any_ring:
                found.key_ring()
            return await work(found)

    raise typer.Exit(run_until_signal(reached()))


def run_until_signal(work: Coroutine[Any, Any, int]) -> int:
    """Run the work and return its exit status. A signal cancels it, so that a database that the command
    started for itself is stopped in order; a second one ends it at once."""
    received: list[signal.Signals] = []

    async def cancellable() -> int:
        task = asyncio.ensure_future(work)

        def stop(number: signal.Signals) -> None:
            if received and number is not signals.HANG_UP:
                os._exit(128 + number)
            if not received:
                received.append(number)
                task.cancel()

        if threading.current_thread() is threading.main_thread():
            signals.handle_with_terminal(stop=stop, reload=lambda: stop(signals.HANG_UP), stops=STOPS)
        return await task

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if not received:
            raise
        return 128 + received[0]


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[CommandDatabase]:
    """Yield a pool on the right database for as long as the block runs."""
    async with database(settings) as (found, note):
        pool = await open_pool(found.database_url or "", limit=POOL, application="pillarbox command")
        try:
            found, trouble = await with_ring(found, pool)
            server, listeners = (note["http"], note.get("listeners")) if note else (None, None)
            yield CommandDatabase(
                settings=found, pool=pool, server=server, listeners=listeners, ring_trouble=trouble
            )
        finally:
            await close_within(pool, CLOSE_SECONDS)


@asynccontextmanager
async def database(
    settings: Settings, *, any_schema: bool = False
) -> AsyncIterator[tuple[Settings, Note | None]]:
    """Yield the settings with the URL of a database that answers, and the note of the running server.

    With `any_schema` the database stays as it is, and its schema may be of another release.
    """
    refuse_emptiness(settings)
    if settings.database_url is not None and not is_in_use(settings.data):
        # No folder is needed, so none is made or locked.
        if not any_schema:
            await refuse_unmigrated_url(settings.database_url)
        yield settings, None
        return
    try:
        with locked(settings.data):
            async with database_alone(settings, any_schema=any_schema) as found:
                yield found, None
            return
    except FolderInUse:
        note = read_note(settings.data)
        if note is None:
            raise
    secrets = secrets_of(settings.data, note)
    url = settings.database_url or note["database_url"] or secrets["database_url"]
    if not any_schema:
        await refuse_unmigrated_url(url)
    yield joined(settings, note, secrets, url), note


def secrets_of(folder: Path, note: Note) -> Mapping[str, str]:
    """Return the secret settings of the running server. Releases before schema version 17 wrote them into
    their note, which `pillarbox upgrade --check` of a later release reads."""
    if "secret_key" in note:
        return {name: note[name] for name in ("secret_key", "database_url") if note[name]}
    found: Mapping[str, str] = ask(folder)["settings"]
    return found


def joined(settings: Settings, note: Note, secrets: Mapping[str, str], url: str) -> Settings:
    """Return the settings that the running server was started with, however this command was started; where
    the folder is and how to log is the command's own."""
    return settings_of(
        {
            **{name: text for name, text in note["settings"].items() if name not in OWN},
            **secrets,
            **{name: text for name, text in settings.given.items() if name in OWN},
            "database_url": url,
            "public_url": note["public_url"],
        },
        settings.rows,
        note.get("sources", {}),
    )


def refuse_emptiness(settings: Settings) -> None:
    """Raise where neither a database was named, nor one is in the folder, nor a server runs on it."""
    if settings.database_url is not None or read_note(settings.data) is not None:
        return
    if not postgres_folder(settings).is_dir():
        raise NoDatabaseError(settings.data)


@asynccontextmanager
async def database_alone(settings: Settings, *, any_schema: bool = False) -> AsyncIterator[Settings]:
    """Start the embedded database for the moment, since no server runs on this data folder."""
    postgres = EmbeddedPostgres(postgres_folder(settings), bin_dir=settings.pg_bin)
    try:
        await postgres.start()
        if not any_schema:
            await migrate_url(postgres.url())
        yield settings.replacing(database_url=postgres.url())
    finally:
        await postgres.stop()


async def with_ring(settings: Settings, pool: asyncpg.Pool) -> tuple[Settings, KeyRingRefused | None]:
    """Return the settings with the present key ring, and what is wrong with the ring, if anything. A command
    never makes one: it would seal with a key that no server has."""
    text = await asyncio.to_thread(key_ring_text, settings)
    known = await known_keys(pool)
    found = settings if text is None else settings.replacing(secret_key=text)
    try:
        refuse_other_ring(settings, text, known)
    except KeyRingRefused as trouble:
        return found, trouble
    if text is None or KeyRing.parse(text).active_id not in {key.id for key in known}:
        return found, KeyRingRefused(
            "No server has begun with this key ring; start `pillarbox serve` with it once."
        )
    return found, None
