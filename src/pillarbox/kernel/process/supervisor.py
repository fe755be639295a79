"""`pillarbox serve`: one supervisor, its database, its workers.

In order: lock the data folder, bind the listeners, start the workers, which load the program meanwhile; start
the embedded PostgreSQL unless a database is configured, migrate, compare key ring and blob store; make the
first team, let the workers open, print the `ready` line. The first SIGTERM, SIGINT or SIGQUIT drains: workers
finish what is on the wire, then the database stops, and the exit status is 0. A second one ends everything at
once. SIGHUP makes the workers look at their certificates, and drains where it means that the terminal is gone
(`kernel.process.signals`). The database and the workers always end with the supervisor.

Standard output has what `kernel.process.announcement` says; all else goes to the log on standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pillarbox.kernel.network.listeners import (
    HTTP,
    LMTP,
    SMTP,
    ListenError,
    bind,
    bound_at,
    refuse_shared_ports,
    submission_names,
)
from pillarbox.kernel.observability import log
from pillarbox.kernel.observability.loop_watchdog import LoopWatchdog
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.postgres.embedded import CONNECTIONS, EmbeddedError, EmbeddedPostgres
from pillarbox.kernel.postgres.migrations import MigrationError
from pillarbox.kernel.postgres.pooler import PoolerError
from pillarbox.kernel.postgres.programs import ProgramsError
from pillarbox.kernel.process import shared_memory, signals, supervisor_metrics
from pillarbox.kernel.process.announcement import Announcement, OpenedListeners, is_terminal, local_url
from pillarbox.kernel.process.children import reap_orphans
from pillarbox.kernel.process.database_start import FirstTeam, prepare
from pillarbox.kernel.process.fork_server_channel import FACTORY, ForkServerProcess
from pillarbox.kernel.process.secrets_channel import SecretsChannel
from pillarbox.kernel.process.supervisor_metrics import SupervisorMetrics, processes
from pillarbox.kernel.process.workers import FIRST_PAUSE, LONGEST_PAUSE, HandOver, StartError, Workers
from pillarbox.kernel.security.ring_check import KeyRingRefused
from pillarbox.kernel.security.sealed_values import Columns
from pillarbox.kernel.settings.kinds import HostPort, ProcessRole
from pillarbox.kernel.settings.settings import ConfigError, Settings
from pillarbox.kernel.storage.data_folder import (
    POSTGRES_FOLDER,
    RUN_FOLDER,
    FolderError,
    locked,
    refuse_unfinished,
    write_note,
)
from pillarbox.kernel.storage.store_check import BlobStoreRefused

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

DRAIN_SECONDS = 30.0
OVERLAP = 40
"""Connections of the embedded database beyond what is needed: sessions of a worker that was killed end a
little later than it."""

METRICS_FOLDER = "metrics"
TROUBLE_LEVELS = ("WARNING", "ERROR", "FATAL", "PANIC")
"""Of PostgreSQL's log; its LOG, HINT and DETAIL are not trouble."""


SENTENCES = (
    BlobStoreRefused,
    ConfigError,
    ListenError,
    EmbeddedError,
    FolderError,
    KeyRingRefused,
    MigrationError,
    PoolerError,
    ProgramsError,
    StartError,
)
"""The errors that stop a start with one sentence for the operator."""

WRONG_SETTINGS = (BlobStoreRefused, ConfigError, KeyRingRefused, PoolerError)
"""Those that no later start with the same settings gets over."""

FAILED, WRONG_SETTING = 1, 2
"""The status of a start that may work later, and of one that will not: systemd does not repeat it."""

logger = log.get("supervisor")


def serve(
    settings: Settings,
    first_team: FirstTeam,
    *,
    sealed: Columns = tuple,
    factory: str = FACTORY,
    fork_server: ForkServerProcess | None = None,
) -> int:
    """Run until a signal; the exit status. `sealed` names what the key ring encrypts; `fork_server` is one
    that was already started for this factory."""
    os.umask(0o077)
    log.configure(settings.log, level=settings.log_level)
    try:
        refuse_wrong(settings)
        with locked(settings.data):
            refuse_unfinished(settings.data)
            return asyncio.run(Supervisor(settings, first_team, sealed, factory, fork_server).run())
    except SENTENCES as problem:
        print(f"pillarbox: {problem}", file=sys.stderr, flush=True)
        return WRONG_SETTING if isinstance(problem, WRONG_SETTINGS) else FAILED


def refuse_wrong(settings: Settings) -> None:
    """Raise ConfigError where settings do not fit each other, or the files that they name."""
    refuse_shared_ports(settings)
    if settings.tls_cert is not None and settings.tls_key is not None:
        # Loads cryptography.
        from pillarbox.kernel.security.certificates import refuse_unusable

        refuse_unusable(settings.tls_cert, settings.tls_key)


class Supervisor:
    """The parent of the workers and of the embedded database."""

    def __init__(
        self,
        settings: Settings,
        first_team: FirstTeam,
        sealed: Columns,
        factory: str,
        fork_server: ForkServerProcess | None,
    ) -> None:
        self._settings = settings
        self._first_team = first_team
        self._sealed = sealed
        self._factory = factory
        self._fork_server = fork_server
        self._listeners: dict[str, socket.socket] = {}
        self._postgres: EmbeddedPostgres | None = None
        self._keeping_postgres: asyncio.Task[None] | None = None
        self._metrics: SupervisorMetrics | None = None
        self._workers: Workers | None = None
        self._secrets_channel: SecretsChannel | None = None
        self._stop = asyncio.Event()
        self._token = secrets.token_urlsafe(24)
        self._said = Announcement(is_terminal())
        self._was_ready = False

    async def run(self) -> int:
        """Open, wait for a signal, and close; return the exit status."""
        signals.handle_with_terminal(stop=self._signalled, reload=self._reload)
        watchdog = LoopWatchdog("supervisor")
        try:
            await self._unless_stopped(self._open())
            watchdog.start()
            if self._metrics:
                self._metrics.begin()
            await self._stop.wait()
        finally:
            watchdog.stop()
            await self._close()
        return 0

    def _signalled(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            if number is signals.HANG_UP:
                # Whoever stopped it and closed the terminal then has not lost patience.
                return
            self._abandon(number)
        self._said.stopping()
        self._log_state("supervisor.stopping", signal=number.name)
        self._stop.set()

    def _reload(self) -> None:
        """Let every worker look at the files that may be renewed while it runs."""
        logger.info("supervisor.reloading")
        if self._workers:
            self._workers.pass_on(signals.HANG_UP)

    def _abandon(self, number: signal.Signals) -> None:
        """Leave at once. What was committed stays; leases end by time."""
        if self._workers:
            self._workers.send(signal.SIGKILL)
        if self._postgres:
            self._postgres.kill()
        self._said.abandoned()
        os._exit(128 + number)

    async def _unless_stopped(self, opening: Awaitable[None]) -> None:
        """Await `opening`, but drop it when a signal comes first."""
        task = asyncio.ensure_future(opening)
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            stopped.cancel()
        else:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _open(self) -> None:
        self._bind_listeners()
        hand_over = self._begin_workers()
        url = await self._open_database()
        self._settings = self._settings.replacing(database_url=url)
        await self._prepare_database(url)
        self._secrets_channel = SecretsChannel(self._settings.data, self._secrets())
        await self._secrets_channel.open()
        write_note(self._settings.data, self._note())
        await self._workers_ready(replace(hand_over, settings=self._settings))
        self._announce()

    def _bind_listeners(self) -> None:
        """Bind the ports before anything slow begins, so that a port in use is reported at once."""
        if ProcessRole.API in self._settings.roles:
            self._settings = self._settings.replacing(http=str(self._bind(HTTP, self._settings.http)))
        if ProcessRole.SMTP in self._settings.roles:
            self._bind_smtp()
        if self._settings.metrics is not None:
            folder = self._settings.data / RUN_FOLDER / METRICS_FOLDER
            self._metrics = SupervisorMetrics(
                self._settings.metrics, folder, lambda: processes(self._workers, self._postgres)
            )

    def _bind_smtp(self) -> None:
        settings = self._settings
        if settings.smtp is not None:
            self._settings = self._settings.replacing(smtp=str(self._bind(SMTP, settings.smtp)))
        if settings.submission:
            names = submission_names(settings.submission)
            bound = [
                str(replace(listener, at=self._bind(name, listener.at)))
                for name, listener in zip(names, settings.submission, strict=True)
            ]
            self._settings = self._settings.replacing(submission=",".join(bound))
        if settings.lmtp is not None:
            self._settings = self._settings.replacing(lmtp=str(self._bind(LMTP, settings.lmtp)))

    def _bind(self, name: str, asked: HostPort) -> HostPort:
        listener = self._listeners[name] = bind(name, asked)
        return bound_at(listener, asked)

    async def _open_database(self) -> str:
        if self._settings.database_url is not None:
            return self._settings.database_url
        postgres_log = log.get("postgres")
        self._postgres = EmbeddedPostgres(
            self._settings.data / POSTGRES_FOLDER,
            bin_dir=self._settings.pg_bin,
            connections=max(CONNECTIONS, connection_limits.of_machine(self._settings) + OVERLAP),
            on_line=lambda line: write_postgres_line(postgres_log, line),
        )
        if not postgres_folder(self._settings).exists():
            self._said.making_database(self._settings.data)
        await self._postgres.start()
        self._keeping_postgres = asyncio.create_task(self._keep_postgres(self._postgres))
        return self._postgres.url()

    async def _keep_postgres(self, postgres: EmbeddedPostgres) -> None:
        """Start the database again after every crash."""
        pause = FIRST_PAUSE
        while True:
            logger.error("postgres.died", status=await postgres.exited())
            supervisor_metrics.DATABASE_RESTARTS.add()
            await asyncio.sleep(pause)
            try:
                await postgres.start()
                # The backends of a killed server become children of the supervisor.
                reap_orphans([postgres.pid or 0, *(self._workers.pids if self._workers else ())])
                logger.info("postgres.restarted", postgres=postgres.pid)
                pause = FIRST_PAUSE
            except (EmbeddedError, ProgramsError, OSError) as problem:
                logger.error("postgres.restart_failed", reason=str(problem))
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _prepare_database(self, url: str) -> None:
        """Prepare the database; the API key of the first team is printed as soon as it exists."""
        is_named = self._postgres is None
        self._settings, first = await prepare(url, self._settings, self._first_team, self._sealed, is_named)
        if first is not None and self._settings.initial_api_key is None:
            self._said.key_made(first.key)
        if first is not None and first.set_up is not None:
            self._said.set_up_made(first.set_up)

    def _begin_workers(self) -> HandOver:
        hand_over = HandOver(
            settings=self._settings,
            factory=self._factory,
            listeners={name: listener.fileno() for name, listener in self._listeners.items()},
            shared_memory=shared_memory.create(),
            capture_token=self._token,
            metrics_folder=self._metrics.folder if self._metrics else None,
        )
        forget = self._metrics.forget if self._metrics else lambda pid: None
        self._workers = Workers(hand_over, forget, self._fork_server)
        return hand_over

    async def _workers_ready(self, hand_over: HandOver) -> None:
        assert self._workers is not None
        await self._workers.start(hand_over)

    def _announce(self) -> None:
        at = str(self._metrics.at) if self._metrics else None
        self._said.ready(OpenedListeners(self._settings, self._listeners, at, self._token))
        self._was_ready = True

    def _note(self) -> dict[str, object]:
        """Return the facts about this server that may stand in a file; `SecretsChannel` has the rest."""
        settings = self._settings
        return {
            "database_url": self._postgres.url() if self._postgres else None,
            "http": local_url(self._settings) if "http" in self._listeners else None,
            "public_url": self._settings.public_url,
            "listeners": list(self._listeners),
            "settings": {n: text for n, text in settings.given.items() if n in settings.public},
            "sources": dict(settings.sources),
        }

    def _secrets(self) -> dict[str, object]:
        given = self._settings.given
        secret = self._settings.secret - {"initial_api_key"}
        return {"settings": {n: given[n] for n in secret if n in given}}

    async def _close(self) -> None:
        """Close the listeners, then the workers, then the database they need."""
        # While the supervisor holds them, clients would connect although no worker accepts.
        for listener in self._listeners.values():
            listener.close()
        if self._workers:
            await self._workers.stop(DRAIN_SECONDS)
        if self._secrets_channel:
            self._secrets_channel.close()
        if self._keeping_postgres:
            self._keeping_postgres.cancel()
        if self._postgres:
            await self._postgres.stop()
        if self._metrics:
            self._metrics.close()
        if self._was_ready:
            self._log_state("supervisor.stopped")

    def _log_state(self, event: str, **fields: str) -> None:
        """Log the state. Where a person is told in words on the same screen, the log need not repeat it."""
        is_told = self._said.is_terminal and self._settings.log == "text"
        (logger.debug if is_told else logger.info)(event, **fields)


def write_postgres_line(postgres_log: FilteringBoundLogger, line: str) -> None:
    """Log a line of the database's own log: what it says of its work only helps in a search for a fault."""
    write = (
        postgres_log.warning if any(f" {level}: " in line for level in TROUBLE_LEVELS) else postgres_log.debug
    )
    write("postgres", line=line)


def postgres_folder(settings: Settings) -> Path:
    """Return where the embedded database of these settings lives."""
    return settings.data / POSTGRES_FOLDER
