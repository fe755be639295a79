"""Requests to the application of this process, without a socket: all stages of the API, its log included."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

Asgi = Callable[
    [dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


class DemoCallError(RuntimeError):
    """The API has refused what the demo needs; this is a defect of the demo."""


class ProcessClient:
    """Calls the application with one API key and one `User-Agent`."""

    def __init__(self, asgi: Asgi, token: str, agent: str) -> None:
        self._asgi = asgi
        self._headers = {"authorization": f"Bearer {token}", "user-agent": agent}

    async def call(
        self, method: str, path: str, body: object = None, *, refused: bool = False, **headers: str
    ) -> Any:
        """Return the answer as Python values. Raises DemoCallError for a status other than 2xx, unless the
        call is meant to be `refused`."""
        status, answer = await request(self._asgi, method, path, {**self._headers, **headers}, body)
        if status >= 300 and not refused:
            raise DemoCallError(f"{method} {path} was answered with {status}: {answer.decode()[:300]}")
        return msgspec.json.decode(answer) if answer else None


async def request(
    asgi: Asgi,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: object = None,
    client: str = "127.0.0.1",
) -> tuple[int, bytes]:
    """Return status and body of one request. A body that is not octets is sent as JSON; `client` is the
    address that the request seems to come from."""
    sent = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
    target = urlsplit(path)
    given = {"host": "localhost", **headers, "content-length": str(len(sent))}
    if sent:
        given.setdefault("content-type", "application/json")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": target.path,
        "raw_path": target.path.encode("ascii"),
        "query_string": target.query.encode("ascii"),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": (client, 50_000),
        "server": ("127.0.0.1", 80),
    }
    status, parts = 500, []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await asgi(scope, receive, send)
    return status, b"".join(parts)
