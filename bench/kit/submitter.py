"""Load on an SMTP listener: `python -m bench.kit.submitter`, sessions that log in once and send mail after
mail.

It reads its orders as one line of JSON on standard input and answers with one: the seconds from the first
mail to the last answer, how long each answer to a final dot took, and what was not 250.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import uvloop

from bench.kit.load import WORDS, percentile, prose
from bench.kit.server import KEY, SENDER

VARIATIONS = 200
TEXT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Submitted:
    """What the sessions saw; `cpu` is what they took themselves."""

    mails: int
    seconds: float
    p50: float
    p99: float
    worst: float
    refused: dict[str, int]
    cpu: float

    @property
    def rate(self) -> float:
        return self.mails / self.seconds if self.seconds else 0.0


def submit(port: int, *, sessions: int, mails: int, login: bool = True) -> Submitted:
    """Send so many mails in all, from a process of its own."""
    orders = {"port": port, "sessions": sessions, "mails": mails, "login": login}
    done = subprocess.run(
        [sys.executable, "-m", "bench.kit.submitter"],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    return Submitted(**json.loads(done.stdout))


def message(number: int) -> bytes:
    """A text of 4 kB with a header as mail programs write it, and its final dot."""
    chance = random.Random(number)
    name = f"{chance.choice(WORDS)}.{number}"
    head = (
        f"Date: Mon, 05 Oct 2026 08:15:00 +0000\nFrom: {SENDER}\nTo: {name}@inbox{number % 20}.example\n"
        f"Message-ID: <{number:032x}@bench.example>\nSubject: Your {chance.choice(WORDS)} no. {number}\n"
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 7bit\n\n"
    )
    return (head + prose(chance, TEXT_BYTES) + "\n.\n").replace("\n", "\r\n").encode()


def envelope(number: int) -> bytes:
    chance = random.Random(number)
    name = f"{chance.choice(WORDS)}.{number}"
    to = f"{name}@inbox{number % 20}.example"
    return f"MAIL FROM:<bounce@bench.example>\r\nRCPT TO:<{to}>\r\nDATA\r\n".encode()


class Load:
    """What all sessions share."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.login = orders["login"]
        self.left = orders["mails"]
        self.texts = [message(number) for number in range(VARIATIONS)]
        self.envelopes = [envelope(number) for number in range(VARIATIONS)]
        self.latencies: list[float] = []
        self.refused: Counter[str] = Counter()


class Session(asyncio.Protocol):
    """Says what comes next when everything before was answered."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._line = b""
        self._step = self._greeted
        self._number = 0
        self._sent = 0.0
        self._said = 0
        self.ready = asyncio.get_running_loop().create_future()
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.ready, self.done):
            if not future.done():
                future.set_exception(ConnectionError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        data = self._line + data
        *lines, self._line = data.split(b"\r\n")
        for line in lines:
            if line[3:4] == b" ":
                self._step(line)

    def _greeted(self, line: bytes) -> None:
        self._transport.write(b"EHLO bench.example\r\n")
        self._step = self._introduced if self._load.login else self._prepared

    def _introduced(self, line: bytes) -> None:
        secret = base64.b64encode(b"\0pillarbox\0" + KEY.encode())
        self._transport.write(b"AUTH PLAIN " + secret + b"\r\n")
        self._step = self._prepared

    def _prepared(self, line: bytes) -> None:
        if line[:1] != b"2":
            raise RuntimeError(line.decode())
        self.ready.set_result(None)

    def begin(self) -> None:
        """The next mail, or the end."""
        if not self._load.left:
            self.done.set_result(None)
            self._transport.close()
            return
        self._load.left -= 1
        self._number = self._load.left % VARIATIONS
        self._said = 0
        self._step = self._named
        self._transport.write(self._load.envelopes[self._number])

    def _named(self, line: bytes) -> None:
        self._said += 1
        if line[:1] not in b"23":
            self._load.refused[line[:60].decode()] += 1
        if self._said == 3:
            self._step = self._answered
            self._sent = time.perf_counter()
            self._transport.write(self._load.texts[self._number])

    def _answered(self, line: bytes) -> None:
        self._load.latencies.append(time.perf_counter() - self._sent)
        if line[:3] != b"250":
            self._load.refused[line[:60].decode()] += 1
        self.begin()


async def run(orders: dict[str, Any]) -> Submitted:
    load = Load(orders)
    loop = asyncio.get_running_loop()
    sessions = []
    for _ in range(orders["sessions"]):
        _, session = await loop.create_connection(lambda: Session(load), "127.0.0.1", orders["port"])
        await session.ready
        sessions.append(session)
    began, before = time.perf_counter(), os.times()
    for session in sessions:
        session.begin()
    await asyncio.gather(*[session.done for session in sessions])
    seconds, after = time.perf_counter() - began, os.times()
    found = load.latencies
    return Submitted(
        mails=orders["mails"],
        seconds=seconds,
        p50=percentile(found, 50) * 1000,
        p99=percentile(found, 99) * 1000,
        worst=max(found) * 1000,
        refused=dict(load.refused),
        cpu=after.user + after.system - before.user - before.system,
    )


def main() -> None:
    seen = uvloop.run(run(json.loads(sys.stdin.readline())))
    print(json.dumps({name: getattr(seen, name) for name in Submitted.__slots__}))


if __name__ == "__main__":
    main()
