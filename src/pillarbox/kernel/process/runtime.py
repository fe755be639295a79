"""What a worker process knows about itself, and what it runs."""

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
    that the workers of this host share; `doors` are the descriptors of the bound sockets by door;
    `figures` is the folder for the figures that Prometheus asks for, None when nobody does.
    """

    process_id: UUID
    index: int
    count: int
    shared_memory: int
    capture_token: str = field(repr=False)
    doors: Mapping[str, int] = field(default_factory=dict)
    figures: Path | None = None


class Application(Protocol):
    """What `pillarbox.app:build` answers."""

    @property
    def asgi(self) -> Asgi:
        """The HTTP door."""
        ...

    async def start(self) -> None:
        """Return when the background work runs and requests can be answered."""
        ...

    def closing(self) -> None:
        """The doors are about to close; whoever only waits gets an answer now."""
        ...

    async def stop(self, grace: float) -> None:
        """Finish what is on the wire within `grace` seconds and give back the leases."""
        ...


Factory = Callable[[Settings, Runtime], Awaitable[Application]]
