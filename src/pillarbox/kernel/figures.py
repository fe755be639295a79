"""The Prometheus door: figures of all workers, collected by the supervisor."""

from __future__ import annotations

import shutil
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from pillarbox.kernel.doors import DoorError
from pillarbox.kernel.setting_kinds import HostPort


class Figures:
    """An HTTP door that answers `/metrics`; `at` is where it listens."""

    def __init__(self, at: HostPort, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        self.folder = folder
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
        try:
            self._server, self._thread = start_http_server(at.port, at.host, registry)
        except OSError as error:
            raise DoorError(f"Cannot listen on {at} (metrics): {error.strerror}.") from None
        self.at = HostPort(at.host, self._server.server_port)

    def forget(self, pid: int) -> None:
        """The process is gone: its gauges count no more, its counters still do."""
        mark_process_dead(pid, path=str(self.folder))  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)
