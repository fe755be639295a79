"""The identity of a worker process (`Runtime`) and the interface of what it runs (`Application`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from pillarbox.kernel.settings.settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Runtime:
    """One worker process of `count`.

    `process_id` is new at every start of the process; `shared_memory` is the descriptor of the memory
    that the workers of this host share; `listeners` are the descriptors of the bound sockets by name;
    `metrics_folder` is the folder for the metrics of this process, None without a Prometheus endpoint.
    """

    process_id: UUID
    index: int
    count: int
    shared_memory: int
    capture_token: str = field(repr=False)
    listeners: Mapping[str, int] = field(default_factory=dict)
    metrics_folder: Path | None = None


class Application(Protocol):
    """The interface of the object that `pillarbox.application:build` returns."""

    @property
    def asgi(self) -> Asgi:
        """The HTTP application."""
        ...

    async def start(self) -> None:
        """Return when the background work runs and requests can be answered."""
        ...

    def closing(self) -> None:
        """Answer requests that only wait (long polls): the listeners are about to close."""
        ...

    def reload(self) -> None:
        """Look at the files that may be renewed while the process runs."""
        ...

    async def stop(self, grace: float) -> None:
        """Finish what is on the wire within `grace` seconds and give back the leases."""
        ...


Factory = Callable[[Settings, Runtime], Awaitable[Application]]
