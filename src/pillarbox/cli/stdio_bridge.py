"""`pillarbox mcp`: the tools of the running server, by standard input and output.

Each line of the input is a message, which goes to `/mcp` with the API key, and each answer is a line of the
output. Messages are answered side by side, so one that waits for mail keeps no other.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

import pillarbox
from pillarbox.cli.send import EVERYWHERE, Key, Url, reachable, token_of
from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.settings.settings import ConfigError
from pillarbox.kernel.terminal.answers import WRONG_SETTING, CommandRefused, stopped
from pillarbox.kernel.terminal.connect import Data

LIMITS: Final = HttpLimits(max_bytes=4 * 1024 * 1024, total=90.0)
"""A tool waits for mail for 60 seconds at most."""

AT_ONCE: Final = 16
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
INTERNAL_ERROR: Final = -32603


def command(url: Url = None, key: Key = None, data: Data = None) -> None:
    """Serve the tools of the running server (MCP) by standard input and output."""
    try:
        server, _ = reachable(url, data)
        bridge = StdioBridge(server, token_of(key), _written)
        # The thread that waits for a line cannot be woken: Ctrl-C would wait for the end of the input.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(bridge.run(sys.stdin.buffer.readline))
    except ConfigError as problem:
        raise stopped(str(problem), WRONG_SETTING) from None
    except CommandRefused as problem:
        raise stopped(str(problem)) from None


def _written(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


class StdioBridge:
    """Hands messages on to `/mcp` of one server with one key; `write` gets each answer, a line."""

    def __init__(self, server: str, token: str, write: Callable[[bytes], None]) -> None:
        self._address = f"{server}/mcp"
        self._token = token
        self._write = write
        self._outbound = Outbound(allow=EVERYWHERE)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self, readline: Callable[[], bytes]) -> None:
        """Answer messages until the input ends."""
        async with asyncio.TaskGroup() as tasks:
            while line := await asyncio.to_thread(readline):
                await self._turns.acquire()
                tasks.create_task(self._answered(line))

    async def _answered(self, line: bytes) -> None:
        try:
            answer = await self.answer(line)
        finally:
            self._turns.release()
        if answer is not None:
            self._write(answer)

    async def answer(self, line: bytes) -> bytes | None:
        """Return the answer to one message; None to a notification."""
        message = _message(line)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "User-Agent": f"pillarbox/{pillarbox.__version__}",
            "Content-Type": "application/json",
            **routing_headers(message),
        }
        try:
            reply = await self._outbound.fetch("POST", self._address, LIMITS, headers=headers, body=line)
            answer = msgspec.json.decode(reply.body) if reply.body else None
        except FetchError as failure:
            return failed(message, f"The server at {self._address} cannot be reached: {failure}")
        except msgspec.DecodeError:
            return failed(message, f"What answers at {self._address} is no Pillarbox with MCP.")
        if not isinstance(answer, dict) or (message and "id" not in message):
            return None
        if "jsonrpc" not in answer:
            return failed(message, str(answer.get("message", "The server refused the message.")))
        if answer.get("id") is None:
            answer["id"] = message.get("id")
        return msgspec.json.encode(answer)


def _message(line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def routing_headers(message: dict[str, Any]) -> dict[str, str]:
    """Return the headers that the version of 2026-07-28 wants over HTTP, which stdio does not have."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    method = message.get("method")
    if not isinstance(version, str) or not isinstance(method, str) or not isinstance(params, dict):
        return {}
    found = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    if isinstance(params.get("name"), str):
        found["Mcp-Name"] = params["name"]
    return {name: value for name, value in found.items() if value.isascii() and value.isprintable()}


def failed(message: dict[str, Any], text: str) -> bytes | None:
    """Return the error of a message that has an id."""
    if "id" not in message:
        return None
    error = {"code": INTERNAL_ERROR, "message": text}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "error": error})
