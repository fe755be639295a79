"""A worker process: builds the application, serves its listeners, drains on SIGTERM or SIGQUIT.

The fork server (`pillarbox.fork_server`) forks it, so the program is loaded already. It gets a socket, from
which it reads its settings and on which it reports that it is ready, and the descriptors of its listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import uvicorn
import uvloop

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.listeners import with_duplicates
from pillarbox.kernel.observability import log
from pillarbox.kernel.observability.loop_watchdog import LoopWatchdog
from pillarbox.kernel.process import faults, signals
from pillarbox.kernel.process.runtime import Application, Factory, Runtime
from pillarbox.kernel.process.workers import READY
from pillarbox.kernel.security.certificates import Certificate, renewing_context, watch_expiry
from pillarbox.kernel.settings.settings import Settings, settings_of

WORK_GRACE = 10.0
ORPHAN_SECONDS = 10.0
PROTOCOL = "pillarbox.kernel.http.protocol"

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
"""Options of mallopt(3)."""

MAPPED_FROM = 1024 * 1024
KEPT_FREE = 8 * 1024 * 1024
HEAPS = 2

logger = log.get("worker")


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration that the supervisor sent to this worker."""

    settings: Settings
    runtime: Runtime
    factory: str


def run(
    channel: socket.socket, factory: str, shared_memory: int, listeners: Mapping[str, int], *, fault: str
) -> int:
    """Run one worker; the exit status."""
    config = read_hand_over(channel, factory, shared_memory, listeners)
    if config is None:
        return 0
    log.configure(config.settings.log, level=config.settings.log_level, always={"worker": os.getpid()})
    faults.arm(fault)
    try:
        uvloop.run(work(config, channel))
    except Exception:
        logger.exception("worker.failed")
        return 1
    return 0


def read_hand_over(
    channel: socket.socket, factory: str, shared_memory: int, listeners: Mapping[str, int]
) -> WorkerConfig | None:
    """Return the configuration from the supervisor's one line; None when the supervisor is gone already."""
    with channel.makefile("rb") as lines:
        line = lines.readline()
    if not line.endswith(b"\n"):
        return None
    content = json.loads(line)
    runtime = Runtime(
        process_id=Ids(SystemClock()).new(),
        index=content["index"],
        count=content["count"],
        shared_memory=shared_memory,
        capture_token=content["capture_token"],
        listeners=listeners,
        metrics_folder=Path(content["metrics_folder"]) if content["metrics_folder"] else None,
    )
    return WorkerConfig(settings_of(content["settings"], sources=content["sources"]), runtime, factory)


async def work(config: WorkerConfig, channel: socket.socket) -> None:
    """Open, report ready, serve until SIGTERM or the end of the supervisor, drain."""
    return_freed_memory()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    renewable: list[Callable[[], object]] = []
    signals.handle(
        stop=lambda _: stop.set(), reload=lambda: reload(renewable), stops=(signal.SIGTERM, signal.SIGQUIT)
    )
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    application = await factory_of(config.factory)(config.settings, config.runtime)
    await application.start()
    tune_garbage_collector()
    watchdog = LoopWatchdog()
    watchdog.start()
    server = HttpServer(config, application) if "http" in config.runtime.listeners else None
    renewable += [application.reload, *(server.renewable if server else ())]
    if server:
        await server.open()
    loop.add_reader(channel, supervisor_gone, channel, stop)
    channel.sendall(READY)
    await stop.wait()
    loop.remove_reader(channel)
    application.closing()
    if server:
        await server.close()
    await application.stop(WORK_GRACE)
    watchdog.stop()


def reload(renewable: Sequence[Callable[[], object]]) -> None:
    """Look at the files that may be renewed while the process runs."""
    for look in renewable:
        look()
    logger.info("worker.reloaded")


def return_freed_memory() -> None:
    """Make glibc return most of what this process frees; other C libraries have no such options.

    After the first large allocation is freed, glibc takes allocations of that size from its own heap, where a
    small one behind them keeps all of it from the system: after one mail of 40 MB a process stays 80 MB
    larger. Each thread that allocates gets a heap of its own. With fixed thresholds large pieces are mapped
    and unmapped one by one, and two heaps serve all threads.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_THRESHOLD, MAPPED_FROM)
    mallopt(M_TRIM_THRESHOLD, KEPT_FREE)
    mallopt(M_ARENA_MAX, HEAPS)


def tune_garbage_collector() -> None:
    """Exempt the objects built so far and collect less often: requests create few reference cycles, and with
    the default thresholds the collector takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def supervisor_gone(channel: socket.socket, stop: asyncio.Event) -> None:
    """Drain, and exit after `ORPHAN_SECONDS` in any case: the channel ended."""
    if channel.recv(1) == b"":
        asyncio.get_running_loop().remove_reader(channel)
        stop.set()
        deadline = threading.Timer(ORPHAN_SECONDS, os._exit, (1,))
        deadline.daemon = True
        deadline.start()


def factory_of(name: str) -> Factory:
    """Return the function that `module:function` names."""
    module, _, function = name.partition(":")
    factory: Factory = getattr(importlib.import_module(module), function)
    return factory


class HttpServer:
    """uvicorn on the inherited socket, without its signal handlers."""

    def __init__(self, config: WorkerConfig, application: Application) -> None:
        self.certificate = https_certificate(config.settings)
        self._socket = socket.socket(fileno=config.runtime.listeners["http"])
        self._server = OpenedServer(uvicorn_config(application, self.certificate))
        self._serving: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Return when connections are accepted."""
        if self.certificate is not None:
            watch_expiry("http", self.certificate)
            self._watching = asyncio.create_task(self.certificate.watch())
        self._serving = asyncio.create_task(self._server.serve(sockets=with_duplicates(self._socket)))
        opened = asyncio.create_task(self._server.opened.wait())
        await asyncio.wait([self._serving, opened], return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if self._serving.done():
            self._serving.result()

    @property
    def renewable(self) -> Sequence[Callable[[], object]]:
        """Return what looks at files that may be renewed."""
        return [self.certificate.refresh] if self.certificate is not None else []

    async def close(self) -> None:
        """Stop accepting, let running requests end, close idle connections."""
        self._server.should_exit = True
        if self._serving:
            await self._serving
        if self._watching:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)


class OpenedServer(uvicorn.Server):
    """A uvicorn server with an `opened` event and without signal handlers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.opened = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.opened.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def https_certificate(settings: Settings) -> Certificate | None:
    """Return the operator's certificate; HTTP in the clear where there is none."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Certificate(settings.tls_cert, settings.tls_key, SystemClock())


def uvicorn_config(application: Application, certificate: Certificate | None) -> uvicorn.Config:
    """Return the configuration of the HTTP server, with HTTPS where there is a certificate."""
    tls = None if certificate is None else lambda *_: renewing_context(certificate)
    config: uvicorn.Config = http_protocol().server_config(application.asgi, tls=tls)
    return config


def http_protocol() -> ModuleType:
    """Import the module of the HTTP connection, which the supervisor does without."""
    return importlib.import_module(PROTOCOL)
