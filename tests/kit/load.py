"""A client that sends mails at a rate and records every answer before it acts on it.

`LoadClient.post` tries until the API says yes, always under the same idempotency key, as a careful program
would: a lost connection or a 5xx leaves it open whether the mail was accepted, the key settles that. With
`careful=False` each mail is tried once and an answer that does not come is written down as unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kit.ledger import TOKEN, Journal

PATIENCE = 30.0
PAUSE = 0.05
LONGEST = 120.0
BODY = "Ready to sail. " * 30

Answer = tuple[int, bytes]


@dataclass
class Tally:
    """What the answers were."""

    accepted: int = 0
    replayed: int = 0
    refused: int = 0
    unknown: int = 0
    retried: int = 0


class Line:
    """One kept-alive HTTP/1.1 connection, opened when it is needed."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._at = host, port
        self._key = key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Return the answer; raise OSError, EOFError or TimeoutError where none came."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._ask(method, path, body, headers)
        except BaseException:
            self.hang_up()
            raise

    async def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._at)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            f"host: {self._at[0]}",
            f"authorization: Bearer {self._key}",
            f"content-length: {len(content)}",
            *(["content-type: application/json"] if content else []),
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        answer = await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            self.hang_up()
        return int(head[0].split()[1]), answer

    def hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


@dataclass
class LoadClient:
    """Posts mails over a few connections and keeps the ledger."""

    at: tuple[str, int]
    key: str
    journal: Journal
    lines: int = 20
    careful: bool = True
    sender: str = "Harbor <notes@harbor.example>"
    tally: Tally = field(default_factory=Tally)
    _free: asyncio.LifoQueue[Line] = field(default_factory=asyncio.LifoQueue)
    _made: list[Line] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    run: str = field(default_factory=lambda: f"{random.getrandbits(32):08x}")

    async def __aenter__(self) -> Self:
        self._made = [Line(*self.at, self.key) for _ in range(self.lines)]
        for line in self._made:
            self._free.put_nowait(line)
        return self

    async def __aexit__(self, *_: object) -> None:
        for line in self._made:
            line.hang_up()

    def token(self) -> str:
        """Return a word that no other mail has."""
        return f"{TOKEN}{self.run}-{next(self._numbers):06d}"

    async def post(self, to: Sequence[str], **fields: Any) -> str | None:
        """Send one mail; its id, or None where the API refused it or (not careful) did not answer."""
        token = self.token()
        return await self.post_as(token, [address.replace("{token}", token) for address in to], **fields)

    async def post_as(
        self, token: str, to: Sequence[str], *, key: str | None = None, **fields: Any
    ) -> str | None:
        """Send one mail under this token and idempotency key."""
        body = {"from": self.sender, "to": list(to), "subject": f"Berth {token}", "text": BODY, **fields}
        headers = {"idempotency_key": key or token} if self.careful else {}
        loop = asyncio.get_running_loop()
        end = loop.time() + LONGEST
        while loop.time() < end:
            line = await self._free.get()
            try:
                status, answer = await line.ask("POST", "/emails", body, **headers)
            except (OSError, EOFError):
                status, answer = 0, b""
            finally:
                self._free.put_nowait(line)
            if status == 200:
                email = str(json.loads(answer)["id"])
                self.journal.write(kind="accepted", id=email, token=token, to=list(to))
                self.tally.accepted += 1
                return email
            if not self.careful or (status and status < 500 and status != 409):
                self.journal.write(
                    kind="refused" if status else "unknown", token=token, to=list(to), status=status
                )
                self.tally.refused += bool(status)
                self.tally.unknown += not status
                return None
            self.tally.retried += 1
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"{token} was not accepted within {LONGEST} s")

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send any other request, once."""
        line = await self._free.get()
        try:
            status, answer = await line.ask(method, path, body)
        finally:
            self._free.put_nowait(line)
        return status, json.loads(answer) if answer else None

    async def post_many(
        self, count: int, rate: float, to: Callable[[int], Sequence[str]], **fields: Any
    ) -> list[str | None]:
        """Send `count` mails, `rate` of them each second whatever becomes of the others."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        tasks = []
        for number in range(count):
            with contextlib.suppress(ValueError):
                await asyncio.sleep(started + number / rate - loop.time())
            tasks.append(asyncio.create_task(self.post(to(number), **fields)))
        return await asyncio.gather(*tasks)

    async def post_until(self, over: asyncio.Event, pause: float, to: Callable[[int], Sequence[str]]) -> int:
        """Let each line send one mail after the other, with pauses, until it is over; return how many
        were sent."""
        numbers = itertools.count()

        async def go_on() -> None:
            while not over.is_set():
                await self.post(to(next(numbers)))
                await asyncio.sleep(pause)

        await asyncio.gather(*(go_on() for _ in range(self.lines)))
        return next(numbers)


def to_each(destinations: Iterable[str]) -> Callable[[int], list[str]]:
    """Return a function that gives one recipient per mail, its address unique, the destinations in turn."""
    names = list(destinations)
    return lambda number: [f"{{token}}@{names[number % len(names)]}"]
