"""Two PostgreSQL servers, a primary and its synchronous standby, made of the embedded programs.

    with replicated(folder) as pair:
        pair.url                    # both servers; whoever connects gets the one that can be written
        pair.primary.kill()
        pair.promote()              # what an operator, or Patroni, does: the standby is the primary now
        pair.rejoin()               # the old primary comes back as the standby of the new one

A commit returns when the standby has it on disk. Killed servers lose no page of the machine's cache, so
`fsync` is off.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pillarbox.kernel.postgres.embedded import CWD, ROLE, as_account, initdb_options, processes_in
from pillarbox.kernel.postgres.programs import PostgresInstallation, account_for, installation_for

PATIENCE = 60.0
POLL = 0.05
REACHABLE = "/tmp"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "150",
    "wal_log_hints": "on",
    "autovacuum_naptime": "15s",
    "timezone": "UTC",
    "jit": "off",
}


class PostgresServer:
    """One server on a folder and a port of loopback."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        folder.mkdir(mode=0o700)
        self._account = account_for(folder)
        if self._account:
            os.chown(folder, self._account.uid, self._account.gid)
        self.installation: PostgresInstallation = installation_for(None, self._account)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def run(self, program: str, *arguments: str) -> str:
        """Run one of the programs in the folder; what it prints."""
        done = subprocess.run(
            [str(self.installation.bin / program), *arguments],
            cwd=self.folder,
            env=self.installation.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            umask=0o077,
            check=False,
            **as_account(self._account),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Return what psql answers to one statement."""
        return self.run(
            "psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", str(self.port), "-U", ROLE, "-d", database,
            "-c", statement,
        )  # fmt: skip

    def start(self) -> None:
        """Return when it answers."""
        settings = {**SETTINGS, "port": str(self.port), "cluster_name": self.name}
        self._process = subprocess.Popen(
            [
                str(self.installation.bin / "postgres"),
                "-D",
                CWD,
                *(f"--{name}={value}" for name, value in settings.items()),
            ],
            cwd=self.folder,
            env=self.installation.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder.with_name(f"{self.name}.log")).open("ab"),
            umask=0o077,
            start_new_session=True,
            **as_account(self._account),
        )
        wait_for(lambda: self.sql("SELECT 1") == "1", f"{self.name} does not answer")

    def kill(self) -> None:
        """Send SIGKILL to all of its processes."""
        for pid in processes_in(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait(PATIENCE)
        (self.folder / "postmaster.pid").unlink(missing_ok=True)


class Pair:
    """A primary and its standby."""

    def __init__(self, folder: Path) -> None:
        self.primary = PostgresServer("one", folder / "one")
        self.standby = PostgresServer("two", folder / "two")
        first = self.primary
        first.run("initdb", *initdb_options(first.installation.major, durable=False))
        first.start()
        first.sql("CREATE DATABASE pillarbox")
        # pg_rewind reads the log back to where both servers were the same.
        first.sql("ALTER SYSTEM SET wal_keep_size = '256MB'")
        self.standby.run(
            "pg_basebackup", "-D", ".", "-h", "127.0.0.1", "-p", str(first.port), "-U", ROLE,
            "--wal-method=stream", "--checkpoint=fast", "--write-recovery-conf", "--no-sync",
        )  # fmt: skip
        self.standby.start()
        self.follow()

    @property
    def url(self) -> str:
        """For programs: both servers, in no special order."""
        return (
            f"postgresql://{ROLE}@{self.standby.address},{self.primary.address}/pillarbox"
            "?target_session_attrs=read-write"
        )

    def follow(self) -> None:
        """Let a commit of the primary wait for the standby, once that is there."""
        self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 ({self.standby.name})'")
        self.primary.sql("SELECT pg_reload_conf()")
        wait_for(
            lambda: self.primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync",
            "the standby does not follow",
        )

    def promote(self) -> None:
        """Promote the standby to the primary, alone: its commits wait for nobody."""
        self.standby.sql("ALTER SYSTEM RESET synchronous_standby_names")
        assert self.standby.sql("SELECT pg_promote()") == "t"
        self.primary, self.standby = self.standby, self.primary

    def rejoin(self) -> None:
        """Let the server that died follow the new primary: what it wrote alone is taken back first."""
        source = f"host=127.0.0.1 port={self.primary.port} user={ROLE} dbname=postgres"
        self.primary.sql("CHECKPOINT")
        self.standby.run(
            "pg_rewind", "-D", ".", f"--source-server={source}", "--write-recovery-conf", "--no-sync"
        )
        self.standby.start()
        self.follow()


def wait_for(met: object, otherwise: str) -> None:
    """Return once `met()` is true; errors of a server that is on its way count as false."""
    assert callable(met)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(AssertionError):
            if met():
                return
        time.sleep(POLL)
    raise AssertionError(otherwise)


@contextmanager
def replicated() -> Iterator[Pair]:
    """Yield both servers, following; ended with the block. Their folder is one that every account
    can reach."""
    folder = Path(tempfile.mkdtemp(prefix="pillarbox-replicated-", dir=REACHABLE))
    folder.chmod(0o755)
    try:
        yield Pair(folder)
    finally:
        for name in ("one", "two"):
            for pid in processes_in(folder / name) if (folder / name).is_dir() else []:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder)
