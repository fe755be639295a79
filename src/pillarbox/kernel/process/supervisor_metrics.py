"""The supervisor's own metrics for Prometheus, beside the counts of its workers: the running version,
restarts of processes, and the resources of all processes (`kernel.process.process_metrics`)."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pillarbox import __version__
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.observability.metrics import Counter, Gauge, MetricsFile
from pillarbox.kernel.settings.kinds import HostPort

if TYPE_CHECKING:
    from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
    from pillarbox.kernel.process.process_metrics import MeasuredProcess

KILLED, CRASHED, FAILED, ENDED, NOT_STARTED = "killed", "crashed", "failed", "ended", "not_started"
REASONS: Final = (KILLED, CRASHED, FAILED, ENDED, NOT_STARTED)

WORKER_RESTARTS = Counter(
    "pillarbox_worker_restarts",
    "Workers that ended unasked and are replaced: killed (SIGKILL), crashed (another signal), failed (exit "
    "status), ended (status 0), not_started.",
    ("reason",),
    [(reason,) for reason in REASONS],
)
DATABASE_RESTARTS = Counter("pillarbox_database_restarts", "How often the embedded database ended unasked.")
BUILD = Gauge(
    "pillarbox_build_info",
    "Always 1: the versions of Pillarbox and Python, and of PostgreSQL as the start found it.",
    ("version", "python", "postgresql"),
)


def ended(status: int | None) -> None:
    """Count a worker that ended unasked; its status is negative for a signal, None where it never started."""
    WORKER_RESTARTS.add(1, (reason_of(status),))


def reason_of(status: int | None) -> str:
    if status is None:
        return NOT_STARTED
    if status < 0:
        return KILLED if status == -signal.SIGKILL else CRASHED
    return FAILED if status else ENDED


def found_database(number: int) -> None:
    """Show which versions run; `number` is PostgreSQL's `server_version_num`."""
    labels = (__version__, platform.python_version(), f"{number // 10000}.{number % 10000}")
    BUILD.read = lambda: {labels: 1}


class Children(Protocol):
    """The processes that work for a supervisor."""

    @property
    def fork_server_pid(self) -> int | None: ...

    @property
    def worker_pids(self) -> dict[int, int]:
        """By their place."""
        ...


def processes(workers: Children | None, postgres: EmbeddedPostgres | None) -> list[MeasuredProcess]:
    """Return this process and those that it keeps. Called on another thread than theirs."""
    from pillarbox.kernel.process.process_metrics import MeasuredProcess

    found = [MeasuredProcess("supervisor", "", os.getpid())]
    if workers is not None:
        if (fork_server := workers.fork_server_pid) is not None:
            found.append(MeasuredProcess("fork_server", "", fork_server))
        found += [MeasuredProcess("worker", str(index), pid) for index, pid in workers.worker_pids.items()]
    if postgres is not None and (server := postgres.pid) is not None:
        found.append(MeasuredProcess("database", "", server, has_family=True))
    return found


class SupervisorMetrics:
    """The Prometheus endpoint of this machine, and the supervisor's own file for it."""

    def __init__(
        self, address: HostPort, folder: Path, processes: Callable[[], Iterable[MeasuredProcess]]
    ) -> None:
        # Loaded only where metrics are asked for.
        from pillarbox.kernel.observability.prometheus import PrometheusServer
        from pillarbox.kernel.process.process_metrics import ProcessMetrics

        self._server = PrometheusServer(address, folder, ProcessMetrics(processes, folder))
        self._writing: asyncio.Task[None] | None = None
        self.folder = folder
        self.at = self._server.at
        self.forget = self._server.forget

    def begin(self) -> None:
        """Write the supervisor's own numbers from now on."""
        self._writing = asyncio.create_task(MetricsFile(self.folder, SystemClock()).keep())

    def close(self) -> None:
        """Answer no more."""
        if self._writing:
            self._writing.cancel()
        self._server.close()
