"""The embedded PostgreSQL: the server that runs when the operator names none.

What a caller may rely on:

- The server is a direct child on a private Unix socket; it listens on no network address. The socket is in
  the server's own folder. Where that path is too long for a socket, clients take a link in a runtime folder,
  whose name is derived from the path: two servers never share one, however their folders came to be.
- It dies with its parent: the kernel sends it SIGQUIT when the parent is gone, however it went, and what
  was committed is there at the next start.
- Started as root it runs under an account without rights. The data folder and the program files may
  lie where that account cannot look: the server enters its folder through the working directory it
  inherits, and unreachable program files are copied once to a readable place.
- A server that a killed parent left behind is ended before the next one starts, so two of them never
  share a folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

import asyncpg

from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.kernel.postgres.programs import (
    PostgresInstallation,
    SystemAccount,
    account_for,
    installation_for,
)
from pillarbox.kernel.process.children import ended
from pillarbox.kernel.process.parent import bind_to_parent

DATABASE = "pillarbox"
ROLE = "pillarbox"
LINK_PREFIX = "pillarbox-"
LINK = "socket"
SOCKET_NAME = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 107
"""sun_path holds 108 bytes with its final NUL (unix(7))."""

STALE = ("postmaster.pid", SOCKET_NAME, SOCKET_NAME + ".lock")
CWD = "/proc/self/cwd"
CONNECTIONS = 200
READY_POLL = 0.01
STATUS_LINE = 7
"""Where postmaster.pid says "starting", "ready" or "stopping" (miscadmin.h, LOCK_FILE_LINE_PM_STATUS)."""

START_TIMEOUT = 60.0
LEFTOVER_TIMEOUT = 15.0
STOP_TIMEOUT = 60.0
LAST_LINES = 20
COMPLAINT = re.compile(r"\b(?:error|FATAL|PANIC): ")
"""The line in which a program of PostgreSQL says why it gave up."""

LAST_WORDS_TIMEOUT = 2.0

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "work_mem": "8MB",
    # Each session that has used a temporary table keeps as much.
    "temp_buffers": "2MB",
    "maintenance_work_mem": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_compression": "on",
    "min_wal_size": "1GB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    "random_page_cost": "1.1",
    "autovacuum_naptime": "15s",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_line_prefix": "%p ",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
    # Errors of statements are answered to the client; their text and detail hold people's data.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}

NOT_DURABLE: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "min_wal_size": "64MB",
}
"""For tests that do not prove durability: nothing survives a crash of the machine."""


class EmbeddedError(Exception):
    """The embedded database cannot run; the message is one sentence for the operator."""


class EmbeddedPostgres:
    """One server on `folder`. `start` and `restart` must be called from the main thread: the kernel
    ties the child to the thread that made it."""

    def __init__(
        self,
        folder: Path,
        *,
        bin_dir: Path | None = None,
        durable: bool = True,
        connections: int = CONNECTIONS,
        on_line: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.folder = folder.absolute()
        self._bin_dir = bin_dir
        self._settings = dict(SETTINGS) if durable else {**SETTINGS, **NOT_DURABLE}
        self._settings["max_connections"] = str(connections)
        self._durable = durable
        self._on_line = on_line
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._sockets: Path | None = None

    @property
    def pid(self) -> int | None:
        """The server's process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def url(self, database: str = DATABASE) -> str:
        """Return where asyncpg finds a database of this server."""
        return f"postgresql:///{quote(database)}?host={quote(str(self._sockets))}&user={ROLE}"

    async def start(self) -> None:
        """Return when the server answers and the product's database exists; raise EmbeddedError else."""
        account = account_for(self.folder)
        installation = installation_for(self._bin_dir, account)
        self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self._end_leftovers()
        # Where earlier releases noted a socket elsewhere.
        self.folder.with_name(self.folder.name + ".socket").unlink(missing_ok=True)
        if not (self.folder / "PG_VERSION").exists():
            await asyncio.to_thread(self._initialise, installation, account)
        self._refuse_other_version(installation)
        if self._sockets is None:
            self._sockets = socket_folder(self.folder)
        self._launch(installation, account)
        await self._wait_until_ready()

    async def restart(self) -> None:
        """Start again after a crash, on the same socket path."""
        await self.start()

    async def exited(self) -> int:
        """Return the exit status once the server has ended."""
        assert self._process is not None
        return await ended(self._process)

    async def stop(self) -> None:
        """End the server cleanly: sessions are cut, a final checkpoint is written (fast shutdown)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(ended(self._process), STOP_TIMEOUT)
            except TimeoutError:
                self.kill()
                await ended(self._process)
        remove_link(self.folder, self._sockets)
        self._sockets = None

    def kill(self) -> None:
        """End the server at once; the next start recovers what was committed (immediate shutdown)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)

    def _initialise(self, installation: PostgresInstallation, account: SystemAccount | None) -> None:
        """Make a new cluster that appears whole or not at all: beside its place, then renamed."""
        fresh = self.folder.with_name(self.folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if account:
            os.chown(fresh, account.uid, account.gid)
        done = subprocess.run(
            [str(installation.bin / "initdb"), *initdb_options(installation.major, durable=self._durable)],
            cwd=fresh,
            env=installation.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o077,
            **as_account(account),
        )
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace").strip().splitlines() or ["no output"]
            # The reason comes first; then it tells how it tidies up.
            reasons = [COMPLAINT.split(line)[-1] for line in said if COMPLAINT.search(line)] or said[-1:]
            raise EmbeddedError(f"The embedded database could not be created: {reasons[0].strip()}")
        if self.folder.exists():
            self.folder.rmdir()
        fresh.rename(self.folder)

    def _refuse_other_version(self, installation: PostgresInstallation) -> None:
        stored = int((self.folder / "PG_VERSION").read_text().strip())
        if stored != installation.major:
            raise EmbeddedError(
                f"The database in {self.folder} was made by PostgreSQL {stored}, but the programs are of "
                f"PostgreSQL {installation.major}; use --pg-bin with the programs of version {stored}."
            )

    def _launch(self, installation: PostgresInstallation, account: SystemAccount | None) -> None:
        settings = {**self._settings, "unix_socket_directories": CWD}
        self._last_lines.clear()
        self._process = subprocess.Popen(
            [
                str(installation.bin / "postgres"),
                "-D",
                CWD,
                *(f"--{name}={value}" for name, value in settings.items()),
            ],
            cwd=self.folder,
            env=installation.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o077,
            # A Ctrl-C on the terminal is for the supervisor alone.
            start_new_session=True,
            preexec_fn=bind_to_parent(signal.SIGQUIT),
            **as_account(account),
        )
        self._reader = threading.Thread(target=self._read_lines, args=(self._process,), daemon=True)
        self._reader.start()

    def _read_lines(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for raw in lines:
                line = raw.decode(errors="replace").rstrip()
                self._last_lines.append(line)
                self._on_line(line)

    async def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = asyncio.get_running_loop().time() + START_TIMEOUT
        while asyncio.get_running_loop().time() < deadline:
            if self._process.poll() is not None:
                raise EmbeddedError(f"The embedded database did not start: {await self._last_complaint()}")
            if self._says_ready():
                with contextlib.suppress(*TROUBLE):
                    await ensure_database(self.url("postgres"), DATABASE)
                    return
            await asyncio.sleep(READY_POLL)
        self.kill()
        raise EmbeddedError(f"The embedded database did not answer within {START_TIMEOUT:.0f} seconds.")

    def _says_ready(self) -> bool:
        """Return whether the server's pid file says `ready`; connecting earlier would only fill the log."""
        try:
            lines = (self.folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"

    async def _last_complaint(self) -> str:
        if self._reader is not None:  # the end of a process is often known before its last words
            await asyncio.to_thread(self._reader.join, LAST_WORDS_TIMEOUT)
        for level in ("FATAL", "PANIC", "ERROR"):
            for line in reversed(self._last_lines):
                if level in line:
                    return line
        return self._last_lines[-1] if self._last_lines else "it ended without a word."

    async def _end_leftovers(self) -> None:
        """End what is left over: afterwards no process works in the folder, and it has no stale
        postmaster.pid or socket.

        A server whose parent was killed is on its way out already; its processes are known by their
        working directory. Once none is left, a number in these files can only mislead: it may by now
        belong to an innocent process, in a copied folder to the server of the original.
        """
        if not self.folder.is_dir():
            return
        deadline = asyncio.get_running_loop().time() + LEFTOVER_TIMEOUT
        asked: set[int] = set()
        while left := processes_in(self.folder):
            if asyncio.get_running_loop().time() > deadline:
                raise EmbeddedError(f"Another server (process {left[0]}) still uses {self.folder}.")
            for pid in set(left) - asked:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGQUIT)
                asked.add(pid)
            await asyncio.sleep(0.05)
        for name in STALE:
            (self.folder / name).unlink(missing_ok=True)


def initdb_options(major: int, *, durable: bool) -> list[str]:
    """Return the options for a new cluster: UTF-8, byte order, checksums, no password on the
    private socket."""
    if major >= 17:
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    else:
        locale = ["--locale=C"]
    sync = [] if durable else ["--no-sync"]
    return ["-D", CWD, "-U", ROLE, "--auth=trust", "--encoding=UTF8", "--data-checksums", *locale, *sync]


class ChildIdentity(TypedDict, total=False):
    """The arguments of `subprocess` that run a child under another account."""

    user: int
    group: int
    extra_groups: list[int]


def as_account(account: SystemAccount | None) -> ChildIdentity:
    """Return the arguments that make subprocess change to the account; none when it need not."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def socket_folder(cluster: Path) -> Path:
    """Return where clients find the socket that is in `cluster`: there, or by a link where that path is
    too long."""
    if fits(cluster):
        return cluster
    name = LINK_PREFIX + hashlib.sha256(os.fsencode(cluster.resolve())).hexdigest()[:16]
    for place in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        if place and os.access(place, os.W_OK | os.X_OK) and fits(Path(place, name, LINK)):
            return link_in(Path(place, name), cluster)
    raise EmbeddedError("No folder with a short enough path was found for the database's socket.")


def fits(folder: Path) -> bool:
    """Return whether the path of a socket in the folder is short enough."""
    return len(os.fsencode(folder / SOCKET_NAME)) <= LONGEST_SOCKET_PATH


def link_in(folder: Path, cluster: Path) -> Path:
    """Return the link to `cluster` in a folder that nobody else can write; its name can be guessed, so whose
    it is counts."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise EmbeddedError(
            f"{folder} is needed for the database's socket, but it is somebody else's; remove it."
        )
    link = folder / LINK
    link.unlink(missing_ok=True)
    link.symlink_to(cluster)
    return link


def remove_link(cluster: Path, sockets: Path | None) -> None:
    """Remove what `socket_folder` made for this cluster outside of it."""
    if sockets is None or sockets == cluster:
        return
    with contextlib.suppress(OSError):
        sockets.unlink()
        sockets.parent.rmdir()


def processes_in(folder: Path) -> list[int]:
    """Return the live PostgreSQL processes whose working directory is `folder`."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if not os.path.samefile(f"/proc/{entry.name}/cwd", folder):
                continue
            if Path(os.readlink(f"/proc/{entry.name}/exe")).name.startswith("postgres"):
                found.append(int(entry.name))
    return found


async def ensure_database(url: str, name: str) -> None:
    """Create the database `name` on the server that `url` leads to, unless it exists."""
    conn = await asyncpg.connect(url, timeout=5)
    try:
        if not await conn.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
            with contextlib.suppress(asyncpg.DuplicateDatabaseError):
                await conn.execute(f'CREATE DATABASE "{name}"')
    finally:
        await conn.close()
