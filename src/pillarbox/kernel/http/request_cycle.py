"""The interface between the pipeline and a connection: one request, and how to answer it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class RequestCycle(Protocol):
    """ASGI's scope and messages, and shortcuts for the most frequent case: a body that has arrived whole, and
    an answer with a plain head."""

    @property
    def scope(self) -> Any: ...

    @property
    def receive(self) -> Any: ...

    @property
    def send(self) -> Any: ...

    @property
    def is_gone(self) -> bool:
        """Whether the client is known to have left."""
        ...

    def whole_body(self) -> bytes | bytearray | None:
        """Return the body, if all of it has come; otherwise it must be received."""
        ...

    def more_time(self) -> None:
        """Give a body that is still coming all its time again, where it is not held in memory."""
        ...

    def respond(self, status: int, lines: bytes, body: bytes) -> bool:
        """Answer at once; `lines` are the lines of the head. False where the answer must be sent, because the
        client is slow to read or gone."""
        ...
